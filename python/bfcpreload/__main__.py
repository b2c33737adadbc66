"""python -m bfcpreload run PROGRAM... | stat | plan | replay ...: as bfcrun, bfcstat, bfcplan, bfcreplay."""

import os
import sys

from bfcpreload.installed import library, tool

COMMANDS = ("run", "stat", "plan", "replay")


def main() -> None:
    if sys.argv[1:] == ["library"]:
        print(library())
    elif len(sys.argv) > 1 and sys.argv[1] in COMMANDS:
        path = tool("bfc" + sys.argv[1])
        os.execv(path, [path, *sys.argv[2:]])
    else:
        sys.exit(f"usage: python -m bfcpreload {' | '.join(COMMANDS)} [ARGUMENT...], or library")


main()
