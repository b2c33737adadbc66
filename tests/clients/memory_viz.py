#!/usr/bin/env python3
"""PyTorch's reader of memory snapshots takes those of bfcreplay --snapshot.

usage: memory_viz.py BFCREPLAY FOLDER   The reader is kept in FOLDER; without it, and without PyPI, the test is skipped.
"""
import os
import random
import re
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
INSIDE = "torch/cuda/_memory_viz.py"
SKIPPED = 77


def fetch(reader):
    """The wheel is another platform's: nothing of it but this file, which is Python, is used."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes",
                               "--only-binary=:all:", "--platform", "macosx_11_0_arm64", "--implementation", "cp",
                               "--python-version", "3.11", "--abi", "cp311", "-d", folder, "-r",
                               os.path.join(HERE, "memory_viz.txt")], check=False)
        if done.returncode:
            print("skipped: pip cannot download PyTorch's wheel")
            sys.exit(SKIPPED)
        with zipfile.ZipFile(os.path.join(folder, os.listdir(folder)[0])) as wheel, open(reader, "wb") as file:
            file.write(wheel.read(INSIDE))


def write_trace(path):
    chance = random.Random(1)
    with open(path, "w", encoding="utf-8") as file:
        file.write("id,lower,upper,size\n")
        for i in range(1000):
            file.write(f"r{i},{2 * i},{2 * i + 1 + 2 * chance.randrange(50)},{chance.randrange(1, 40) * 65536}\n")


def main(bfcreplay, folder):
    reader = os.path.join(folder, "memory_viz.py")
    if not os.path.exists(reader):
        os.makedirs(folder, exist_ok=True)
        fetch(reader)
    with tempfile.TemporaryDirectory() as made:
        trace, snapshot, page = (os.path.join(made, name) for name in ("t.csv", "t.pickle", "t.html"))
        write_trace(trace)
        subprocess.run([bfcreplay, trace, "--memory=8G", "--snapshot", snapshot], stdout=subprocess.DEVNULL, check=True)
        told = subprocess.run([sys.executable, reader, "trace", snapshot], stdout=subprocess.PIPE, text=True,
                              check=True).stdout
        names = re.findall(r"(?m)^(\w+) = \w+\[", told)
        assert len(names) == 1000, f"{len(names)} allocations told"
        assert told.count("del ") >= 1000 - 100, "frees told"
        for what in "trace_plot", "segment_plot":
            subprocess.run([sys.executable, reader, what, snapshot, "-o", page], check=True)
            assert os.path.getsize(page) > os.path.getsize(snapshot), what


if __name__ == "__main__":
    main(*sys.argv[1:])
