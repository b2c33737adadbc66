#!/usr/bin/env python3
"""`bfcplan lifetimes` on what real compilers write: models of the onnx package, and XLA's dumped
buffer assignments, whose own plans must be matched or beaten.

Their packages are installed as those of the other clients are; without them the test is skipped
(status 77).

usage: compilers.py BFCPLAN FOLDER"""

import csv
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

import installed

XLA_ALIGN = 64  # of XLA's buffers on the processor

# Model, further arguments, and what is said of it; None: it is read.
MODELS = (
    ("fixed", [], None),
    ("dynamic", ["--dims", "batch=4"], None),
    ("dynamic", [], "dimension 0 (batch) is dynamic; give it with --dims batch=NUMBER"),
    ("dynamic", ["--dims", "batch"], "--dims 'batch' is not NAME=NUMBER"),
    ("dynamic", ["--dims", "batch=4,bacth=5"], "--dims bacth: no input has a dimension of that name; named are batch"),
    ("fixed", ["--dims", "batch=4"], "--dims batch: no input has a dimension of that name; none is named"),
    ("dynamic", ["--dims", "batch=9223372036854775808"], "a dimension is a number from 0 to 2^63 - 1"),
    ("unknown-opset", [], "opset 999 is not known"),
    ("unknown-shape", [], "the shape of its output 'i' is not known"),
    ("loop", [], "node 'again' (Loop) runs a graph of its own"),
)
# Of `fixed`: alive from before the one node until after the other (nodes that have run), bytes.
WANTED = {"w1": (0, 6, 1728), "w2": (0, 6, 9216), "w3": (0, 6, 655360), "shape": (0, 6, 16),
          "x": (0, 1, 49152), "a": (0, 2, 262144), "b": (1, 4, 262144), "c": (2, 4, 262144),
          "d": (3, 5, 262144), "e": (4, 6, 262144), "y": (5, 6, 160)}


def call(command, env):
    return subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def check_models(bfcplan, python, env, folder):
    faults = []
    made = call([python, os.path.join(installed.HERE, "onnx_models.py"), folder], env)
    if made.returncode:
        return [made.stderr]
    for name, arguments, wanted in MODELS:
        out = os.path.join(folder, "out.csv")
        done = call([bfcplan, "lifetimes", os.path.join(folder, name + ".onnx"), "-o", out, *arguments],
                    env)
        print(name, *arguments, (done.stdout + done.stderr).strip())
        good = done.returncode == 0 if wanted is None else \
            done.returncode == 1 and wanted in done.stderr and done.stderr.count("\n") == 1
        if good and wanted is None:
            with open(out, encoding="utf-8") as file:
                rows = {row["id"]: (int(row["lower"]), int(row["upper"]), int(row["size"]))
                        for row in csv.DictReader(file)}
            good = rows == WANTED
        if not good:
            faults.append(f"{name} {arguments}")
    return faults


def check_dump(bfcplan, env, folder, dump):
    """None: it has no temporary buffers; else whether XLA's plan is matched."""
    with open(dump, encoding="utf-8") as file:
        text = file.read()
    own = sum(int(size) for size in re.findall(r"^allocation \d+: size (\d+), preallocated-temp", text,
                                               re.MULTILINE))
    if own == 0:
        return None
    rows, plan = os.path.join(folder, "rows.csv"), os.path.join(folder, "plan")
    read = call([bfcplan, "lifetimes", dump, "-o", rows], env)
    solved = call([bfcplan, "solve", rows, "-o", plan, "--align", str(XLA_ALIGN), "--json"], env)
    checked = call([bfcplan, "check", plan, rows], env)
    if read.returncode or solved.returncode or checked.returncode:
        print(dump, read.stderr, solved.stderr, checked.stderr)
        return False
    report = json.loads(solved.stdout)
    print(f"{os.path.basename(dump)}: {report['buffers']} values, XLA {own} bytes, here {report['peak']}")
    # XLA does not round its last buffer up.
    return report["peak"] <= -(-own // XLA_ALIGN) * XLA_ALIGN and f"needs {own} bytes" in read.stderr


def check_dumps(bfcplan, python, env, folder):
    made = call([python, os.path.join(installed.HERE, "xla_models.py")],
                {**env, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": f"--xla_dump_to={folder}/xla"})
    if made.returncode:
        return [made.stderr]
    dumps = sorted(glob.glob(os.path.join(folder, "xla", "*-buffer-assignment.txt")))
    results = {dump: check_dump(bfcplan, env, folder, dump) for dump in dumps}
    faults = [dump for dump, good in results.items() if good is False]
    return faults if sum(good is not None for good in results.values()) >= 5 else faults + ["few dumps"]


def main():
    bfcplan, folder = sys.argv[1:3]
    python = installed.install("compilers", folder, "")
    env = {**os.environ, "PATH": os.path.dirname(python) + os.pathsep + os.environ["PATH"]}
    with tempfile.TemporaryDirectory() as place:
        faults = check_models(bfcplan, python, env, place) + check_dumps(bfcplan, python, env, place)
    for fault in faults:
        print("FAULT", fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
