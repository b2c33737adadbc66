#!/usr/bin/env python3
"""Debuggers, tracers and profilers on a preloaded program over the stand-in GPU: the program's output
and exit status are the same as without the tool, and it is pooled. usage: test_tools.py LIBRARY PROGRAM"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

LIBRARY = PROGRAM = ""


class Tools(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_it(self, command, preload=True):
        stats = os.path.join(self.folder, "stats")
        env = {n: v for n, v in os.environ.items()
               if not n.startswith("BFC_") and n != "MALLOC_PERTURB_"}
        env.update(SIM_STATS=stats, DEBUGINFOD_URLS="")
        if preload:
            env["LD_PRELOAD"] = LIBRARY
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120,
                              stdin=subprocess.DEVNULL, cwd=self.folder)
        made = None
        if os.path.exists(stats):
            with open(stats, encoding="utf-8") as file:
                made = json.loads(file.readlines()[-1])["cuMemAlloc"]
            os.remove(stats)
        return done, made

    def beside(self, *tool):
        """What the tool printed beside the program's own lines."""
        if not shutil.which(tool[0]):
            self.skipTest(f"no {tool[0]} here")
        trial, _ = self.run_it([*tool, PROGRAM], preload=False)
        if trial.returncode:
            self.skipTest(f"{tool[0]} cannot work here: {trial.stderr[-200:]}")
        expected = self.run_it([PROGRAM])[0].stdout.splitlines()
        done, made = self.run_it([*tool, PROGRAM])
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual([line for line in lines if line in expected], expected, done.stdout)
        self.assertLessEqual(made, 20)
        return done.stdout + done.stderr

    def test_gdb(self):
        """It stops in a hook, shows the program as the caller, and goes on."""
        shown = self.beside("gdb", "-q", "-batch", "-nx", "-ex", "set breakpoint pending on",
                            "-ex", "break bfc_free if 0", "-ex", "run", "--args")
        self.assertIn("exited normally", shown)
        done, _ = self.run_it(["gdb", "-q", "-batch", "-nx", "-ex", "set breakpoint pending on",
                               "-ex", "break bfc_allocate", "-ex", "run", "-ex", "bt", "-ex",
                               "kill", "--args", PROGRAM])
        self.assertRegex(done.stdout, r"#\d+ .* bfc_allocate(.|\n)*#\d+ .* main ")

    def test_valgrind(self):
        shown = self.beside("valgrind", "--error-exitcode=9", "--leak-check=no")
        self.assertIn("ERROR SUMMARY: 0 errors", shown)

    def test_strace(self):
        self.beside("strace", "-f", "-o", "trace")

    def test_perf(self):
        self.beside("perf", "stat", "-e", "task-clock", "-o", "stat")

    def test_ltrace(self):
        self.beside("ltrace", "-o", "trace")


if __name__ == "__main__":
    LIBRARY, PROGRAM = (os.path.realpath(path) for path in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1])
