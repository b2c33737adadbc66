#!/usr/bin/env python3
"""Before a program is told that there is no memory: each last resort by itself and in order, over the
stand-in device of 256 MiB that several processes share. Waiting has a file of its own.

Needs what jobs.py needs and CONTEXTS (tests/fault/accidents/limit.c) in the environment.
"""
import os
import subprocess
import sys
import unittest

from jobs import BFCSTAT, SEGMENTS, Job, JobsTest

CONTEXTS = os.environ["CONTEXTS"]
EVENTS = {"contexts": "saved_contexts", "jobs": "saved_jobs", "wait": "waited", "spill": "spilled"}
SAVED = set(EVENTS.values())


class LastResort(JobsTest):
    # ---- other jobs' cached memory ----

    def test_jobs_are_asked_for_what_they_cache(self):
        holder = self.holder(160)
        holder.go_on()
        holder.until_ready()
        job = self.start("alloc", 200, "wait")
        self.assertEqual(job.until_ready(), ["0"])
        pool = job.pool()
        self.assertEqual((pool["last_resorts"]["jobs"]["saved"], pool["out_of_memory"]), (1, 0))
        self.assertIn("saved_jobs", [e["kind"] for e in job.shown()["landmarks"]])

    def test_what_free_pages_make_up_is_within_the_limit(self):
        """80 MiB take 20 new ones, to 110 MiB in all; the device has 6, and the holder caches the rest."""
        holder = self.holder(160)
        holder.go_on()
        holder.until_ready()
        job = self.start("alloc", 30, "alloc", 60, "free", "alloc", 80,
                         BFC_BACKING="pages", BFC_GROWTH="exact", BFC_LIMIT="120M")
        self.assertEqual(job.results(), ["0", "0", "0"])

    def test_a_job_among_many_is_asked(self):
        """It began first, so the folder shows it last."""
        room = {"SIM_MEMORY": "1G"}
        holder = self.start("alloc", 800, "free", "wait", **room)
        holder.until_ready()
        others = [self.start("alloc", 1, "wait", **room) for _ in range(66)]
        for other in others:
            self.assertEqual(other.until_ready(), ["0"])
        self.assertEqual(self.start("try", 800, **room).results()[-1:], ["0"])

    def test_a_job_among_many_files_is_asked(self):
        """Of other programs, in a shared folder of this test's own."""
        if os.environ.get("OWN_FOLDER"):
            return self.ask_among_many_files()
        own = ["unshare", "--map-root-user", "--mount", "sh", "-c", f"mount -t tmpfs none {SEGMENTS} && exec \"$@\"", "sh"]
        if subprocess.run([*own, "true"], capture_output=True).returncode != 0:
            self.skipTest("needs unshare, and the right to mount")
        done = subprocess.run([*own, sys.executable, __file__, self.id().removeprefix("__main__.")],
                              env={**os.environ, "OWN_FOLDER": "1"}, capture_output=True, text=True, timeout=200)
        self.assertEqual(done.returncode, 0, done.stderr)

    def ask_among_many_files(self):
        holder = self.holder(160)
        holder.go_on()
        holder.until_ready()
        for i in range(3000):
            open(os.path.join(SEGMENTS, f"other.{i}"), "x").close()
        self.assertEqual(self.start("try", 200).results()[-1:], ["0"])

    def test_jobs_can_be_switched_off(self):
        holder = self.holder(160)
        holder.go_on()
        holder.until_ready()
        job = self.start("alloc", 200, "wait", BFC_LAST_RESORT="pool,contexts,wait")
        self.assertEqual(job.until_ready(), ["2"])
        self.assertEqual(job.pool()["last_resorts"]["jobs"]["tried"], 0)
        self.assertIn(f"bfcstat trim {holder.pid}: what that process caches would have sufficed", job.said())
        subprocess.run([BFCSTAT, "trim", str(holder.pid)], check=True, capture_output=True)
        self.assertEqual(self.start("alloc", 200, BFC_LAST_RESORT="none").results(), ["0"])  # and so it does

    def test_contexts_can_be_switched_off(self):
        """One of two contexts wants what the other one has freed."""
        for rungs, answer in (("pool,contexts", "success"), ("pool,jobs,wait", "out of memory")):
            with self.subTest(rungs=rungs):
                job = Job(self, [], {"SIM_MEMORY": "1G", "BFC_LIMIT": "600M", "BFC_LAST_RESORT": rungs,
                                     "BFC_GROWTH": "double"}, CONTEXTS)
                said = job.process.communicate(timeout=60)[0]
                self.assertRegex(said, rf"(?m)^what was freed it can have: {answer}$")

    def test_the_pool_can_be_switched_off(self):
        actions = ["alloc", 100, "alloc", 100, "free", "free", "alloc", 150]
        self.assertEqual(self.start(*actions).results(), ["0", "0", "0"])
        self.assertEqual(self.start(*actions, BFC_LAST_RESORT="none").results(), ["0", "0", "2"])

    def test_a_bad_list_is_named(self):
        job = self.start("alloc", 1, BFC_LAST_RESORT="pool,neighbours", BFC_WAIT="none")
        self.assertEqual(job.results(), ["0"])
        self.assertIn("BFC_LAST_RESORT=pool,neighbours is not accepted: expected all, none, or some of pool, "
                      "contexts, jobs, sleep, wait, spill, joined by commas", job.said())
        self.assertIn("BFC_WAIT=none is not accepted: expected a number from 0", job.said())

    # ---- in order ----

    def rungs(self, *actions, **settings):
        """Of each last resort, how often it was tried and what it saved."""
        job = self.start(*actions, "wait", BFC_SPILL="1G", **settings)
        self.assertEqual(set(job.until_ready()), {"0"})
        pools = job.shown()["pools"]
        device = next(pool for pool in pools if pool["memory"] == "device")
        self.assertEqual([e["kind"] for e in job.shown()["landmarks"] if e["kind"] in SAVED],
                         [name for rung, name in EVENTS.items() if device["last_resorts"][rung]["saved"]
                          or (rung == "wait" and device["last_resorts"][rung]["tried"])])
        for rung in device["last_resorts"].values():
            self.assertEqual(rung["ns"] > 0, rung["tried"] > 0)
        job.go_on()
        job.process.wait(timeout=100)
        return {name: (rung["tried"], rung["saved"]) for name, rung in device["last_resorts"].items()}

    def test_each_is_tried_once_those_before_have_failed(self):
        holder = self.holder(160)
        none = (0, 0)
        self.assertEqual(self.rungs("alloc", 60, BFC_WAIT="0.2"),
                         {"pool": none, "contexts": none, "jobs": none, "sleep": none, "wait": none, "spill": none})
        self.assertEqual(self.rungs("alloc", 200, BFC_WAIT="0.2"),
                         {"pool": (1, 0), "contexts": (1, 0), "jobs": (1, 0), "sleep": (1, 0), "wait": (1, 0), "spill": (1, 1)})
        self.assertEqual(self.rungs("alloc", 200, BFC_WAIT="0.2", BFC_LAST_RESORT="spill"),
                         {"pool": none, "contexts": none, "jobs": none, "sleep": none, "wait": none, "spill": (1, 1)})
        holder.go_on()
        holder.until_ready()
        self.assertEqual(self.rungs("alloc", 200, BFC_WAIT="0.2"),
                         {"pool": (1, 0), "contexts": (1, 0), "jobs": (1, 1), "sleep": none, "wait": none, "spill": none})


if __name__ == "__main__":
    sys.exit(unittest.main())
