#!/usr/bin/env python3
"""An object that is linked to a call which is newer than the library's tables turns the gate off: one that the
program brings along, and one that is loaded after the driver.
usage: test_newer.py LIBRARY LATE EARLY PLUGIN"""

import os
import subprocess
import sys
import unittest

LIBRARY = LATE = EARLY = PLUGIN = ""
ROUNDS = 50
OFF = "work may be submitted unseen: cuStreamBeginUnheardOfCapture"


def run(program, mode, plugin):
    environment = {**os.environ, "BFC_FREE": mode, "BFC_GATE": "1", "BFC_LOG": "info", "BFC_YIELD": "0",
                   "LD_PRELOAD": LIBRARY}
    done = subprocess.run([program, plugin], env=environment, capture_output=True, text=True, timeout=60, check=True)
    return {name: int(records) for name, records in (line.split(": ") for line in done.stdout.splitlines())}, done.stderr


class Newer(unittest.TestCase):
    def test_later(self):
        for mode in "lazy", "ordered":
            with self.subTest(mode=mode):
                records, messages = run(LATE, mode, PLUGIN)
                self.assertEqual(records, {"before": 0, "after": ROUNDS})
                self.assertIn(OFF, messages)

    def test_from_the_start(self):
        records, messages = run(EARLY, "lazy", PLUGIN)
        self.assertEqual(records, {"before": ROUNDS, "after": ROUNDS})
        self.assertEqual(messages.count(OFF), 1)

    def test_a_plug_in_without_one(self):
        records, messages = run(LATE, "lazy", "libm.so.6")
        self.assertEqual(records, {"before": 0, "after": 0})
        self.assertNotIn(OFF, messages)


if __name__ == "__main__":
    LIBRARY, LATE, EARLY, PLUGIN = sys.argv[1:5]
    unittest.main(argv=sys.argv[:1])
