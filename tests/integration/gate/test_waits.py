#!/usr/bin/env python3
"""The driver calls that frees and allocations make around the program's own waits: in mode sync none after a wait; in
the others a burst of frees shares one fence, and after a wait no question is needed.
usage: test_waits.py LIBRARY PROGRAM..."""

import os
import subprocess
import sys
import unittest

LIBRARY = ""
PROGRAMS = []
BLOCKS = 10
WAITS = ("context", "driver", "named context")


def run(program, mode, gate):
    environment = {**os.environ, "BFC_FREE": mode, "BFC_GATE": gate, "BFC_STACKS": "off", "BFC_YIELD": "0", "LD_PRELOAD": LIBRARY}
    done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=60, check=True)
    lines = (line.split(": ") for line in done.stdout.splitlines())
    return {name: tuple(map(int, counts.split())) for name, counts in lines}


class Waits(unittest.TestCase):
    def look(self, mode, gate="1"):
        """Of each program and wait: (driver calls of any kind, those that record, wait, ask or allocate) of a burst of
        frees, of the wait, of allocations after it, of frees after it."""
        for program in PROGRAMS:
            counts = run(program, mode, gate)
            for wait in WAITS:
                with self.subTest(program=program, wait=wait):
                    yield [counts[f"{wait}, {what}"] for what in
                           ("a burst of frees", "the wait", "allocations after it", "frees after it")]

    def test_sync(self):
        for burst, wait, allocations, frees in self.look("sync"):
            self.assertEqual([burst[1], wait[0], allocations[1], frees], [1, 1, 0, (0, 0)])

    def test_lazy_and_ordered(self):
        for mode in "lazy", "ordered":
            for burst, wait, allocations, frees in self.look(mode):
                self.assertLessEqual(burst[1], 1)
                self.assertEqual(wait[0], 1)
                self.assertEqual(allocations[1], 0)
                self.assertLessEqual(frees[1], 1)

    def test_off(self):
        for burst, _, _, frees in self.look("sync", gate="0"):
            self.assertEqual([burst[1], frees[1]], [BLOCKS, BLOCKS])


if __name__ == "__main__":
    LIBRARY, *PROGRAMS = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
