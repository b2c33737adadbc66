#!/usr/bin/env python3
"""Spilled memory (BFC_SPILL), as programs and watchers see it, by one route and mode of BFC_FREE.

test_spill.py LIBRARY SCENES BFCSTAT MODE
"""

import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

LIBRARY, SCENES, BFCSTAT, MODE = sys.argv[1:5]
BASE = {"LD_PRELOAD": LIBRARY, "BFC_FREE": MODE, "BFC_SPILL": "1G", "SIM_MEMORY": "64M", "SIM_SEED": "1",
        "SIM_HOST_FREE_WAITS": "0", "BFC_YIELD": "0"}


def environment(variables):
    kept = {k: v for k, v in os.environ.items() if not re.match("BFC_|SIM_", k)}
    return kept | BASE | variables


def play(scene, **variables):
    return subprocess.run([SCENES, scene], env=environment(variables), capture_output=True, text=True,
                          timeout=120, check=False)


class Spill(unittest.TestCase):
    def plays(self, scene, **variables):
        done = play(scene, **variables)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        return done.stderr

    def start(self, scene, **variables):
        process = subprocess.Popen([SCENES, scene], env=environment(variables), text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def bfcstat(self, *arguments):
        return subprocess.run([BFCSTAT, *arguments], capture_output=True, text=True, timeout=60,
                              check=True).stdout

    def look_at(self, job):
        """Once its helper thread runs and has drawn the map."""
        for _ in range(100):
            shown = json.loads(self.bfcstat("--json", str(job.pid)))
            if shown["map"]["rows"]:
                break
        return shown

    # ---- what programs see ----

    def test_contents(self):
        self.plays("contents")

    def test_more_than_fits(self):
        self.plays("more_than_fits")

    def test_answers(self):
        self.plays("attributes")
        self.plays("sync_memops")

    def test_refuses_to_be_shared(self):
        said = self.plays("sharing")
        for call in "cuIpcGetMemHandle", "cuMemGetHandleForAddressRange", "P2P_TOKENS":
            self.assertRegex(said, rf"bfcpreload: .*{call}.*: the block is host memory .*BFC_SPILL=0")

    def test_comes_and_goes(self):
        self.plays("back_again")
        self.plays("beyond_device")

    def test_no_more_than_its_size(self):
        said = self.plays("size_of_it", BFC_SPILL="20M", BFC_LOG="info")
        self.assertIn("8.00 MiB were not spilled to host memory: BFC_SPILL would be exceeded", said)
        self.assertIn("of at most 20.0 MiB pinned (BFC_SPILL)", said)

    def test_limit_is_of_the_device(self):
        self.plays("limit", BFC_LIMIT="32M")

    def test_frees_wait_for_work(self):
        self.plays("busy_free")
        self.plays("long_free")
        self.plays("async_free")

    def test_no_call_waits_for_unrelated_work(self):
        for stats in "1", "0":
            self.plays("unrelated_work", SIM_HOST_FREE_WAITS="1", BFC_STATS=stats)

    def test_what_goes_back_is_gone(self):
        self.plays("freed_long_since", SIM_LATENCY="cuMemFreeHost:60000")

    def test_captures(self):
        self.plays("captures")
        self.plays("ready_beside_capture", BFC_LIMIT="32M", BFC_PENDING_BUDGET="0")
        self.plays("barred")

    def test_contexts_and_devices(self):
        self.plays("context_end", BFC_SPILL="20M")
        self.plays("other_context_end", BFC_SPILL="20M")
        self.plays("peers", SIM_DEVICES="2")
        self.plays("peers_and_capture", SIM_DEVICES="2", BFC_PENDING_BUDGET="0")

    def test_processes(self):
        self.plays("forks")

    def test_threads(self):
        self.plays("threads")
        self.plays("threads", BFC_SPILL="1G", BFC_LIMIT="512")

    # ---- where it cannot be ----

    def test_off(self):
        self.plays("impossible", BFC_SPILL="0")
        self.plays("impossible", BFC_LAST_RESORT="pool,contexts,jobs,wait")

    def test_device_that_maps_no_host_memory(self):
        said = self.plays("impossible", SIM_MAPS_HOST="0", BFC_LOG="info")
        self.assertEqual(said.count("cannot map host memory, so BFC_SPILL has no effect"), 1, said)

    def test_refusals(self):
        pin, reach = "the driver did not pin host memory", "does not reach host memory by its own address"
        for call, code, why in (("cuMemHostAlloc", 2, pin), ("cuMemHostAlloc", 801, pin), ("cuMemHostAlloc", 1, pin),
                                ("cuMemHostGetDevicePointer_v2", 1, reach)):
            said = self.plays("refused", SIM_FAIL=",".join(f"{call}@{n}:{code}" for n in (1, 2, 3)), BFC_LOG="info")
            self.assertIn("out of memory", said)
            self.assertRegex(said, rf"8\.00 MiB were not spilled to host memory: .*{why}")
        said = self.plays("refused", SIM_FAIL="cuDeviceGetAttribute@1")
        self.assertIn("out of memory", said)

    def test_a_free_that_the_driver_refuses(self):
        self.plays("kept", SIM_FAIL="cuMemFreeHost@1")

    # ---- what watchers see ----

    def test_bfcstat(self):
        job = self.start("ends")
        shown = self.look_at(job)
        device, host = shown["pools"]
        self.assertEqual((device["memory"], host["memory"]), ("device", "host"))
        self.assertEqual((device["reserved"], host["in_use"], host["blocks"]), (64 << 20, 8 << 20, 1))
        self.assertEqual((host["device"], host["device_uuid"], host["device_total"]), (0, None, 1 << 30))
        totals = shown["totals"]
        self.assertEqual((totals["in_use"], totals["reserved"]), (64 << 20, 64 << 20))
        self.assertEqual((totals["spilled"], totals["spilled_blocks"]), (8 << 20, 1))
        self.assertEqual((totals["out_of_memory"], device["retries"]), (0, 1))
        self.assertIn("spilled", [event["kind"] for event in shown["landmarks"]])
        self.assertIn({"pool": 1, "size": 8 << 20}, [{k: row[k] for k in ("pool", "size")}
                                                     for row in shown["map"]["rows"]])
        self.assertRegex(self.bfcstat(), rf"(?m)^ *{job.pid} +01:00\.0 +host +8\.00 MiB +0 B +8\.00 MiB +1G ")
        self.assertIn("spilled to host memory (BFC_SPILL), at most 1.00 GiB", self.bfcstat(str(job.pid)))
        metrics = self.bfcstat("--prometheus")
        own = [line for line in metrics.splitlines() if f'pid="{job.pid}"' in line]
        values = {line.split("{")[0]: int(line.split()[-1]) for line in own if "spill" in line.split("{")[0]}
        self.assertEqual(values, {
            "bfcpreload_spilled_bytes": 8 << 20, "bfcpreload_spilled_blocks": 1,
            "bfcpreload_spilled_reserved_bytes": 8 << 20, "bfcpreload_peak_spilled_bytes": 8 << 20,
            "bfcpreload_spills_total": 1})
        self.assertEqual(len([line for line in own if line.startswith("bfcpreload_in_use_bytes")]), 1)
        # What is spilled is not the device's, and not cached: there is nothing to ask for.
        self.assertRegex(self.bfcstat("trim", str(job.pid)), r"gave back 0 B")

    def test_summary(self):
        job = self.start("ends", BFC_SUMMARY="1")
        said = job.communicate("e")[1]
        self.assertEqual(job.returncode, 0, said)
        self.assertRegex(said, r"device 0: 1 allocation spilled to host memory \(BFC_SPILL=1.00 GiB\), "
                               r"most 8\.00 MiB, now 8\.00 MiB in 1 block")

    def test_nothing_is_left_behind(self):
        for end in "exit", "kill":
            job = self.start("ends")
            if end == "exit":
                job.communicate("e")
            else:
                job.send_signal(signal.SIGKILL)
                job.wait()
                # It removes what killed jobs leave, whether or not it can read all others.
                subprocess.run([BFCSTAT], check=False, capture_output=True, timeout=60)
            self.assertEqual(glob.glob(f"/dev/shm/bfc*.{job.pid}*"), [])

    def test_without_a_segment(self):
        self.plays("contents", BFC_STATS="0")
        said = self.start("ends", BFC_STATS="0", BFC_SUMMARY="1").communicate("e")[1]
        self.assertIn("1 allocation spilled", said)

    def test_recorded(self):
        with tempfile.TemporaryDirectory() as folder:
            self.plays("back_again", BFC_RECORD=os.path.join(folder, "trace"))
            self.assertGreater(os.path.getsize(os.path.join(folder, "trace")), 128)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
