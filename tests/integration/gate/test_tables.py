"""Tables of driver functions without names, as NVIDIA's libraries ask for: work by an unknown one counts as work in
another stream, and no longer than it must; one that cannot be copied turns the gate off.

usage: test_tables.py PRELOAD TABLES
"""
import os
import subprocess
import sys
import unittest

PRELOAD, TABLES = sys.argv.pop(1), sys.argv.pop(1)


def run(scene, **variables):
    environment = {**os.environ, "BFC_STACKS": "off", "BFC_YIELD": "0", "SIM_DEVICES": "1", "BFC_LOG": "info",
                   "LD_PRELOAD": PRELOAD, **variables}
    done = subprocess.run([TABLES, scene], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout, done.stderr


class UnknownTables(unittest.TestCase):
    def test_work_in_another_stream_comes_after_the_last_owners(self):
        for mode in "sync", "lazy", "ordered":
            for gate in "0", "1":
                for seed in "1", "2", "3":
                    with self.subTest(mode=mode, gate=gate, seed=seed):
                        said, log = run("second", BFC_FREE=mode, BFC_GATE=gate, SIM_SEED=seed)
                        self.assertEqual(said, "right\n")
                        self.assertNotIn("BFC_GATE is off", log)

    def test_one_stream_is_found_again(self):
        for mode in "lazy", "ordered":
            with self.subTest(mode=mode):
                said, _ = run("rest", BFC_FREE=mode)
                self.assertRegex(said, "same 1, none 1, error 801\n")
                self.assertLessEqual(int(said.split()[-1]), 2)

    def test_a_call_within_a_call_may_be_left_by_a_jump(self):
        for mode in "sync", "lazy", "ordered":
            with self.subTest(mode=mode):
                self.assertEqual(run("jump", BFC_FREE=mode)[0], "set 0\nright\n")

    def test_what_is_no_table_of_functions_turns_the_gate_off(self):
        _, log = run("number", BFC_FREE="lazy")
        self.assertRegex(log, "BFC_GATE is off, .*unknown table, 73696d3a2061206e756d626572202031")


if __name__ == "__main__":
    unittest.main()
