#!/usr/bin/env python3
"""bfcstat snapshot of running jobs.

usage: test_snapshot.py LIBRARY BFCSTAT HOLDER
"""
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
import unittest

LIBRARY, BFCSTAT, HOLDER = sys.argv[1:4]
MIB = 1 << 20


class Job:
    """A preloaded program that holds its memory, and leaks 16 MiB more at each line that it reads. It gives nothing
    back to jobs of other tests that run out of memory at the same time: that would be among its calls."""

    def __init__(self, scene, **variables):
        env = dict(os.environ, LD_PRELOAD=LIBRARY, SIM_MEMORY="4G", BFC_STACKS="all", BFC_YIELD="0")
        self.process = subprocess.Popen([HOLDER, scene], env=dict(env, **variables), text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.process.stdout.readline() != "ready\n":
            raise AssertionError(scene)
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.communicate()

    def leak(self):
        self.process.stdin.write("more\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "leaked\n"

    def figures(self):
        """Of the one pool."""
        shown = subprocess.run([BFCSTAT, "--json", str(self.pid)], stdout=subprocess.PIPE, check=True)
        return json.loads(shown.stdout)["pools"][0]


def functions(frames):
    """Without the one that is inlined in all of them, which is a frame where source lines are found."""
    return [frame["name"] for frame in frames if frame["name"] != "allocate"]


class Snapshot(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.pickle, self.json = (os.path.join(folder.name, name) for name in ("s.pickle", "s.json"))

    def take(self, job, path, *options):
        run = subprocess.run([BFCSTAT, "snapshot", "-o", path, *options, str(job.pid)], text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.said = run.stdout
        with open(path, "rb") as file:
            return pickle.load(file) if path == self.pickle else json.load(file)

    def check_segments(self, segments, figures):
        """Blocks tile their segments, and what they come to is what the job counts."""
        sums = {"reserved": 0, "in_use": 0, "requested": 0}
        for segment in segments:
            at = segment["address"]
            for block in segment["blocks"]:
                self.assertEqual(block["address"], at)
                self.assertEqual(block["requested_size"] > 0, block["state"] == "active_allocated")
                at += block["size"]
            self.assertEqual(at, segment["address"] + segment["total_size"])
            sums["reserved"] += segment["total_size"]
            sums["in_use"] += segment["allocated_size"]
            sums["requested"] += segment["requested_size"]
        self.assertEqual(sums, {key: figures[key] for key in sums})

    def held(self, segments, function):
        return sum(block["requested_size"] for segment in segments for block in segment["blocks"]
                   if functions(block["frames"])[:1] == [function]) / MIB

    def test_blocks_and_calls(self):
        with Job("plain") as job:
            shown, figures = self.take(job, self.pickle), job.figures()
        self.check_segments(shown["segments"], figures)
        self.assertEqual((self.held(shown["segments"], "site_large"), self.held(shown["segments"], "site_small")),
                         (256, 64))
        (calls,) = shown["device_traces"]
        allocations = [c for c in calls if c["action"] == "alloc"]
        self.assertEqual({functions(c["frames"])[0] for c in allocations}, {"site_short"})
        self.assertEqual({c["size"] for c in calls}, {MIB // 4})
        self.assertGreater(len(allocations), 2000)
        # Of each pair the free is whole, but for the first if its allocation is older than the calls.
        frees = [c for c in calls if c["action"] == "free_completed"]
        self.assertIn(len(allocations) - len(frees), (0, 1))
        self.assertEqual(sorted(c["time_us"] for c in calls), [c["time_us"] for c in calls])

    def test_pages(self):
        with Job("plain", BFC_BACKING="pages") as job:
            shown, figures = self.take(job, self.pickle), job.figures()
        self.check_segments(shown["segments"], figures)
        self.assertTrue(all(segment["is_expandable"] for segment in shown["segments"]))

    def test_following(self):
        """Calls of the time that it takes; how large the freed blocks are is known from the start."""
        with Job("plain") as job:
            taken = subprocess.Popen([BFCSTAT, "snapshot", "-o", self.pickle, "--duration=600", str(job.pid)],
                                     stdout=subprocess.PIPE, text=True)
            while not self.follows(taken.pid):
                time.sleep(0.01)
            for _ in range(20):
                job.leak()
            taken.terminate()
            said = taken.communicate()[0]
        self.assertEqual(taken.returncode, 0, said)
        with open(self.pickle, "rb") as file:
            shown = pickle.load(file)
        (calls,) = shown["device_traces"]
        leaks = [c for c in calls if functions(c["frames"])[:1] == ["site_leak"]]
        self.assertEqual((len(leaks), {c["size"] for c in leaks}), (320, {MIB}))
        self.assertEqual(self.held(shown["segments"], "site_leak"), 320)

    @staticmethod
    def follows(pid):
        """From when on it catches SIGTERM."""
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            caught = [line for line in file if line.startswith("SigCgt:")][0]
        return int(caught.split()[1], 16) >> 14 & 1

    def test_what_is_not_known_is_said(self):
        for stacks, why in (("off", "BFC_STACKS=off"), ("sample", "BFC_STACKS=all")):
            with Job("plain", BFC_STACKS=stacks) as job:
                shown, figures = self.take(job, self.pickle), job.figures()
            self.check_segments(shown["segments"], figures)
            names = {name for segment in shown["segments"] for block in segment["blocks"]
                     for name in functions(block["frames"])}
            self.assertTrue([name for name in names if why in name], names)
            self.assertEqual(stacks == "sample", "site_large" in names)
            self.assertIn("allocations without a stack: BFC_STACKS=all takes all\n", self.said)

    def test_counters(self):
        """Trace Event Format: counters and instants of a process, in time's order, and at the end the job's figures."""
        with Job("plain") as job:
            job.leak()
            shown, figures = self.take(job, self.json), job.figures()
        events = shown["traceEvents"]
        self.assertEqual(events[0], {"name": "process_name", "ph": "M", "pid": 0, "args": {"name": "device 0"}})
        counters = [e for e in events if e["ph"] == "C"]
        self.assertEqual(len(counters), len(events) - 1)
        for event in counters:
            self.assertEqual(set(event), {"name", "ph", "pid", "ts", "args"})
            self.assertTrue(all(isinstance(value, int) and value >= 0 for value in event["args"].values()))
        self.assertEqual(sorted(e["ts"] for e in counters), [e["ts"] for e in counters])
        self.assertEqual(counters[-1]["args"], {"live": figures["requested"], "reserved": figures["reserved"]})
        live = [e["args"]["live"] for e in counters]
        self.assertEqual({abs(b - a) for a, b in zip(live, live[1:])} - {0}, {MIB // 4, MIB})

    def test_refusals(self):
        with Job("threads") as job:
            for arguments, status, text in ((["-o", "x.txt", str(job.pid)], 2, ".pickle"),
                                            (["-o", self.pickle, "1"], 1, "1"),
                                            (["-o", "/nonexistent/s.pickle", str(job.pid)], 1, "No such file"),
                                            ([str(job.pid)], 2, "-o FILE")):
                run = subprocess.run([BFCSTAT, "snapshot", *arguments], text=True, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
                self.assertEqual((run.returncode, run.stdout), (status, ""), arguments)
                self.assertIn(text, run.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
