#!/usr/bin/env python3
"""The real traces beside the sources, where they are: TRACES names the folder. Quality, not time."""

import json
import os
import subprocess
import sys
import tempfile

BFCPLAN = os.environ["BFCPLAN"]
TRACES = os.environ["TRACES"]
SKIPPED = 77

# Trace, alignment, capacity (None: the bound), most ratio.
WANTED = (
    ("somas-resnet50.csv", 512, None, 1.0005),
    ("pytorch-resnet-step.csv", 512, None, 1.0005),
    ("iopddl-G_1.csv", 512, None, 1.0005),
    ("minimalloc-input.12.csv", 1, 12, 1),
    ("minimalloc-A.1048576.csv", 1, 1048576, 1),
    ("minimalloc-E.1048576.csv", 1, 1048576, 1),
    ("minimalloc-K.1048576.csv", 1, 1048576, 1),
)


def run(*arguments):
    return subprocess.run([BFCPLAN, *map(str, arguments)], stdout=subprocess.PIPE, text=True,
                          check=False)


def main():
    if not os.path.isdir(TRACES):
        print(f"no traces in {TRACES}")
        return SKIPPED
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        plan = os.path.join(folder, "plan")
        for name, align, capacity, most in WANTED:
            path = os.path.join(TRACES, name)
            within = [] if capacity is None else ["--capacity", capacity]
            result = run("solve", path, "-o", plan, "--json", "--align", align, *within)
            report = json.loads(result.stdout)
            good = result.returncode == 0 and report["ratio"] <= most \
                and run("check", plan, path).returncode == 0
            print("ok    " if good else "FAULT ", name, json.dumps(report))
            faults += not good
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
