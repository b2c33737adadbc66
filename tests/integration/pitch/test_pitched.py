#!/usr/bin/env python3
"""Pitched memory comes from the pool: test_pitched.py LIBRARY PROGRAM [pages]"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

LIBRARY, PROGRAM = sys.argv[1:3]
BACKINGS = ["malloc", *sys.argv[3:]]
WIDTHS = 9  # of 14 shapes five have a width whose pitch another one has told
ROUNDS, SHAPES = 30, 14


class Pitched(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.stats = f"{folder.name}/stats"

    def run_program(self, *arguments, library=LIBRARY, **variables):
        done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=100, check=True,
                              env=dict(os.environ, SIM_MEMORY="1G", SIM_STATS=self.stats, LD_PRELOAD=library,
                                       **variables))
        with open(self.stats, encoding="utf-8") as file:
            self.calls = json.loads(file.readlines()[-1])
        return done

    def test_the_driver_is_asked_once_a_width(self):
        native = self.run_program(library="").stdout
        self.assertEqual(self.calls["calls"]["cuMemAllocPitch_v2"], ROUNDS * SHAPES)
        for backing in BACKINGS:
            for mode in "sync", "lazy", "ordered":
                with self.subTest(backing=backing, mode=mode):
                    done = self.run_program(BFC_FREE=mode, BFC_BACKING=backing, BFC_SUMMARY="1")
                    self.assertEqual(done.stdout, native)
                    self.assertEqual(self.calls["calls"]["cuMemAllocPitch_v2"], WIDTHS)
                    self.assertLessEqual(self.calls["calls"].get("cuMemAlloc_v2", 0), 10)
                    pooled = int(re.search(r"([\d,]+) allocations", done.stderr)[1].replace(",", ""))
                    self.assertEqual(pooled, ROUNDS * SHAPES - WIDTHS)

    def test_the_limit_holds(self):
        self.assertEqual(self.run_program("hold", BFC_LIMIT="64M", BFC_LOG="off").stdout, "64 MiB, then 2\n")

    def test_the_limit_holds_for_the_first_of_a_width(self):
        self.assertEqual(self.run_program("once", library="").stdout, "0\n")
        self.assertEqual(self.run_program("once", BFC_LIMIT="64M", BFC_LOG="off").stdout, "2\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
