"""python -m bfcpreload run PROGRAM... | stat | plan | replay ...: as bfcrun, bfcstat, bfcplan, bfcreplay."""

import os
import sys

from bfcpreload.installed import library, tool

COMMANDS = ("run", "stat", "plan", "replay")
USAGE = f"usage: python -m bfcpreload {' | '.join(COMMANDS)} [ARGUMENT...], or library, or --version"


def main() -> None:
    if sys.argv[1:] == ["library"]:
        print(library())
    elif sys.argv[1:] == ["--version"]:
        os.execv(tool("bfcrun"), ["bfcrun", "--version"])
    elif sys.argv[1:] in (["--help"], ["-h"]):
        print(USAGE)
    elif len(sys.argv) > 1 and sys.argv[1] in COMMANDS:
        path = tool("bfc" + sys.argv[1])
        os.execv(path, [path, *sys.argv[2:]])
    else:
        print(USAGE, file=sys.stderr)
        sys.exit(2)


main()
