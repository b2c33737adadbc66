#!/usr/bin/env python3
"""The demo's running part, briefly: its last line is the promised JSON, and its promises hold."""

import json
import os
import subprocess
import sys
import unittest

BUILD = sys.argv.pop()
DEMO = os.path.join(os.environ["SOURCE_ROOT"], "scripts", "demo.py")


class Demo(unittest.TestCase):
    def demo(self, *arguments):
        return subprocess.run(
            [sys.executable, DEMO, *arguments], capture_output=True, text=True, timeout=100
        )

    def test_last_line(self):
        result = self.demo(BUILD, "20")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        last = json.loads(result.stdout.splitlines()[-1])
        for prefix in ("", "python_"):
            self.assertTrue(last[prefix + "contents_equal"])
            self.assertEqual(last[prefix + "preloaded_driver_calls"], 0)
            self.assertGreater(last[prefix + "native_driver_calls"], 0)
            self.assertGreater(last[prefix + "native_us_per_iter"], 0)
            self.assertGreater(last[prefix + "preloaded_us_per_iter"], 0)
            self.assertEqual(last[prefix + "pooled"], last[prefix + "native_driver_calls"])
            self.assertEqual(last[prefix + "forwarded"], 0)
            self.assertLessEqual(
                last[prefix + "preloaded_host_waits_for_frees"], last[prefix + "frees"]
            )
            for mode in ("lazy_", "ordered_"):
                for key in "calls_for_memory", "host_waits_for_frees", "all_driver_calls":
                    self.assertLess(last[prefix + mode + key], last[prefix + "native_" + key])
                self.assertEqual(last[prefix + mode + "pooled"], last[prefix + "pooled"])
                self.assertLess(last[prefix + mode + "host_waits_for_frees"], last[prefix + "frees"])
            self.assertGreater(last[prefix + "native_memory"], 0)
            for mode in ("preloaded_", "lazy_", "ordered_"):
                self.assertGreaterEqual(last[prefix + mode + "memory"], last[prefix + "native_memory"])
        self.assert_answers_first(result.stdout.splitlines())
        self.assertIn("device", last)
        self.assertIn("fragmentation", result.stdout)
        if last["simulated"]:
            self.assertIn("SIMULATED", result.stdout)
            self.assertTrue(last["spill_native_fails"])
            for mode in ("sync", "lazy", "ordered"):
                self.assertTrue(last[f"spill_{mode}_contents_equal"])
                self.assertGreater(last[f"spill_{mode}_peak_spilled"], 0)
                self.assertLessEqual(last[f"spill_{mode}_peak_in_use"], last["spill_device_memory"])

    def assert_answers_first(self, lines):
        """What is gained and what it costs, mode by mode, comes before all else."""
        for mode in ("sync", "lazy", "ordered"):
            answers = [line for line in lines[:28] if line.startswith(mode)]
            self.assertEqual(len(answers), 1)
            self.assertRegex(answers[0], "[0-9]+ % (less|MORE) time .* of memory \\(\\+[0-9]+ %\\)")

    def test_refuses_nonsense(self):
        for arguments in ([], [BUILD, "0"], [BUILD, "x"], [BUILD, "1", "2"]):
            result = self.demo(*arguments)
            self.assertEqual(result.returncode, 1)
            self.assertEqual(len(result.stderr.splitlines()), 1)


if __name__ == "__main__":
    unittest.main(verbosity=1)
