#!/usr/bin/env python3
"""Programs with one stream, in C by each route and in Python: a round more makes no record, wait, question or driver
allocation more than natively, and no more memory is reserved than in mode sync. An allocation asks once for the
current context, and a free does not.
usage: test_one_stream.py LIBRARY [PROGRAM...]"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

LIBRARY = ""
COMMANDS = []
FEW, MANY = 20, 220  # fewer frees than there are to a check by samples
HERE = os.path.dirname(os.path.abspath(__file__))


def play(command, rounds, **variables):
    """What the stand-in counted of a run, and the most that was reserved."""
    with tempfile.NamedTemporaryFile() as stats:
        environment = {**os.environ, "SIM_STATS": stats.name, "BFC_SUMMARY": "1", "BFC_STACKS": "off", "BFC_YIELD": "0", **variables}
        done = subprocess.run([*command, str(rounds)], env=environment, capture_output=True, text=True, timeout=60,
                              check=False)
        if done.returncode:
            raise AssertionError(f"{command} {variables}: {done.returncode} {done.stdout} {done.stderr}")
        counts = json.loads(stats.read().splitlines()[-1])
    calls = counts["calls"]
    counts["queries"] = calls.get("cuEventQuery", 0) + calls.get("cuStreamQuery", 0)
    counts["asks"] = calls.get("cuCtxGetCurrent", 0) + calls.get("cuCtxGetId", 0)
    reserved = re.search(r"most reserved ([\d.]+) (\w+)", done.stderr)
    return counts, reserved and float(reserved[1]) * {"KiB": 1, "MiB": 1 << 10, "GiB": 1 << 20}[reserved[2]]


def growth(command, **variables):
    """What more rounds add."""
    few, _ = play(command, FEW, **variables)
    many, reserved = play(command, MANY, **variables)
    names = ("event_records", "device_waits", "waits", "queries", "cuMemAlloc", "asks")
    return {name: many[name] - few[name] for name in names}, reserved


class OneStream(unittest.TestCase):
    def test_nothing_more_than_natively(self):
        for command in COMMANDS:
            native, _ = growth(command)
            native["cuMemAlloc"] = 0
            _, reserved_in_sync = growth(command, LD_PRELOAD=LIBRARY, BFC_FREE="sync")
            for mode in "lazy", "ordered":
                with self.subTest(command=command, mode=mode):
                    found, reserved = growth(command, LD_PRELOAD=LIBRARY, BFC_FREE=mode, BFC_GATE="1")
                    self.assertEqual({**native, "waits": min(native["waits"], found["waits"])}, {**found, "asks": native["asks"]})
                    self.assertLessEqual(reserved, reserved_in_sync)


    def test_an_allocation_asks_for_its_context_and_a_free_does_not(self):
        for command in COMMANDS:
            if command[0] != sys.executable:  # the others load libraries in each round, after which the runtime itself serves
                continue
            native, _ = growth(command)
            # Natively the stand-in's runtime asks in each of its calls; preloaded it is not called.
            less = 2 * (MANY - FEW) if "cudart" in command[-1] else 0
            for mode in "lazy", "ordered":
                with self.subTest(command=command, mode=mode):
                    found, _ = growth(command, LD_PRELOAD=LIBRARY, BFC_FREE=mode, BFC_GATE="1")
                    self.assertEqual(found["asks"], native["asks"] - less + MANY - FEW)


if __name__ == "__main__":
    LIBRARY = sys.argv[1]
    COMMANDS = [[program, stream] for program in sys.argv[2:] for stream in ("legacy", "created")]
    COMMANDS += [[sys.executable, os.path.join(HERE, "one_stream.py"), name] for name in ("libcuda.so.1", "libcudart.so.13")]
    unittest.main(argv=sys.argv[:1])
