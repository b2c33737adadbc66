#!/usr/bin/env python3
"""Frees where submissions are counted: driver calls in one stream and in several, and right contents.
usage: test_gate.py STREAMS PRELOAD BFCSTAT"""

import json
import os
import subprocess
import sys
import unittest

STREAMS = PRELOAD = BFCSTAT = ""
ROUNDS = 200
CALLS = ("records", "orders", "waits", "queries")


def run(mode, *scenes, devices=1, **variables):
    environment = {**os.environ, "BFC_FREE": mode, "BFC_GATE": "1", "BFC_STACKS": "off", "BFC_YIELD": "0",
                   "SIM_DEVICES": str(devices), "LD_PRELOAD": PRELOAD, **variables}
    done = subprocess.run([STREAMS, *scenes], env=environment, capture_output=True, text=True, timeout=60,
                          check=False)
    if done.returncode or done.stderr:
        raise AssertionError(f"{mode} {scenes}: {done.returncode} {done.stdout} {done.stderr}")
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return {row["scene"]: row for row in map(json.loads, lines)}, done.stdout


class OneStream(unittest.TestCase):
    def test_no_call_a_pair(self):
        for mode in "lazy", "ordered":
            for scene in "legacy", "created", "blocking":
                for devices in 1, 2:
                    with self.subTest(mode=mode, scene=scene, devices=devices):
                        counts, _ = run(mode, scene, devices=devices)
                        self.assertEqual([counts[scene][call] for call in CALLS], [0, 0, 0, 0])
                        self.assertLessEqual(counts[scene]["allocations"], 1)

    def test_off(self):
        counts, _ = run("lazy", "legacy", BFC_GATE="0")
        self.assertEqual(counts["legacy"]["records"], ROUNDS)

    def test_a_threads_own_default_stream_is_never_the_only_one(self):
        counts, _ = run("lazy", "per_thread")
        self.assertGreater(counts["per_thread"]["records"], ROUNDS // 2)


class SeveralStreams(unittest.TestCase):
    def test_a_second_stream_waits_on_the_device(self):
        for mode in "lazy", "ordered":
            with self.subTest(mode=mode):
                counts, output = run(mode, "second")
                self.assertEqual([counts["second"][call] for call in CALLS], [1, 1, 0, 0])
                self.assertGreaterEqual(counts["both"]["records"], ROUNDS - 32)
                self.assertIn("one again: yes", output)

    def test_a_programmatic_dependent_launch_waits_on_the_device(self):
        for mode in "sync", "lazy", "ordered":
            with self.subTest(mode=mode):
                counts, output = run(mode, "programmatic")
                self.assertEqual([counts["programmatic"][call] for call in CALLS],
                                 [0, 0, 1, 0] if mode == "sync" else [1, 1, 0, 0])
                self.assertIn("one again: yes", output)

    def test_frees_in_a_burst_share_a_fence(self):
        for mode in "lazy", "ordered":
            with self.subTest(mode=mode):
                counts, _ = run(mode, "burst")
                self.assertLessEqual(counts["burst"]["records"], 1)

    def test_contents(self):
        for mode in "sync", "lazy", "ordered":
            for seed in "1", "2":
                with self.subTest(mode=mode, seed=seed):
                    _, output = run(mode, "by_every_call", "second", "captured", SIM_SEED=seed)
                    self.assertIn("captured: right", output)
                    self.assertIn("by every call: right", output)


class WhatIsUnseen(unittest.TestCase):
    def test_a_check_finds_work_that_no_hook_saw(self):
        for mode in "lazy", "ordered":
            with self.subTest(mode=mode):
                with self.assertRaisesRegex(AssertionError, "BFC_GATE is off, .*a check found work in another stream"):
                    run(mode, "unseen", BFC_LOG="info")

    def test_a_check_finds_nothing_else(self):
        counts, _ = run("lazy", "pairs")
        self.assertEqual(counts["pairs"]["orders"], 0)
        self.assertEqual(counts["pairs"]["waits"], 0)
        self.assertLessEqual(counts["pairs"]["records"], 6)

    def test_a_call_that_is_newer(self):
        counts, _ = run("lazy", "unknown", SIM_DRIVER_VERSION="99000")
        self.assertGreaterEqual(counts["unknown"]["records"], ROUNDS)
        with self.assertRaisesRegex(AssertionError, "BFC_GATE is off, .*cuStreamBeginUnheardOfCapture"):
            run("lazy", "unknown", BFC_LOG="info", SIM_DRIVER_VERSION="99000")


class Reported(unittest.TestCase):
    """By bfcstat, while the program pauses."""

    def look(self, mode, *scenes, **variables):
        environment = {**os.environ, "BFC_FREE": mode, "BFC_STACKS": "off", "BFC_YIELD": "0", "SIM_DEVICES": "1",
                       "LD_PRELOAD": PRELOAD, **variables}
        with subprocess.Popen([STREAMS, *scenes, "pause"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as program:
            while program.stdout.readline() not in ("pausing\n", ""):
                pass
            pid = str(program.pid)
            job, page = (subprocess.run([BFCSTAT, *how, pid], capture_output=True, text=True, check=True).stdout
                         for how in (["--json"], []))
            program.communicate()
        job = json.loads(job)
        return job["gate"], job["pools"][0], page

    def test_one_stream(self):
        gate, pool, page = self.look("lazy", "pairs")
        self.assertEqual((gate["state"], gate["streams"], gate["seen"], gate["why"], pool["fences"], pool["device_waits"]),
                         ("on", "one", 1, "", 0, 0))
        self.assertGreaterEqual(gate["checks"], 1)
        self.assertIn("one stream: frees need no fence", page)
        self.assertRegex(page, "1 stream seen, several 0 times so far; [0-9]+ checks? of itself")

    def test_several(self):
        gate, pool, page = self.look("ordered", "per_thread")
        self.assertEqual((gate["state"], gate["streams"]), ("on", "several"))
        self.assertGreater(gate["left"], 0)
        self.assertGreater(pool["fences"], ROUNDS // 2)
        self.assertGreater(pool["device_waits"], 0)
        self.assertIn("several streams: frees need fences", page)
        self.assertRegex(page, " fences +[0-9,]+   [0-9.,]+ a second, for frees, trims and sleep")

    def test_each_stream_is_counted_once(self):
        gate, _, page = self.look("lazy", "three")
        self.assertEqual((gate["streams"], gate["seen"]), ("several", 3))
        self.assertIn("3 streams seen, several ", page)

    def test_why_it_is_off(self):
        gate, _, page = self.look("lazy", "unknown", SIM_DRIVER_VERSION="99000")
        self.assertEqual((gate["state"], gate["streams"], gate["why"]), ("off", None, "cuStreamBeginUnheardOfCapture"))
        self.assertIn("off, since work may be submitted unseen: cuStreamBeginUnheardOfCapture", page)
        gate, _, page = self.look("sync", "legacy")
        self.assertEqual(gate["state"], "not_used")
        self.assertIn("not used (BFC_GATE)", page)


class Waits(unittest.TestCase):
    def test_frees_after_a_wait_make_no_call(self):
        counts, _ = run("sync", "waited")
        self.assertEqual([counts["waited"][call] for call in CALLS], [0, 0, 0, 0])
        self.assertEqual(counts["work again"]["waits"], 1)

    def test_off(self):
        counts, _ = run("sync", "waited", BFC_GATE="0")
        self.assertEqual(counts["waited"]["waits"], 10)


if __name__ == "__main__":
    STREAMS, PRELOAD, BFCSTAT = sys.argv[1:4]
    unittest.main(argv=sys.argv[:1])
