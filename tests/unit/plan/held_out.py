#!/usr/bin/env python3
"""How many seeds miss the capacity on MiniMalloc's A, E and K, and on variants made of them.

BFCPLAN names the program, TRACES the folder with the instances (left out when they are not there).
A line for each instance and variant: how many of SEEDS seeds (default 20) reached no plan within
the capacity in 10 s of processor time, of two threads together (so that a busy machine changes
nothing), and how many seconds of it the others took.
VARIANTS, names with commas between, takes only these; MAKES (default 2) is how many of each that is
drawn at random are made. Nothing is asserted here.
"""

import csv
import itertools
import os
import random
import resource
import signal
import statistics
import subprocess
import sys
import tempfile

BFCPLAN = os.environ["BFCPLAN"]
TRACES = os.environ.get("TRACES", "")
SEEDS = int(os.environ.get("SEEDS", "20"))
MAKES = int(os.environ.get("MAKES", "2"))
CAPACITY = 1 << 20
SECONDS = 10
PATIENCE = 600  # seconds by the clock
SHORTER = 0.01  # of a lifetime, at each of its ends
SHIFT = 2000  # ticks of 2^20, either way


def read(path):
    """Rows (lower, upper, size)."""
    with open(path, newline="", encoding="utf-8") as file:
        return [tuple(int(row[key]) for key in ("lower", "upper", "size"))
                for row in csv.DictReader(file)]


def write(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        file.write("id,lower,upper,size\n")
        for i, row in enumerate(rows):
            file.write(f"{i},{row[0]},{row[1]},{row[2]}\n")


def bound_of(rows):
    """The most that is alive at a time."""
    events = sorted(itertools.chain(((lower, 1, size) for lower, _, size in rows),
                                    ((upper, 0, -size) for _, upper, size in rows)))
    return max(itertools.accumulate(change for _, _, change in events))


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))


def run(path, out, capacity, seed):
    """Whether the capacity was reached, and the seconds of processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    status = subprocess.run([BFCPLAN, "solve", path, "--offsets", out, "--align", "1",
                             "--capacity", str(capacity), "--time-limit", str(PATIENCE),
                             "--threads", "2", "--seed", str(seed)], preexec_fn=limit,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            check=False).returncode
    if status not in (0, 3, -signal.SIGXCPU):
        sys.exit(f"{path}, seed {seed}: exit status {status}")
    return status == 0, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def as_given(rows, _draw, _plan):
    return rows


def turned(rows, _draw, _plan):
    last = max(upper for _, upper, _ in rows)
    return [(last - upper, last - lower, size) for lower, upper, size in rows]


def reordered(rows, draw, _plan):
    return draw.sample(rows, len(rows))


def merged(rows, draw, plan):
    """Pairs become one: of equal lifetimes one above the other, or of equal places one after the
    other, in a known plan."""
    boxes = {(lower, upper, offset): size for (lower, upper, size), offset in zip(rows, plan)}
    for key in draw.sample(sorted(boxes), len(boxes)):
        lower, upper, offset = key
        size = boxes.get(key)
        above = (lower, upper, offset + size) if size else None
        after = [k for k in boxes if k[0] == upper and k[2] == offset and boxes[k] == size]
        if above in boxes:
            boxes[key] = size + boxes.pop(above)
        elif size and after:
            boxes[lower, after[0][1], offset] = size
            del boxes[after[0]], boxes[key]
    return [(lower, upper, size) for (lower, upper, _), size in boxes.items()]


def shuffled(rows, draw, _plan):
    """Sizes change places among lifetimes of equal length."""
    sizes = {}
    for lower, upper, size in rows:
        sizes.setdefault(upper - lower, []).append(size)
    for group in sizes.values():
        draw.shuffle(group)
    return [(lower, upper, sizes[upper - lower].pop()) for lower, upper, _ in rows]


def joined(rows, _draw, _plan):
    """Equal lifetimes become one."""
    sums = {}
    for lower, upper, size in rows:
        sums[lower, upper] = sums.get((lower, upper), 0) + size
    return [(lower, upper, size) for (lower, upper), size in sums.items()]


def shifted(rows, draw, _plan):
    return [(lower + by, upper + by, size)
            for lower, upper, size in rows for by in (draw.randint(0, 2 * SHIFT),)]


def shortened(rows, draw, _plan):
    result = []
    for lower, upper, size in rows:
        most = SHORTER * (upper - lower)
        result.append((lower + int(draw.random() * most), upper - int(draw.random() * most), size))
    return result


# How it is made; whether at random; whether a plan within the capacity is known to exist: else the
# capacity is the bound, which may be out of reach.
VARIANTS = {"as given": (as_given, False, True), "time reversed": (turned, False, True),
            "rows in another order": (reordered, True, True), "pairs merged": (merged, True, True),
            "lifetimes shortened by up to 1 % at each end": (shortened, True, True),
            "sizes shuffled": (shuffled, True, False), "equal lifetimes joined": (joined, False, False),
            "lifetimes shifted": (shifted, True, False)}


def measure(path, out, capacity):
    missed, seconds = 0, []
    for seed in range(1, SEEDS + 1):
        good, took = run(path, out, capacity, seed)
        missed += not good
        seconds += [took] if good else []
    return missed, seconds


def offsets_of(path, out):
    run(path, out, CAPACITY, 1)
    with open(out, newline="", encoding="utf-8") as file:
        return [int(row["offset"]) for row in csv.DictReader(file)]


def main():
    wanted = os.environ.get("VARIANTS", ",".join(VARIANTS)).split(",")
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "rows.csv"), os.path.join(folder, "out.csv")
        for instance in "AEK":
            given = os.path.join(TRACES, f"minimalloc-{instance}.1048576.csv")
            if not os.path.exists(given):
                continue
            plan = offsets_of(given, out)
            for name in wanted:
                make, at_random, reachable = VARIANTS[name]
                missed, seconds, makes = 0, [], MAKES if at_random else 1
                for number in range(makes):
                    rows = make(read(given), random.Random(number), plan)
                    write(path, rows)
                    more, took = measure(path, out, CAPACITY if reachable else bound_of(rows))
                    missed += more
                    seconds += took
                print(f"{instance} | {name} | {missed} of {makes * SEEDS} missed | "
                      + (f"{statistics.median(seconds):.2f} s, at most {max(seconds):.2f}"
                         if seconds else "-"), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
