"""Jobs of one user that need the same device: who sleeps for whom, and that all come to their end.
usage: test_turns.py (LIBCUDA, PRELOAD and BFCSTAT in the environment)"""

import os
import tempfile
import time
import unittest

from jobs import ON, Job, main

TAKES_TURNS = {"BFC_SLEEP_QUANTUM": "0.1"}
ROUNDS = """
def work(mib, rounds, number):
    a = allocate(mib*MIB)
    wrong = 0
    for round in range(rounds):
        value = (number * 31 + round) % 256
        wrong += fill(a, value, mib*MIB) != 0
        wrong += not is_filled(a + (round % mib)*MIB, value, MIB)
        wrong += read(a, 1) != bytes([value])
    wrong += not is_filled(a, value, mib*MIB)
    return wrong
"""


class Turns(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.share = {"SIM_SHARE": f"{folder.name}/share", "SIM_MEMORY": "64M"}

    def job(self, settings=ON, **more):
        return Job(self, {**settings, **self.share, **more})

    def holding(self, mib, settings=ON, **more):
        job = self.job(settings, **more)
        job.do(f"size = {mib}*MIB; a = allocate(size); fill(a, 7, size); synchronize()")
        return job

    def test_full_when_it_wakes(self):
        sleeper = self.holding(50)
        sleeper.fall_asleep()
        other = self.holding(50)
        self.assertEqual(sleeper.do("read(a, 8)"), 2)
        self.assertEqual(sleeper.do("fill(a, 1, 8)"), 2)
        self.assertEqual(sleeper.do("attribute(2, a)"), 2)
        self.assertEqual(sleeper.do("allocate(40*MIB)"), "code 2")
        self.assertTrue(sleeper.is_asleep())
        self.assertIn("asleep", sleeper.stat().stdout)
        self.assertEqual(sleeper.stat("wake").returncode, 1)
        self.assertGreaterEqual(sleeper.sleep()["refused"], 4)
        other.end()
        self.assertTrue(sleeper.do("is_filled(a, 7, size)"))

    def test_caches_of_others_suffice(self):
        sleeper = self.holding(50)
        sleeper.fall_asleep()
        other = self.holding(50)
        other.do("free(a)")
        self.assertTrue(sleeper.do("is_filled(a, 7, size)"))

    def test_waits_for_memory(self):
        sleeper = self.holding(50, {**ON, "BFC_WAIT": "60"})
        sleeper.fall_asleep()
        other = self.holding(50)
        sleeper.begin("is_filled(a, 7, size)")
        sleeper.await_state("waking")
        other.do("free(a)")
        self.assertTrue(sleeper.answer())

    def test_idle_job_sleeps_for_another(self):
        idle = self.holding(50, TAKES_TURNS)
        time.sleep(0.5)
        busy = self.holding(50)
        self.assertTrue(idle.is_asleep())
        self.assertIn("put to sleep", busy.said())
        busy.end()
        self.assertTrue(idle.do("is_filled(a, 7, size)"))

    def test_idle_job_sleeps_for_one_that_wakes(self):
        sleeper = self.holding(50)
        sleeper.fall_asleep()
        idle = self.holding(50, TAKES_TURNS)
        time.sleep(0.5)
        self.assertTrue(sleeper.do("is_filled(a, 7, size)"))
        self.assertTrue(idle.is_asleep())
        sleeper.end()
        self.assertTrue(idle.do("is_filled(a, 7, size)"))

    def test_without_leave_it_is_left_alone(self):
        idle = self.holding(50)
        other = self.job()
        self.assertEqual(other.do("allocate(50*MIB)"), "code 2")
        self.assertFalse(idle.is_asleep())
        allowing = self.job({**ON, "BFC_LAST_RESORT": "pool,contexts,jobs"})
        idle.end()
        idle = self.holding(50, TAKES_TURNS)
        time.sleep(0.5)
        self.assertEqual(allowing.do("allocate(50*MIB)"), "code 2")

    def test_longest_idle_first(self):
        first = self.holding(24, {**TAKES_TURNS, "BFC_WAIT": "0"})
        time.sleep(0.5)
        second = self.holding(24, {**TAKES_TURNS, "BFC_WAIT": "0"})
        time.sleep(0.5)
        self.holding(24)
        self.assertTrue(first.is_asleep())
        self.assertFalse(second.is_asleep())
        self.assertTrue(second.do("is_filled(a, 7, size)"))

    def test_a_turn_begins_with_the_memory(self):
        """A job that has run for long before it gets the device still has a turn as long as another's."""
        settings = {"BFC_SLEEP_QUANTUM": "1"}
        late = self.holding(2, settings)
        first = self.holding(50, settings)
        time.sleep(1.5)
        late.do("a = allocate(50*MIB)")
        self.assertTrue(first.is_asleep())
        first.begin("fill(a, 8, size)")
        first.await_state("waking")
        time.sleep(0.3)
        self.assertEqual(late.sleep()["falls"], 0, late.said())
        self.assertEqual(first.answer(), 0)
        self.assertEqual(late.sleep()["falls"], 1)
        self.assertRegex(late.stat().stdout, r"\n  others slept +1   of 1 attempt, ")

    def take_turns(self, count, **more):
        """Returns how often each fell asleep, and how long all took."""
        jobs = [self.job(TAKES_TURNS, **more) for _ in range(count)]
        for number, job in enumerate(jobs):
            job.do("exec(" + repr(ROUNDS) + ", globals())")
        began = time.monotonic()
        for number, job in enumerate(jobs):
            job.begin(f"work(56, 60, {number})")
        answers = [job.answer() for job in jobs]
        took = time.monotonic() - began
        self.assertEqual(answers, [0] * count, [job.said() for job in jobs])
        falls = [job.sleep()["falls"] for job in jobs]
        print(f"{count} jobs: {took:.1f} s, falls {falls}", flush=True)
        return falls, took

    def test_two_take_turns(self):
        self.take_turns(2)

    def test_three_take_turns(self):
        self.take_turns(3)

    def test_turns_are_long_against_what_they_cost(self):
        """56 MiB are 14 copies: a fall takes 0.42 s or more, and then a turn at least 8 times that."""
        falls, took = self.take_turns(2, SIM_LATENCY="cuMemcpyDtoHAsync_v2:30000,cuMemcpyHtoDAsync_v2:30000")
        for count in falls:
            self.assertLessEqual((count - 1) * 8 * 0.42, took)


if __name__ == "__main__":
    main()
