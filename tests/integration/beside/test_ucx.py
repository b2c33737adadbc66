#!/usr/bin/env python3
"""UCX's memory hooks, which patch the code of the functions that they look up: preloaded they are as
many as natively, and see what the pool takes from the driver. With the real libucm where
scripts/fetch-runtimes fetched it. usage: test_ucx.py LIBRARY PROGRAM PATCHER UCX"""

import os
import re
import subprocess
import sys
import unittest

LIBRARY = PROGRAM = PATCHER = UCX = ""
MODES = ("sync", "lazy", "ordered")


class Hooks(unittest.TestCase):
    def run_it(self, *arguments, mode=None):
        env = {n: v for n, v in os.environ.items() if not n.startswith(("BFC_", "UCX_"))}
        env.update(UCX_LOG_LEVEL="warn", UCX_MEM_LOG_LEVEL="info",
                   LD_LIBRARY_PATH=f"{env['LD_LIBRARY_PATH']}:{UCX}")
        if mode:
            env.update(LD_PRELOAD=LIBRARY, BFC_FREE=mode)
        done = subprocess.run([PROGRAM, *arguments], env=env, capture_output=True, text=True,
                              timeout=120)
        if done.returncode == 77:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_who_finds_what(self):
        native = self.run_it(PATCHER)
        self.assertIn("program: libcuda.so.1", native)
        for mode in MODES:
            preloaded = self.run_it(PATCHER, mode=mode)
            self.assertEqual(preloaded.replace("program: libbfcpreload.so", "program: libcuda.so.1"),
                             native)
            self.assertIn("program: libbfcpreload.so", preloaded)

    def hooks(self, mode=None):
        """How many hooks were installed, allocations seen, frees seen."""
        shown = self.run_it("--ucx", mode=mode)
        installed = re.search(r"installed (\d+) on driver API", shown)
        self.assertIsNotNone(installed, shown)
        seen = re.search(r"allocated (\d+), freed (\d+)", shown)
        return tuple(map(int, installed.groups() + seen.groups()))

    def test_real_libucm(self):
        if not os.path.exists(os.path.join(UCX, "libucm.so.0")):
            self.skipTest(f"no libucm.so.0 in {UCX}: scripts/fetch-runtimes fetches it")
        installed, allocated, freed = self.hooks()
        self.assertGreaterEqual(installed, 10)
        self.assertEqual((allocated, freed), (3, 3))
        for mode in MODES:
            now, allocated, _ = self.hooks(mode)
            self.assertEqual(now, installed)
            self.assertEqual(allocated, 2, "the hooks see the two regions")


if __name__ == "__main__":
    LIBRARY, PROGRAM, PATCHER, UCX = sys.argv[1:5]
    unittest.main(argv=sys.argv[:1] + sys.argv[5:], verbosity=2)
