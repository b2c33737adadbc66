#!/usr/bin/env python3
"""What sleep costs, over the stand-in GPU, as one line of JSON: how fast a job falls asleep and wakes, beside plain
copies of the driver and a plain copy of the host; and what jobs that each need 90 % of the device lose against
running one after the other.
usage: turns.py [--mib=N] [--rounds=N] [--quantum=SECONDS]... [--jobs=N]... (LIBCUDA, PRELOAD and BFCSTAT in the
environment)"""

import argparse
import json
import os
import pathlib
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "integration/sleep"))
from jobs import ON, Job  # noqa: E402

MIB = 1 << 20
WORK = """
def work(mib, rounds, number):
    a = allocate(mib*MIB)
    wrong = 0
    for round in range(rounds):
        value = (number * 31 + round) % 256
        wrong += fill(a, value, mib*MIB) != 0
        wrong += not is_filled(a + (round % mib)*MIB, value, MIB)
    wrong += not is_filled(a, value, mib*MIB)
    return wrong, time.monotonic()
def copies(a, mib):
    data = ctypes.create_string_buffer(4*MIB)
    seconds = []
    for call in cuda.cuMemcpyDtoH_v2, cuda.cuMemcpyHtoD_v2:
        began = time.monotonic()
        for at in range(a, a + mib*MIB, 4*MIB):
            call(*((data, u64(at)) if call is cuda.cuMemcpyDtoH_v2 else (u64(at), data)), size_t(4*MIB))
        seconds.append(time.monotonic() - began)
    return seconds
def host_copy(mib):
    data, to = ctypes.create_string_buffer(4*MIB), ctypes.create_string_buffer(4*MIB)
    began = time.monotonic()
    for _ in range(mib // 4):
        ctypes.memmove(to, data, 4*MIB)
    return time.monotonic() - began
"""


class Bench(unittest.TestCase):
    """Jobs need a test that ends them."""

    def job(self, **settings):
        job = Job(self, {**ON, **settings})
        job.do("import time; exec(" + repr(WORK) + ", globals())")
        return job

    def rates(self, mib, folder):
        job = self.job(SIM_MEMORY=f"{2 * mib}M", BFC_SLEEP_TO=folder)
        job.do(f"a = allocate({mib}*MIB)")
        job.do(f"[fill(a + i*MIB, 1 + i % 255, MIB) for i in range({mib})] and None")
        job.do("synchronize()")
        out, back = job.do(f"copies(a, {mib})")
        (host,) = job.do(f"[host_copy({mib})]")
        falls, wakes = [], []
        for _ in range(5):
            job.do("fill(a, 5, 1)")
            job.fall_asleep()
            job.do("read(a, 1)")
            sleep = job.sleep()
            falls.append(sleep["fall_ns"] / 1e9)
            wakes.append(sleep["wake_ns"] / 1e9)
        job.end()
        rate = lambda seconds: round(mib * MIB / 1e9 / seconds, 2)  # noqa: E731
        return {"mib": mib, "to": "folder" if folder else "memory", "fall_gb_s": rate(min(falls)), "wake_gb_s": rate(min(wakes)),
                "copy_out_gb_s": rate(out), "copy_in_gb_s": rate(back), "host_copy_gb_s": rate(host)}

    def turns(self, count, rounds, quantum, settings):
        jobs = [self.job(BFC_SLEEP_QUANTUM=str(quantum), **settings) for _ in range(count)]
        began, ends = time.monotonic(), []
        for number, job in enumerate(jobs):
            job.begin(f"work(58, {rounds}, {number})")
        for job in jobs:
            wrong, end = job.answer()
            if wrong:
                sys.exit(f"wrong contents: {job.said()}")
            ends.append(round(end - began, 2))
        told = [job.sleep() for job in jobs]
        for job in jobs:
            job.end()
        return ends, [sleep["falls"] for sleep in told], told


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--mib", type=int, default=256)
    options.add_argument("--rounds", type=int, default=100)
    options.add_argument("--quantum", type=float, action="append")
    options.add_argument("--jobs", type=int, action="append")
    options = options.parse_args()
    bench = Bench()
    result = {"rates": [], "turns": []}
    with tempfile.TemporaryDirectory() as folder:
        result["rates"] = [bench.rates(options.mib, place) for place in ("", folder)]
        settings = {"SIM_SHARE": f"{folder}/share", "SIM_MEMORY": "64M"}
        for count in options.jobs or (2, 3):
            alone = sum(bench.turns(1, options.rounds, 1, settings)[0][0] for _ in range(count))
            for quantum in options.quantum or (0.1, 0.5, 2):
                ends, falls, told = bench.turns(count, options.rounds, quantum, settings)
                result["turns"].append({"jobs": count, "quantum": quantum, "one_after_the_other_s": round(alone, 2),
                                        "in_turns_s": max(ends), "lost_s": round(max(ends) - alone, 2), "ends_s": ends,
                                        "falls": falls})
    bench.doCleanups()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
