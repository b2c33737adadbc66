#!/usr/bin/env python3
"""How good and how fast the planner is, as JSON, one line an instance.

BFCPLAN and GENERATE name the programs, TRACES a folder with real traces (left out when it is not
there). `wanted` says what the project aims at; nothing is asserted here.
"""

import json
import os
import subprocess
import sys
import tempfile

BFCPLAN = os.environ["BFCPLAN"]
GENERATE = os.environ["GENERATE"]
TRACES = os.environ.get("TRACES", "")

INSTANCES = (
    # name, how it is made (None: a trace), options, wanted ratio and seconds
    ("somas-resnet50", None, [], 1.0005, 1),
    ("pytorch-resnet-step", None, [], 1.0005, 1),
    ("iopddl-G_1", None, [], 1.0005, 1),
    ("minimalloc-A.1048576", None, ["--align", 1, "--capacity", 1048576], 1, 10),
    ("minimalloc-E.1048576", None, ["--align", 1, "--capacity", 1048576], 1, 10),
    ("minimalloc-K.1048576", None, ["--align", 1, "--capacity", 1048576], 1, 10),
    ("train-100000", ["train", 100000, 1], [], 1.002, 5),
    ("train-1000000", ["train", 1000000, 1], [], 1.005, 60),
)


def solve(path, plan, options):
    """Report, and most memory in KiB (of this child: the largest so far)."""
    command = [BFCPLAN, "solve", path, "-o", plan, "--json", *map(str, options)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.stdout.close()
    return json.loads(out) if out else {}, os.waitstatus_to_exitcode(status), usage.ru_maxrss


def main():
    with tempfile.TemporaryDirectory() as folder:
        for name, recipe, options, ratio, seconds in INSTANCES:
            path = os.path.join(TRACES, name + ".csv")
            if recipe is not None:
                path = os.path.join(folder, name + ".csv")
                with open(path, "wb") as file:
                    subprocess.run([GENERATE, *map(str, recipe)], stdout=file, check=True)
            elif not os.path.exists(path):
                continue
            plan = os.path.join(folder, "plan")
            report, status, memory = solve(path, plan, options)
            checked = subprocess.run([BFCPLAN, "check", plan, path], stdout=subprocess.DEVNULL,
                                     check=False).returncode == 0
            line = {"instance": name, "status": status, "checked": checked,
                    "memory_mib": memory // 1024,
                    "wanted": {"ratio": ratio, "seconds": seconds}}
            for key in ("buffers", "lower_bound", "peak", "ratio", "seconds"):
                line[key] = report.get(key)
            print(json.dumps(line), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
