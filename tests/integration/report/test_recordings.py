#!/usr/bin/env python3
"""Recordings of jobs that run for long, call seldom, were too fast for the recorder, or are damaged: what the page says of them.

Needs BFCSTAT, LIBRARY and SIM_DIR in the environment, and chromium for all but the first test."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from browser import BROWSER, Page, run

BFCSTAT, LIBRARY, SIM_DIR = (os.environ[n] for n in "BFCSTAT LIBRARY SIM_DIR".split())
MIB = 1 << 20
DAYS = 40 * 86400 * 10**6
BASE = 1 << 40

JOB = """
import ctypes, sys
calls = ctypes.CDLL("libcuda.so.1")
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
assert calls.cuInit(0) == 0
assert calls.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert calls.cuCtxSetCurrent(context) == 0
size = 1024
while True:
    assert calls.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)) == 0
    print(size, flush=True)
    size += 1
    if not sys.stdin.readline():
        break
"""


def pool(in_use, **more):
    figures = {name: 0 for name in "cached ready pending deferred largest_free hits misses page_calls pages_moved waits host_waits "
               "out_of_memory allocations".split()}
    return {"pool": 0, "memory": "device", "device": 0, "device_name": "a device", "device_total": 1 << 34, "in_use": in_use,
            "requested": in_use, "reserved": 64 * MIB, "peak_in_use": in_use, "peak_reserved": 64 * MIB, **figures, **more}


def a_map(*starts):
    return {"rows": [{"pool": 0, "start": BASE + at * MIB, "size": 8 * MIB, "cell_bytes": 8 * MIB, "cells": "f0"} for at in starts],
            "left_out": 0, "refreshed_ns": 1}


class Recordings(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="bfc recordings ")
        self.addCleanup(shutil.rmtree, self.folder)
        self.path, self.page = (os.path.join(self.folder, name) for name in ("run.jsonl", "page.html"))

    def lines(self, kind):
        if not os.path.exists(self.path):
            return []
        with open(self.path, encoding="utf-8") as file:
            whole = [line for line in file if line.endswith("\n")]
        return [line for line in map(json.loads, whole) if line["type"] == kind]

    def write(self, *lines, at=DAYS):
        """Samples at the begin, and after 10 and 20 s, and what else is to be there."""
        start = {"type": "start", "seconds": 0, "us": at, "format": 2, "pid": 7, "command": "made up", "library": "0", "created_ns": 10**18,
                 "rank": None, "ranks": None, "job": "", "configuration": "BFC_STACKS=all\n"}
        samples = [{"type": "sample", "seconds": n, "us": at + n * 10**6, "pools": [pool(8 * MIB)], "landmarks": []} for n in (0, 10, 20)]
        with open(self.path, "w", encoding="utf-8") as file:
            for line in (start, *samples, *lines, {"type": "end", "seconds": 20, "us": at + 20 * 10**6, "reason": "duration"}):
                file.write((line if isinstance(line, str) else json.dumps(line, separators=(",", ":"))) + "\n")

    def look(self, script):
        if not BROWSER:
            self.skipTest("chromium is not installed: the page is not looked at")
        run(BFCSTAT, "report", self.path, "-o", self.page)
        return Page(self.folder, self.page, script=script)

    def wait_for_samples(self, wanted):
        while len(self.lines("sample")) < wanted:
            time.sleep(0.05)

    def test_calls_of_a_thread_that_seldom_calls_have_their_times(self):
        environment = dict(os.environ, LD_PRELOAD=LIBRARY, LD_LIBRARY_PATH=SIM_DIR, BFC_LOG="off")
        job = subprocess.Popen([sys.executable, "-c", JOB], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.addCleanup(job.communicate)
        self.assertEqual(job.stdout.readline(), "1024\n")
        recorder = subprocess.Popen([BFCSTAT, "record", str(job.pid), "--events", "--interval=0.05", "-o", self.path],
                                    stdout=subprocess.DEVNULL)
        not_before = {}
        for size in (1025, 1026, 1027):
            self.wait_for_samples(len(self.lines("sample")) + 3)
            not_before[size] = self.lines("sample")[-2]["us"]
            job.stdin.write("\n")
            job.stdin.flush()
            self.assertEqual(job.stdout.readline(), f"{size}\n")
        self.wait_for_samples(len(self.lines("sample")) + 2)
        recorder.send_signal(signal.SIGINT)
        self.assertEqual(recorder.wait(), 0)
        times = {call[4]: call[1] for line in self.lines("calls") for call in line["calls"] if call[0] == "a"}
        for size, us in not_before.items():
            self.assertGreaterEqual(times[size], us)
        # What a sample counts was written before it.
        calls = 0
        with open(self.path, encoding="utf-8") as file:
            for line in map(json.loads, file):
                calls += sum(call[0] == "a" for call in line["calls"]) if line["type"] == "calls" else 0
                if line["type"] == "sample" and calls:
                    self.assertEqual(line["pools"][0]["allocations"], calls)
        self.assertEqual(calls, 4)

    def test_memory_is_by_every_call_that_was_recorded(self):
        """A peak between two samples is drawn, over the 8 MiB that were there before."""
        sample = {"type": "sample", "seconds": 20, "us": DAYS + 20 * 10**6, "landmarks": [], "pools": [pool(8 * MIB)]}
        self.write({"type": "calls", "lost": 0, "calls": [["a", DAYS + 10**6, 0, BASE, 100 * MIB, 0, 0], ["f", DAYS + 2 * 10**6, 0, BASE, 0]]}, sample,
                   {"type": "calls", "lost": 0, "calls": [["a", DAYS + 21 * 10**6, 0, BASE, MIB, 0, 0]]}, sample)
        page = self.look("""const pool = poolOf(0), [x, reserved, live] = callsData(pool), {max} = chartOf("memory over time").scales.y;
            return [x.length, reserved, live, Math.round(max / 1.04)]""")
        self.assertEqual(page.answer, [4, [64 * MIB] * 4, [n * MIB for n in (8, 108, 8, 9)], 108 * MIB])
        self.assertIn("By every call that was recorded.", page.words())

    def test_memory_that_is_asleep_is_not_drawn_as_reserved_before(self):
        """What is asleep was told as released: before the first call there was as much less."""
        sample = {"type": "sample", "seconds": 20, "us": DAYS + 20 * 10**6, "landmarks": [], "pools": [pool(8 * MIB, asleep=64 * MIB)]}
        self.write({"type": "calls", "lost": 0, "calls": [["g", DAYS + 10**6, 0, BASE, 64 * MIB], ["a", DAYS + 10**6, 0, BASE, 8 * MIB, 0, 0],
                                                          ["r", DAYS + 2 * 10**6, 0, 0, 64 * MIB]]}, sample)
        self.assertEqual(self.look("return callsData(poolOf(0))[1]").answer, [n * MIB for n in (0, 64, 64, 0, 0)])

    def test_a_job_that_is_up_for_days(self):
        self.write({"type": "calls", "lost": 0, "calls": [["a", 1000, 0, BASE, 4 * MIB, 0, 0], ["a", DAYS + 5 * 10**6, 0, BASE + 4 * MIB, 4 * MIB, 1, 0]]})
        page = self.look("return [wholeTime(), poolOf(0).live, view.charts.every(chart => chart.scales.x.min >= wholeTime()[0])]")
        (least, most), live, all_there = page.answer
        self.assertEqual((least, most), (DAYS / 1e6 - 20, DAYS / 1e6 + 20))  # as far back as it is long
        self.assertEqual(live, [4 * MIB, 8 * MIB])
        self.assertTrue(all_there)

    def test_what_was_there_before_is_bounded_by_what_the_job_told(self):
        """The sample's 8 MiB are of another moment than the calls' last, after which 4 are live: 4 MiB before, or what was told."""
        calls = {"type": "calls", "lost": 0, "calls": [["a", DAYS, 0, BASE, 4 * MIB, 0, 0]]}
        for size, before in ((None, 4 * MIB), (MIB, MIB), (4 * MIB + 4096, 4 * MIB), (6 * MIB, 6 * MIB - 8192)):
            told = {"type": "space", "seconds": 20, "us": DAYS, "left_out": 0, "regions": [[BASE, 64 * MIB, 0]],
                    "blocks": [[BASE, 4 * MIB, 0], [BASE + 8 * MIB, size, 0], [BASE + 20 * MIB, MIB, 2]]}
            sample = {"type": "sample", "seconds": 20, "us": DAYS + 20 * 10**6, "landmarks": [],
                      "pools": [pool(8 * MIB + 8192, requested=8 * MIB)]}
            self.write(calls, sample, *([told] if size else []))
            self.assertEqual(self.look("return baseOf(poolOf(0)).live").answer, before)

    def test_events_that_were_not_seen(self):
        self.write({"type": "calls", "lost": 9, "calls": [
            ["a", DAYS, 0, BASE, 4 * MIB, 0, 0], ["a", DAYS + 10, 0, BASE, 3 * MIB, 20, 0], ["f", DAYS + 20, 0, BASE + 9 * MIB, 0, 21, 0]]})
        page = self.look("return poolOf(0).live")
        self.assertEqual(page.answer, [4 * MIB, 3 * MIB, 3 * MIB])  # one free was not seen
        words = page.words()
        self.assertIn("Up to 9 events were overwritten before they were seen", words)
        self.assertIn("5.00 MiB whose allocation was not seen here", words)
        self.assertIn("1 block whose allocation was not seen here, and freed since, is not in it.", words)
        self.assertNotIn("before the first call seen here", words)

    def test_regions_are_grey_while_they_are_there(self):
        at = [DAYS + n * 10**6 for n in (1, 8, 15)]
        self.write(*({"type": "map", "seconds": 0, "us": us, "map": a_map(*rows)} for us, rows in zip(at, ((0, 8), (0, 16), (0,)))),
                   {"type": "calls", "lost": 0, "calls": [["a", DAYS, 0, BASE, MIB, 0, 0], ["g", DAYS + 6 * 10**6, 0, BASE + 16 * MIB, 8 * MIB]]})
        page = self.look("const pool = poolOf(0); return regionSpans(0, pool, layoutOf(0, pool)).map(span => [span.start, span.from, span.to])")
        begin, end = DAYS, DAYS + 20 * 10**6
        self.assertEqual(sorted(page.answer), [[BASE, begin, end], [BASE + 8 * MIB, begin, at[1]], [BASE + 16 * MIB, DAYS + 6 * 10**6, at[2]]])

    def test_blocks_without_a_stack_have_no_stack_s_colour(self):
        self.write({"type": "sites", "first": 1, "sites": [{"library": "/l.so", "tag": "", "place": "f", "frames": [["f (l.so)", "l.so`f"]]}]},
                   {"type": "taken", "sites": [[0, 1]]},
                   {"type": "calls", "lost": 0, "calls": [["a", DAYS + n, 0, BASE + n * MIB, MIB, n, 0] for n in range(9)]})
        page = self.look("return [0, 1, 2, 3, 4, 5, 6, 7, 8].map(i => COLOURS.some(one => one.join() === colourOf(poolOf(0).blocks, i).join()))")
        self.assertEqual(page.answer, [True] + 8 * [False])

    def test_damage_is_told(self):
        self.write('{"type":"calls","calls":[["a",1,}', '{"type":"map","seconds":0,"us":1,"map":{"rows":7}}')
        page = self.look("return document.querySelector('p.bad')?.textContent ?? ''")
        self.assertIn("1 line of it damaged and left out", page.words())
        self.assertIn("The recording is damaged, and not all of it is shown", page.answer)


if __name__ == "__main__":
    unittest.main(verbosity=1)
