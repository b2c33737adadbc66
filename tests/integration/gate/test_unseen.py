#!/usr/bin/env python3
"""The check by samples finds each kind of work that no hook sees: UNHOOKED leaves one call without its hook.
With the whole library it finds nothing.
usage: test_unseen.py LIBRARY UNHOOKED PROGRAM"""

import os
import subprocess
import sys
import unittest

LIBRARY = UNHOOKED = PROGRAM = ""
CALLS = ("cuLaunchKernel", "cuMemcpyDtoDAsync_v2", "cuMemsetD8Async", "cuGraphLaunch", "cuStreamBatchMemOp_v2",
         "cuMemPrefetchAsync_v2", "cuLaunchHostFunc")
FOUND = "work may be submitted unseen: a check found work in another stream than the only one"


def messages(library, mode, call):
    environment = {**os.environ, "BFC_FREE": mode, "BFC_GATE": "1", "BFC_LOG": "info", "WITHOUT_HOOK": call,
                   "SIM_SEED": "1", "SIM_DELAY_US": "100000", "LD_PRELOAD": library}
    done = subprocess.run([PROGRAM, call], env=environment, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise AssertionError(f"{mode} {call}: {done.returncode} {done.stdout} {done.stderr}")
    return done.stderr


class Unseen(unittest.TestCase):
    def test_each_kind_of_work(self):
        for call in CALLS:
            for mode in "lazy", "ordered":
                with self.subTest(call=call, mode=mode):
                    self.assertIn(FOUND, messages(UNHOOKED, mode, call))

    def test_nothing_else(self):
        for call in CALLS:
            with self.subTest(call=call):
                self.assertNotIn(FOUND, messages(LIBRARY, "lazy", call))


if __name__ == "__main__":
    LIBRARY, UNHOOKED, PROGRAM = sys.argv[1:4]
    with open(UNHOOKED, "rb") as library:
        if library.read(4) != b"\x7fELF":
            library.seek(0)
            sys.exit(library.read().decode())  # why there is none
    unittest.main(argv=sys.argv[:1])
