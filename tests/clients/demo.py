#!/usr/bin/env python3
"""The demo where PyTorch is installed: its training loop holds the same in each mode, and the driver
serves next to nothing of it.

usage: demo.py BUILD SIM FOLDER INCLUDE"""

import json
import os
import subprocess
import sys

from installed import install

SCRIPT = os.path.join(os.path.dirname(__file__), "..", "..", "scripts", "demo.py")


def main():
    build, sim, folder, include = map(os.path.abspath, sys.argv[1:])
    done = subprocess.run([install("long", folder, sim, include), SCRIPT, build, "20"], stdout=subprocess.PIPE,
                          text=True, check=False)
    print(done.stdout)
    last = json.loads(done.stdout.splitlines()[-1])
    served = [last[f"torch_{mode}_driver_allocations"] for mode in ("sync", "lazy", "ordered")]
    return 0 if done.returncode == 0 and max(served) * 20 < last["torch_native_driver_allocations"] else 1


if __name__ == "__main__":
    sys.exit(main())
