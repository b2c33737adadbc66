#!/usr/bin/env python3
"""BFC_DISABLE, BFC_ONLY, BFC_NOT and BFC_DEEPBIND: when programs are pooled and when they are not.
usage: test_switches.py LIBRARY PROGRAM HOST PLUGIN"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

LIBRARY = PROGRAM = HOST = PLUGIN = ""


class Switches(unittest.TestCase):
    def run_it(self, command, variables):
        """Output, standard error, and how many allocations reached the driver."""
        with tempfile.TemporaryDirectory() as folder:
            stats = os.path.join(folder, "stats")
            env = {n: v for n, v in os.environ.items() if not n.startswith("BFC_")}
            env.update(variables, SIM_STATS=stats, LD_PRELOAD=LIBRARY)
            run = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
            self.assertEqual(run.returncode, 0, run.stderr)
            with open(stats, encoding="utf-8") as file:
                return run.stdout, run.stderr, json.loads(file.readlines()[-1])["cuMemAlloc"]

    def check(self, pooled, command=None, **variables):
        variables["BFC_LOG"] = "off"  # the program asks for too much, which would be explained
        stdout, stderr, made = self.run_it(command or [PROGRAM], variables)
        self.assertTrue(made <= 20 if pooled else made >= 200, (variables, made))
        self.assertEqual(stdout, self.run_it(command or [PROGRAM], {"BFC_DISABLE": "1"})[0])
        self.assertEqual(stderr, "")

    def test_disable(self):
        self.check(True)
        self.check(True, BFC_DISABLE="0")
        self.check(False, BFC_DISABLE="1")

    def test_only(self):
        self.check(True, BFC_ONLY="driver_linked")
        self.check(True, BFC_ONLY="other:driver_*")
        self.check(False, BFC_ONLY="other:driver")

    def test_not(self):
        self.check(False, BFC_NOT="driver_linked")
        self.check(False, BFC_NOT="other:d*d")
        self.check(True, BFC_NOT="other:driver")
        self.check(False, BFC_ONLY="driver_linked", BFC_NOT="driver_linked")

    def test_deepbind(self):
        command = [HOST, PLUGIN, "handle", "deepbind"]
        self.check(True, command)
        self.check(True, command, BFC_DEEPBIND="strip")
        self.check(False, command, BFC_DEEPBIND="keep")

    def test_compute_sanitizer(self):
        """Under it (as it sets the environment) we step aside, and say so once."""
        for variable in {"NV_SANITIZER_INJECTION_PORT_BASE": "49152"}, {
                "NVTX_INJECTION64_PATH": "libsanitizer-collection.so"}:
            _, stderr, made = self.run_it([PROGRAM], variable)
            self.assertGreaterEqual(made, 200)
            self.assertRegex(stderr, r"^bfcpreload: compute-sanitizer [^\n]*\n$")
            self.assertEqual(self.run_it([PROGRAM], dict(variable, BFC_LOG="off"))[1], "")
            self.assertEqual(self.run_it([PROGRAM], dict(variable, BFC_DISABLE="1"))[1], "")

    def test_children(self):
        """A launcher that uses no CUDA passes the switch on."""
        self.check(True, ["bash", "-c", PROGRAM], BFC_ONLY="driver_linked")
        self.check(False, ["bash", "-c", PROGRAM], BFC_ONLY="bash")


if __name__ == "__main__":
    LIBRARY, PROGRAM, HOST, PLUGIN = (os.path.realpath(path) for path in sys.argv[1:5])
    unittest.main(argv=sys.argv[:1])
