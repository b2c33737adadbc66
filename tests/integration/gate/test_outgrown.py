#!/usr/bin/env python3
"""One stream: in lazy and ordered no more memory is reserved than in sync, and frees wait rarely.
usage: test_outgrown.py OUTGROWN PRELOAD (BFC_TEST_PROGRAMS: how many programs are drawn, 24)"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

OUTGROWN = PRELOAD = ""
PROGRAMS = int(os.environ.get("BFC_TEST_PROGRAMS", "24"))


def run(mode, seed):
    """What is reserved at the end and at most, how many frees waited, and how many regions went back."""
    with tempfile.NamedTemporaryFile() as stats:
        environment = {**os.environ, "BFC_FREE": mode, "BFC_STACKS": "off", "BFC_YIELD": "0", "SIM_MEMORY": "8G",
                       "SIM_STATS": stats.name, "LD_PRELOAD": PRELOAD}
        done = subprocess.run([OUTGROWN, str(seed)], env=environment, capture_output=True, text=True, timeout=60,
                              check=True)
        return *map(int, done.stdout.split()), json.loads(stats.read())["calls"].get("cuMemFree_v2", 0)


class Outgrown(unittest.TestCase):
    def test_regions_go_back_as_in_sync(self):
        all_given_back = 0
        for seed in range(PROGRAMS):
            reserved_in_sync, most_in_sync, _, given_back = run("sync", seed)
            all_given_back += given_back
            for mode in "lazy", "ordered":
                with self.subTest(seed=seed, mode=mode):
                    reserved, most, waiting, given_back = run(mode, seed)
                    self.assertLessEqual(reserved, reserved_in_sync)
                    self.assertLessEqual(most, most_in_sync)
                    self.assertLessEqual(waiting, given_back)
        self.assertGreater(all_given_back, 0)


if __name__ == "__main__":
    OUTGROWN, PRELOAD = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
