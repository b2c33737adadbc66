#!/usr/bin/env python3
"""What happens to the others when a job is stopped, hangs or is killed at a named moment of a last resort, and to
itself when a call of the driver is refused there.

The moments are calls of the stand-in driver: SIM_HALT stops a process at one, SIM_FAIL refuses one. Needs what
jobs.py needs in the environment. BFC_TEST_MOMENTS says how many calls of each function are tried (default 3).
"""
import json
import os
import signal
import subprocess
import sys
import time
import unittest

from jobs import BFCSTAT, JobsTest, segment_exists

MOMENTS = int(os.environ.get("BFC_TEST_MOMENTS", "3"))
ANSWERS = {"0", "2", "304"}  # success, out of memory, and the code of a refusal


class Moments(JobsTest):
    def setUp(self):
        super().setUp()
        self.here = self.share + "-halted"
        self.pids = []

    def start(self, *actions, **settings):
        job = super().start(*actions, **settings)
        self.pids.append(job.pid)
        return job

    def halted(self, call, *actions, **settings):
        return self.start(*actions, SIM_HALT=f"{call}:{self.here}", **settings)

    def cacher(self, mib, **settings):
        """Its helper thread, which stops when it gives back what it caches, is there."""
        job = self.halted("cuMemFree_v2@1", "alloc", mib, "free", "wait", **settings)
        self.assertEqual(job.until_ready(), ["0"])
        job.pool()
        return job

    def is_halted(self, job):
        """Waits until it stands at its moment; False: it has ended without, or waits for a line."""
        for _ in range(30000):
            if os.path.exists(self.here):
                return True
            if job.process.poll() is not None:
                return False
            time.sleep(0.002)
        raise AssertionError(f"neither halted nor ended: {job.said()}")

    def go_on(self):
        os.unlink(self.here)

    def kill(self, job):
        job.process.kill()
        job.process.wait()
        if os.path.exists(self.here):
            self.go_on()

    def expect_nothing_left(self):
        """A new job gets the whole device, and no segment is left."""
        self.assertEqual(self.start("alloc", 250, BFC_WAIT="90").results(), ["0"])
        subprocess.run([BFCSTAT], capture_output=True, check=False)  # removes what the killed ones left
        self.assertEqual([pid for pid in self.pids if segment_exists(pid)], [])

    # ---- killed ----

    def test_killed_while_it_waits(self):
        """At each of its looks: the driver is asked what is free. It leaves no place in the queue."""
        for number in range(1, MOMENTS * 2 + 1):
            with self.subTest(number=number):
                holder = self.holder(160)
                victim = self.halted(f"cuMemGetInfo_v2@{number}", "alloc", 200, BFC_WAIT="90")
                self.assertTrue(self.is_halted(victim))
                self.kill(victim)
                job = self.start("alloc", 150, "wait", BFC_WAIT="90")
                job.until_waiting(1)
                holder.go_on()
                self.assertEqual(job.until_ready(), ["0"])
                job.end()
                holder.end()
        self.expect_nothing_left()

    def test_killed_while_it_takes(self):
        """Its turn has come, and it asks the driver for the memory: then it is the next one's."""
        for number in (1, 2):  # when it runs out, and when it is its turn
            with self.subTest(number=number):
                holder = self.holder(160)
                victim = self.halted(f"cuMemAlloc_v2@{number}", "alloc", 200, BFC_WAIT="90")
                if number == 2:
                    victim.until_waiting(1)
                    holder.go_on()
                self.assertTrue(self.is_halted(victim))
                job = self.start("alloc", 190, "wait", BFC_WAIT="90")
                if number == 2:
                    job.until_waiting(2)
                self.kill(victim)
                if number == 1:
                    holder.go_on()
                self.assertEqual(job.until_ready(), ["0"])
                job.end()
                holder.end()
        self.expect_nothing_left()

    def test_killed_while_it_gives_back(self):
        """On request, by its helper thread: for one that waits, and for one that does not."""
        for wait in ("0", "90"):
            with self.subTest(wait=wait):
                victim = self.cacher(160)
                job = self.start("alloc", 200, "wait", BFC_WAIT=wait)
                self.assertTrue(self.is_halted(victim))
                self.kill(victim)
                answer = job.until_ready()
                self.assertIn(answer, (["0"], ["2"]) if wait == "0" else (["0"],))
                job.end()
        self.expect_nothing_left()

    def test_killed_while_it_hands_over(self):
        """In its own free, since another one waits."""
        victim = self.halted("cuMemFree_v2@1", "alloc", 160, "wait", "free", BFC_WAIT="90")
        victim.until_ready()
        job = self.start("alloc", 200, "wait", BFC_WAIT="90")
        job.until_waiting(1)
        time.sleep(0.7)  # else it may keep what it frees for a while
        victim.go_on()
        self.assertTrue(self.is_halted(victim))
        self.kill(victim)
        self.assertEqual(job.until_ready(), ["0"])
        job.end()
        self.expect_nothing_left()

    def test_killed_while_it_spills(self):
        for call in ("cuMemHostAlloc@1", "cuMemFreeHost@1"):
            with self.subTest(call=call):
                holder = self.holder(160)
                victim = self.halted(call, "alloc", 200, "free", "wait", BFC_SPILL="1G")
                self.assertTrue(self.is_halted(victim))
                self.kill(victim)
                self.assertEqual(self.start("alloc", 80, BFC_SPILL="1G").results(), ["0"])
                holder.go_on()
                holder.until_ready()  # it has freed
                self.assertEqual(self.start("alloc", 200, BFC_WAIT="90").results(), ["0"])
                holder.end()
        self.expect_nothing_left()

    # ---- stopped and hung ----

    def without_the_neighbour(self, neighbour):
        """While the neighbour gives nothing: who asks is told, and who waits is served by others."""
        self.assertEqual(self.start("alloc", 200).results(), ["2"])
        self.assertEqual(self.start("alloc", 200, BFC_WAIT="0.2").results(), ["2"])
        third = self.holder(60)
        job = self.start("alloc", 120, BFC_WAIT="90")
        job.until_waiting()
        third.go_on()
        self.assertEqual(job.results(), ["0"])
        self.assertIsNone(neighbour.process.poll())
        third.end()

    def test_a_stopped_neighbour(self):
        neighbour = self.holder(100)
        neighbour.go_on()
        neighbour.until_ready()
        neighbour.process.send_signal(signal.SIGSTOP)
        os.waitpid(neighbour.process.pid, os.WUNTRACED)
        self.without_the_neighbour(neighbour)
        neighbour.process.send_signal(signal.SIGCONT)
        self.assertEqual(self.start("alloc", 200, BFC_WAIT="90").results(), ["0"])

    def test_a_hung_neighbour(self):
        """Its helper thread is stuck in the driver."""
        neighbour = self.cacher(100)
        first = self.start("alloc", 200)
        self.assertTrue(self.is_halted(neighbour))
        self.assertEqual(first.results(), ["2"])
        self.without_the_neighbour(neighbour)
        self.go_on()
        self.assertEqual(self.start("alloc", 200, BFC_WAIT="90").results(), ["0"])

    # ---- refused ----

    def play(self, waiter, holder):
        """One waits for what the other frees; then it frees it and asks again. What its allocations came to."""
        giver = self.start("alloc", 160, "wait", "sleep", 20, "free", "wait", **holder)
        giver.until_ready()
        job = self.start("alloc", 200, "free", "alloc", 190, BFC_WAIT="2", **waiter)
        giver.go_on()
        results = job.results()
        giver.until_ready()
        self.assertEqual(self.start("alloc", 250, BFC_WAIT="90").results(), ["0"])  # nothing is lost
        giver.go_on()
        giver.process.wait(timeout=100)
        return results

    def spill(self, waiter, holder):
        """The same, but what the other one has stays. On a small device: meson has the C library fill the host's
        memory whenever it is freed."""
        small = {"SIM_MEMORY": "8M", "BFC_SPILL": "6M"}
        giver = self.start("alloc", 5, "wait", **{**small, **holder})
        giver.until_ready()
        results = self.start("alloc", 6, "free", "alloc", 5, **small, **waiter).results()
        self.assertEqual(self.start("alloc", 5, **small).results(), ["0"])
        giver.go_on()
        giver.process.wait(timeout=100)
        return results

    def contexts(self, wanting, _):
        """One context wants what another one of the process caches."""
        results = self.start("alloc", 160, "free", "context", "alloc", 200, "free", **wanting).results()
        self.assertEqual(self.start("alloc", 250, BFC_WAIT="90").results(), ["0"])
        return results

    def calls_of(self, side, play):
        """The functions that the waiter (0) or the other one (1) calls of the driver, but for the program's own.
        One whose device has no UUID is not known to the others, who then wait until it ends."""
        stats = self.share + "-stats"
        each = [{}, {}]
        each[side]["SIM_STATS"] = stats
        self.assertEqual(play(*each), ["0", "0"])
        with open(stats, encoding="utf-8") as lines:
            calls = json.loads(lines.readline())["calls"]
        return sorted(set(calls) - {"cuInit", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuCtxSynchronize",
                                    "cuCtxCreate_v4", "cuDeviceGetUuid"})

    def refuse(self, side, play):
        for name in self.calls_of(side, play):
            for number in range(1, MOMENTS + 1):
                for code in (2, 304):
                    with self.subTest(side=side, name=name, number=number, code=code):
                        each = [{}, {}]
                        each[side]["SIM_FAIL"] = f"{name}@{number}:{code}"
                        results = play(*each)
                        self.assertEqual(len(results), 2)
                        self.assertLessEqual(set(results), ANSWERS)

    def test_a_refused_call_of_one_that_waits(self):
        self.refuse(0, self.play)

    def test_a_refused_call_between_contexts(self):
        self.refuse(0, self.contexts)

    def test_a_refused_call_of_one_that_gives(self):
        self.refuse(1, self.play)

    def test_a_refused_call_of_one_that_spills(self):
        self.refuse(0, self.spill)


if __name__ == "__main__":
    sys.exit(unittest.main())
