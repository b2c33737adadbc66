#!/usr/bin/env python3
"""The real traces beside the sources, where they are: TRACES names the folder. Quality, not time."""

import csv
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


SEEDS = 3


def mirror(path, out):
    """The same problem with time reversed, as hard for the best plan, not for a search."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    end = max(int(row["upper"]) for row in rows)
    with open(out, "w", encoding="utf-8") as file:
        file.write("id,lower,upper,size\n")
        for row in rows:
            file.write(f"{row['id']},{end - int(row['upper'])},{end - int(row['lower'])},{row['size']}\n")


def check_seeds(path, capacity, folder):
    """Whether every seed finds a plan within the capacity, in what a run takes without a limit."""
    mirrored, faults = os.path.join(folder, "mirrored.csv"), 0
    mirror(path, mirrored)
    for file in (path, mirrored):
        for seed in range(2, 2 + SEEDS):
            done = run("solve", file, "-o", os.path.join(folder, "plan"), "--json", "--align", 1,
                       "--capacity", capacity, "--seed", seed)
            print("ok    " if done.returncode == 0 else "FAULT ", file, "seed", seed)
            faults += done.returncode != 0
    return faults


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
            if capacity is not None:
                faults += check_seeds(path, capacity, folder)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
