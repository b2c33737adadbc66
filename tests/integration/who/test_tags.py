#!/usr/bin/env python3
"""Tags: NVTX ranges and the public call, as bfcstat who tells them.

usage: test_tags.py LIBRARY BFCSTAT TAGGER INJECTION
"""
import json
import os
import subprocess
import sys
import unittest

LIBRARY, BFCSTAT, TAGGER, INJECTION = (os.path.realpath(path) for path in sys.argv[1:5])
CALLS = {"loader/batch": 1024}
RANGES = {"before CUDA": 2048, "train": 1 + 4, "train/forw\u00e4rd": 2, "first/registered": 16,
          "registered": 32, "(range)": 64, "started": 256}
ALL = 4095


def environment(**variables):
    cleared = {name: value for name, value in os.environ.items()
               if name not in ("NVTX_INJECTION64_PATH", "BFC_TAGS")}
    return dict(cleared, SIM_MEMORY="8G", BFC_STACKS="all", **variables)


class Tags(unittest.TestCase):
    def run_it(self, preload=LIBRARY, **variables):
        with subprocess.Popen([TAGGER], env=environment(LD_PRELOAD=preload, **variables), text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as job:
            self.assertEqual(job.stdout.readline(), "ready\n")
            who = [subprocess.check_output([BFCSTAT, "who", *options, str(job.pid)], text=True)
                   for options in (["--json"], ["--by=tag"])] if preload else None
            said = job.communicate()[0]
        self.assertEqual(job.returncode, 0)
        return who, said

    def check(self, answers, expected):
        who = json.loads(answers[0])
        found = {tag["tag"]: tag["bytes"] >> 20 for tag in who["tags"]}
        self.assertEqual(found, dict(expected, **{"": ALL - sum(expected.values())}))
        self.assertEqual(sum(s["bytes"] for s in who["sites"] if s["tag"] == "loader/batch"),
                         1 << 30)
        self.assertRegex(answers[1], r"(?m)^1\.00 GiB +0 B +1 +25\.0 % +loader/batch$")
        self.assertRegex(answers[1], r"(?m)^.* no tag$")

    def test_ranges(self):
        who, said = self.run_it(BFC_TAGS="nvtx")
        self.check(who, {**RANGES, **CALLS})
        self.assertEqual(said, "")

    def test_calls_alone(self):
        self.check(self.run_it()[0], CALLS)

    def test_another_injection_gets_all(self):
        alone = self.run_it(preload="", NVTX_INJECTION64_PATH=INJECTION)[1]
        self.assertIn("2 pushed", alone)
        self.assertIn("1 ended", alone)
        who, said = self.run_it(BFC_TAGS="nvtx", NVTX_INJECTION64_PATH=INJECTION)
        self.assertEqual(said, alone)
        self.check(who, {**RANGES, **CALLS})
        self.assertEqual(self.run_it(NVTX_INJECTION64_PATH=INJECTION)[1], alone)

    def test_children(self):
        """A child has it too; one without the library has only the other injection."""
        command = f"LD_PRELOAD={LIBRARY} {TAGGER} </dev/null; unset LD_PRELOAD; {TAGGER} </dev/null"
        variables = environment(LD_PRELOAD=LIBRARY, BFC_TAGS="nvtx", NVTX_INJECTION64_PATH=INJECTION)
        said = subprocess.check_output(["sh", "-c", command], env=variables, text=True)
        lines = said.splitlines()
        self.assertEqual((len(lines), lines[:2]), (4, lines[2:]))

    def test_missing_injection(self):
        """As natively: NVTX does nothing."""
        who, _ = self.run_it(BFC_TAGS="nvtx", NVTX_INJECTION64_PATH="/nonexistent.so")
        self.check(who, CALLS)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
