#!/usr/bin/env python3
"""PyTorch's reader of memory snapshots takes those of bfcreplay --snapshot and bfcstat snapshot.

usage: memory_viz.py BFCREPLAY BFCSTAT LIBRARY HOLDER FOLDER   The reader is kept in FOLDER; without it, and without PyPI, the test is skipped.
"""
import importlib.util
import os
import pickle
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


def read(reader, snapshot, page):
    """What the reader tells; it makes its pages too."""
    for what in "trace_plot", "segment_plot":
        subprocess.run([sys.executable, reader, what, snapshot, "-o", page], check=True)
        assert os.path.getsize(page) > os.path.getsize(snapshot), what
    return subprocess.run([sys.executable, reader, "trace", snapshot], stdout=subprocess.PIPE, text=True,
                          check=True).stdout


def check_replay(bfcreplay, reader, folder):
    trace, snapshot, page = (os.path.join(folder, name) for name in ("t.csv", "t.pickle", "t.html"))
    write_trace(trace)
    subprocess.run([bfcreplay, trace, "--memory=8G", "--snapshot", snapshot], stdout=subprocess.DEVNULL, check=True)
    told = read(reader, snapshot, page)
    names = re.findall(r"(?m)^(\w+) = \w+\[", told)
    assert len(names) == 1000, f"{len(names)} allocations told"
    assert told.count("del ") >= 1000 - 100, "frees told"


def held(reader, snapshot):
    """Bytes by innermost function, out of the lines that the reader has its flame graph made of by another program."""
    spec = importlib.util.spec_from_file_location("memory_viz", reader)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with open(snapshot, "rb") as file:
        lines = module.memory(pickle.load(file), format_flamegraph=str).splitlines()
    sums = {}
    for line in lines:
        stack, size = line.rsplit(" ", 1)
        place = re.search(r"site_\w+", stack)
        if place:
            sums[place[0]] = sums.get(place[0], 0) + int(size)
    return sums


def check_job(bfcstat, library, holder, reader, folder):
    """1,028 blocks of two places are in use, and the last calls are pairs of a third."""
    snapshot, page = (os.path.join(folder, name) for name in ("j.pickle", "j.html"))
    env = dict(os.environ, LD_PRELOAD=library, SIM_MEMORY="4G", BFC_STACKS="all")
    job = subprocess.Popen([holder, "plain"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    job.stdout.readline()
    subprocess.run([bfcstat, "snapshot", "-o", snapshot, str(job.pid)], stdout=subprocess.DEVNULL, check=True)
    job.communicate()
    told = read(reader, snapshot, page)
    assert len(re.findall(r"(?m)^\w+ = \w+\[", told)) > 2000, "allocations told"
    assert held(reader, snapshot) == {"site_large": 256 << 20, "site_small": 64 << 20}


def main(bfcreplay, bfcstat, library, holder, folder):
    reader = os.path.join(folder, "memory_viz.py")
    if not os.path.exists(reader):
        os.makedirs(folder, exist_ok=True)
        fetch(reader)
    with tempfile.TemporaryDirectory() as made:
        check_replay(bfcreplay, reader, made)
        check_job(bfcstat, library, holder, reader, made)


if __name__ == "__main__":
    main(*sys.argv[1:])
