#!/usr/bin/env python3
"""Others' programs with one stream over the stand-in GPU: steps more make no record, wait, question or allocation of
the driver more than natively in the modes with fences, and no more memory is reserved than in mode sync.

usage: one_stream.py LIBRARY SIM FOLDER INCLUDE CLIENT..."""

import json
import os
import re
import subprocess
import sys
import tempfile

from installed import install

HERE = os.path.dirname(os.path.abspath(__file__))
FORMS = {"numba": "short", "cupy": "long", "torch": "long"}
FEW, MANY = 20, 60  # fewer frees than there are to a check by samples


def play(python, client, steps, sim, **variables):
    """What the stand-in counted of a run, and the most that was reserved."""
    with tempfile.TemporaryDirectory() as folder:
        env = {name: value for name, value in os.environ.items() if not name.startswith(("BFC_", "SIM_", "LD_"))}
        env.update(LD_LIBRARY_PATH=sim, SIM_KERNELS="skip", SIM_MEMORY="2G", SIM_STATS=os.path.join(folder, "stats"),
                   PYTORCH_NO_CUDA_MEMORY_CACHING="1", NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT="0", BFC_SUMMARY="1",
                   BFC_STACKS="off", BFC_YIELD="0", HOME=folder, XDG_CACHE_HOME=folder, **variables)
        done = subprocess.run([python, os.path.join(HERE, "one_stream_steps.py"), client, str(steps)], env=env,
                              cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{client} {variables}: status {done.returncode}\n{done.stdout}\n{done.stderr[-3000:]}")
        with open(env["SIM_STATS"], encoding="utf-8") as file:
            counts = json.loads(file.readlines()[-1])
    counts["queries"] = sum(counts["calls"].get(name, 0) for name in ("cuEventQuery", "cuStreamQuery"))
    reserved = re.search(r"most reserved ([\d.]+) (\w+)", done.stderr)
    return counts, reserved and float(reserved[1]) * {"KiB": 1, "MiB": 1 << 10, "GiB": 1 << 20}[reserved[2]]


def growth(*command, **variables):
    """What more steps add."""
    python, client, sim = command
    few, _ = play(python, client, FEW, sim, **variables)
    many, reserved = play(python, client, MANY, sim, **variables)
    names = ("event_records", "device_waits", "waits", "queries", "cuMemAlloc")
    return {name: many[name] - few[name] for name in names}, reserved


def look(client, library, python, sim):
    native, _ = growth(python, client, sim)
    _, reserved_in_sync = growth(python, client, sim, LD_PRELOAD=library, BFC_FREE="sync")
    good = native["cuMemAlloc"] >= MANY - FEW
    print(f"{client}: natively {native}; reserved in sync {reserved_in_sync} KiB")
    for mode in "lazy", "ordered":
        found, reserved = growth(python, client, sim, LD_PRELOAD=library, BFC_FREE=mode, BFC_GATE="1")
        print(f"  {mode}: {found}; reserved {reserved} KiB")
        most = {**native, "cuMemAlloc": 0}
        good = good and all(found[name] <= most[name] for name in most) and reserved <= reserved_in_sync
    return good


def main():
    library, sim, folder, include = map(os.path.abspath, sys.argv[1:5])
    good = [look(client, library, install(FORMS[client], folder, sim, include), sim) for client in sys.argv[5:]]
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
