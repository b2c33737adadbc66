#!/usr/bin/env python3
"""Another stream appears while one was alone: by each way and route, in each mode. The bytes are right, and before
it no free of the modes with fences needed one.
usage: test_appears.py LIBRARY PROGRAM"""

import concurrent.futures
import itertools
import os
import subprocess
import sys
import unittest

LIBRARY = PROGRAM = ""
WAYS = ("stream", "own", "thread", "context", "peer", "export", "graph", "green")
ROUTES = ("link", "dlsym", "old", "new")
UNKNOWN = [("unknown", route) for route in ROUTES[1:]]


def run(mode, way, route, **variables):
    environment = {**os.environ, "BFC_FREE": mode, "BFC_GATE": "1", "BFC_STACKS": "off", "BFC_YIELD": "0",
                   "SIM_DEVICES": "2", "LD_PRELOAD": LIBRARY, **variables}
    if way == "unknown":
        environment["SIM_DRIVER_VERSION"] = "99000"
    done = subprocess.run([PROGRAM, way, route], env=environment, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode or done.stderr:
        raise AssertionError(f"{mode} {way} {route}: {done.returncode} {done.stdout} {done.stderr}")
    return dict(line.split(": ") for line in done.stdout.splitlines())


class Appearances(unittest.TestCase):
    def expect(self, mode, **answers):
        cases = [(mode, way, route) for way, route in [*itertools.product(WAYS, ROUTES), *UNKNOWN]]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for case, found in zip(cases, pool.map(lambda case: run(*case), cases)):
                with self.subTest(case=case):
                    self.assertEqual(found["the next owner's bytes"], "yes")
                    self.assertEqual({name: found[name.replace("_", " ")] for name in answers}, answers)

    def test_sync(self):
        self.expect("sync", the_same_block="yes")

    def test_lazy(self):
        self.expect("lazy", frees_needed_a_fence="no", the_same_block="yes", frees_need_a_fence_now="yes")

    def test_ordered(self):
        self.expect("ordered", frees_needed_a_fence="no", the_same_block="yes", frees_need_a_fence_now="yes")

    def test_on_a_full_device_without_room_for_an_event(self):
        refused = ",".join(["cuEventCreate@1", *(f"cuMemAlloc_v2@{number}" for number in range(2, 10))])
        for mode in "lazy", "ordered":
            with self.subTest(mode=mode):
                found = run(mode, "stream", "link", SIM_FAIL=refused)
                self.assertEqual(found["the next owner's bytes"], "yes")


if __name__ == "__main__":
    LIBRARY, PROGRAM = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
