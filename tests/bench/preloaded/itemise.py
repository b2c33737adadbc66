#!/usr/bin/env python3
"""What a preloaded pair of allocation and free costs, and a launch, over a driver that costs nothing.

usage: itemise.py LIBRARY PAIR LAUNCH [--json] [--no-counts]

Times by PAIR (pair.c): the whole preloaded pair, the pool's own pair in the same mode of free and
on the same blocks, and the difference. Instructions by callgrind, where it is installed: each
layer's, from the difference of two runs of different length. The pair's block is cut from a larger one; the last rows
are of a pair that finds a free block of its size. Of a launch (launch.c): natively, and
preloaded without the gate and with it, in turns. Nothing is asserted.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

MODES = ["sync", "lazy", "ordered"]
PAIRS = 100000  # pair.c's, a round

# Which layer a source file is of. What is inlined counts for the file that it stands in.
LAYERS = {
    "entry": "hooks.c allocate_memory.c free_memory.c memory.h open_arena.h feature.h driver.h process.h export_handle.h block_attributes.h "
             "group.h trace_writer.h",
    "context": "arena.c arena.h region_map.c region_map.h current.c current.h",
    "capture, peers": "capture.c capture.h contexts.c contexts.h peers.c peers.h",
    "mode of free": "free_modes.c free_modes.h free_fence.c free_fence.h allocate.c allocate.h "
                    "free_while_capturing.c settle_arena.c free_in_stream_order.c",
    "fences": "fences.c fences.h fence_event.c fence_event.h",
    "gate": "counter.h counted_frees.c only_stream.c only_stream.h submissions.c program_waits.c check_streams.c",
    "segment": "events.c events.h segment.h",
    "driver (empty)": "null_driver.c",
    "program": "pair.c",
}
OF_FILE = {name: layer for layer, names in LAYERS.items() for name in names.split()}
OTHER = "C library"


def layer_of(path):
    name = path.rpartition("/")[2]
    if "/pool/" in path:
        return "pool"
    return OF_FILE.get(name, OTHER)


def environment(library, mode):
    variables = dict(os.environ, BFC_FREE=mode)
    if library:
        variables["LD_PRELOAD"] = library
    return variables


def time_pair(library, pair, mode, stats=None, block="cut"):
    variables = environment(library, mode or "sync")
    if stats is not None:
        variables["BFC_STATS"] = stats
    run = subprocess.run([pair, mode or "native", "101", "all", block], env=variables, stdout=subprocess.PIPE,
                         check=True)
    return json.loads(run.stdout)


def read_counts(path):
    """Instructions of each layer itself, from a file of callgrind's."""
    names, counts = {}, {}
    layer, skip = OTHER, False
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            key, _, value = line.partition("=")
            if key in ("fl", "fi", "fe", "cfi", "cfl"):
                number, _, name = value.strip().partition(" ")
                if name:
                    names[number] = name
                if key[0] == "f":
                    layer = layer_of(names[number])
            elif key == "calls":
                skip = True  # the next line is what the called function cost
            elif line[:1].isdigit() or line[:1] in "+-*":
                fields = line.split()
                if not skip and len(fields) == 2:
                    counts[layer] = counts.get(layer, 0) + int(fields[1])
                skip = False
    return counts


def count_once(library, pair, mode, rounds, side, block):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "callgrind")
        subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out, pair, mode,
                        str(rounds), side, block], env=environment(library, mode),
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        return read_counts(out)


def count(library, pair, mode, side, block="cut"):
    less, more = (count_once(library, pair, mode, rounds, side, block) for rounds in (1, 2))
    return {layer: (more[layer] - less.get(layer, 0)) / PAIRS for layer in more}


def measure(library, pair, counts):
    result = {"native": time_pair(None, pair, None)}
    for mode in MODES:
        result[mode] = time_pair(library, pair, mode)
        result[mode]["over_pool_ns_without_segment"] = time_pair(library, pair, mode,
                                                                 "0")["over_pool_ns"]
        result[mode]["same_size"] = time_pair(library, pair, mode, block="same")
        if counts:
            ready = mode == "sync"
            own = count(None, pair, mode, "ready" if ready else "pool")
            result[mode]["pool_instructions"] = own.get("pool", 0)
            result[mode]["instructions"] = count(library, pair, mode, "preloaded")
            result[mode]["same_size"]["instructions"] = count(library, pair, mode, "preloaded", "same")
    return result


# Ways to launch, by BFC_GATE (None: natively); what a driver's own launch takes, in steps of
# launch.c, each of about a cycle.
GATES = {"native": None, "gate off": "off", "gate on": "on"}
LAUNCH_STEPS = {"of no time": 0, "of 5,000 cycles": 5000}
LAUNCHES, TURNS, SLICES = 2000, 7, 200


def launch_environment(library, gate):
    return dict(environment(library, "ordered"), BFC_GATE=gate) if gate else dict(os.environ)


def count_launch(library, launch, gate):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "callgrind")
        totals = []
        for slices in ("1", "2"):
            subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out, launch, "1", slices],
                           env=launch_environment(library, gate), stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=True)
            totals.append(sum(read_counts(out).values()))
    return (totals[1] - totals[0]) / LAUNCHES


def measure_launches(library, launch, counts):
    """Of two threads: the median rate of each way, the ways taking turns."""
    result = {}
    for name, steps in LAUNCH_STEPS.items():
        rates = {way: [] for way in GATES}
        for _ in range(TURNS):
            for way, gate in GATES.items():
                run = subprocess.run([launch, "2", str(SLICES), str(steps)], env=launch_environment(library, gate),
                                     stdout=subprocess.PIPE, check=True)
                rates[way].append(json.loads(run.stdout)["launches_per_second"])
        result[name] = {way: statistics.median(of) for way, of in rates.items()}
    if counts:
        result["instructions"] = {way: count_launch(library, launch, gate) for way, gate in GATES.items()}
    return result


def row(name, figures, form="{:.1f}"):
    cells = ["-" if figure is None else form.format(figure) for figure in figures]
    print(f"{name:32}" + "".join(f"{cell:>10}" for cell in cells))


def show(result, counts):
    print(f"{'ns a pair':32}" + "".join(f"{mode:>10}" for mode in MODES))
    row("pool's own, this mode", [result[m]["pool_ns"] for m in MODES])
    row("preloaded", [result[m]["ns_per_pair"] for m in MODES])
    row("over the pool's", [result[m]["over_pool_ns"] for m in MODES])
    row("over the pool's, no segment", [result[m]["over_pool_ns_without_segment"] for m in MODES])
    row("over the pool's, ready blocks", [result[m]["over_ready_pool_ns"] for m in MODES])
    row("preloaded, same size", [result[m]["same_size"]["ns_per_pair"] for m in MODES])
    row("over the pool's, same size", [result[m]["same_size"]["over_pool_ns"] for m in MODES])
    row("native (the empty driver)", [result["native"]["ns_per_pair"]] * 3)
    if not counts:
        return
    print(f"\n{'instructions a pair':32}" + "".join(f"{mode:>10}" for mode in MODES))
    row("pool's own, this mode", [result[m]["pool_instructions"] for m in MODES])
    for layer in ["pool", *LAYERS, OTHER]:
        row(layer, [result[m]["instructions"].get(layer, 0) for m in MODES])
    row("in all", [sum(result[m]["instructions"].values()) for m in MODES])
    row("in all, same size", [sum(result[m]["same_size"]["instructions"].values()) for m in MODES])


def show_launches(result):
    print(f"\n{'a launch':32}" + "".join(f"{way:>10}" for way in GATES))
    for name in LAUNCH_STEPS:
        row(f"ns, two threads, {name}", [2e9 / rate for rate in result[name].values()])
        row("rate, by the native one", [rate / result[name]["native"] for rate in result[name].values()], "{:.3f}")
    if "instructions" in result:
        row("instructions", result["instructions"].values())


def main():
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    flags = [a for a in sys.argv[1:] if a.startswith("--")]
    if len(arguments) != 3 or set(flags) - {"--json", "--no-counts"}:
        sys.exit("usage: itemise.py LIBRARY PAIR LAUNCH [--json] [--no-counts]")
    counts = "--no-counts" not in flags and shutil.which("valgrind") is not None
    library, pair, launch = arguments
    result = measure(library, pair, counts)
    result["launch"] = measure_launches(library, launch, counts)
    if "--json" in flags:
        print(json.dumps(result))
    else:
        show(result, counts)
        show_launches(result["launch"])


main()
