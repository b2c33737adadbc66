#!/usr/bin/env python3
"""Waiting for memory that other jobs use (BFC_WAIT): who waits, how long and in which order, over the stand-in
device of 256 MiB that several processes share.

Needs what jobs.py needs and SHARE in the environment. BFC_TEST_ROUNDS says how many rounds the three jobs at a
full device play (default 15).
"""
import concurrent.futures
import json
import os
import random
import signal
import subprocess
import sys
import time
import unittest

from jobs import ACTOR, BFCSTAT, Job, JobsTest, segment_exists

SHARE = os.environ["SHARE"]
FUTEX = {"x86_64": "202", "aarch64": "98"}.get(os.uname().machine)
ROUNDS = os.environ.get("BFC_TEST_ROUNDS", "15")


class Waiting(JobsTest):
    def test_waits_for_what_another_job_frees(self):
        holder = self.holder(160)
        job = self.start("alloc", 200, "wait", BFC_WAIT="90")
        self.assertEqual(job.until_waiting(1)["bytes"], 200 << 20)
        table = subprocess.run([BFCSTAT], capture_output=True, text=True).stdout
        self.assertRegex(table, rf"(?m)^ *{job.pid} .* waits for 200 MiB for .*, position 1: ")
        holder.go_on()
        self.assertEqual(job.until_ready(), ["0"])
        pool = job.pool()
        self.assertIsNone(pool["waiting"])
        self.assertEqual(pool["last_resorts"]["wait"]["saved"], 1)
        self.assertGreater(pool["last_resorts"]["wait"]["ns"], 0)
        self.assertIn("waited", [e["kind"] for e in job.shown()["landmarks"]])
        self.assertEqual(job.said(), "bfcpreload: device 0: waits up to 90 s for 200 MiB that other jobs use "
                         "(BFC_WAIT)\n")

    def test_waits_for_the_end_of_another_job(self):
        for end in (lambda job: job.process.kill(), lambda job: job.go_on()):
            with self.subTest(end=end):
                holder = self.start("alloc", 160, "wait")
                holder.until_ready()
                job = self.start("alloc", 200, BFC_WAIT="90")
                job.until_waiting(1)
                end(holder)
                holder.process.wait()
                self.assertEqual(job.results(), ["0"])

    def test_waits_no_longer_than_it_should(self):
        self.holder(160)
        job = self.start("alloc", 200, "wait", BFC_WAIT="0.3")
        self.assertEqual(job.until_ready(), ["2"])
        self.assertRegex(job.said(), r"  waited +[0-9.]+ s, until BFC_WAIT was over\n")
        self.assertEqual(job.pool()["last_resorts"]["wait"], {**job.pool()["last_resorts"]["wait"], "saved": 0, "tried": 1})
        self.assertIsNone(job.pool()["waiting"])

    def test_a_signal_ends_the_wait(self):
        self.holder(160)
        job = self.start("handler", "alloc", 200, "wait", BFC_WAIT="90")
        job.until_waiting(1)
        for _ in range(1000):  # one may come while it looks, and then does not count
            job.process.send_signal(signal.SIGUSR1)
            pool = job.pool()
            if pool["out_of_memory"]:
                break
            time.sleep(0.01)
        self.assertEqual(job.until_ready(), ["2"])
        self.assertRegex(job.said(), r"  waited +[0-9.]+ s, until a signal came\n")

    def test_a_signal_that_restarts_calls_does_not(self):
        holder = self.holder(160)
        job = self.start("restarter", "alloc", 200, BFC_WAIT="90")
        job.until_waiting(1)
        for _ in range(100):
            job.process.send_signal(signal.SIGUSR1)
            time.sleep(0.005)
        job.until_waiting(1)
        holder.go_on()
        self.assertEqual(job.results(), ["0"])

    def sleeps(self, job):
        """All its threads do, in a futex, and so hold nothing that a jump would leave behind."""
        calls = []
        for thread in os.listdir(f"/proc/{job.pid}/task"):
            try:
                with open(f"/proc/{job.pid}/task/{thread}/syscall", encoding="ascii") as call:
                    calls.append(call.read().split()[0])
            except OSError:
                return False
        return len(calls) > 1 and set(calls) == {FUTEX}

    def jump_out(self, job):
        for _ in range(3000):
            if self.sleeps(job):
                job.process.send_signal(signal.SIGUSR1)
                self.assertEqual(job.process.stdout.readline().split()[:3], ["alloc", "200", "-1"])
                return
            time.sleep(0.003)
        raise AssertionError("it never sleeps: " + job.said())

    @unittest.skipUnless(FUTEX and os.access("/proc/self/syscall", os.R_OK), "needs /proc/PID/syscall")
    def test_who_jumps_out_of_a_wait_leaves_the_queue(self):
        """However often, in one thread and in several that end: there are 8 slots."""
        for jump in ("jump_here", "jump"):
            with self.subTest(jump=jump):
                holder = self.holder(160)
                job = self.start(*[jump, 200] * 9, "wait", "alloc", 200, BFC_WAIT="3600")
                for _ in range(9):
                    job.until_waiting()
                    self.jump_out(job)
                self.assertEqual(job.until_ready(), [])
                self.until_it_waits_no_longer(job)
                other = self.start("alloc", 190, "wait", BFC_WAIT="3600")
                other.until_waiting(1)
                job.go_on()
                job.until_waiting(2)
                holder.go_on()
                self.assertEqual(other.until_ready(), ["0"])
                other.end()
                self.assertEqual(job.results(), ["0"])
                holder.end()

    def test_it_can_be_switched_off(self):
        self.holder(160)
        job = self.start("alloc", 200, "wait", BFC_WAIT="90", BFC_LAST_RESORT="pool,contexts,jobs")
        self.assertEqual(job.until_ready(), ["2"])

    def test_does_not_wait_in_vain(self):
        for settings, actions in (({"BFC_LIMIT": "100M"}, ("alloc", 60, "alloc", 60)),
                                  ({}, ("alloc", 200, "alloc", 200)),
                                  ({}, ("alloc", 161, "alloc", 95)),  # 162 and 96 in the driver's pages
                                  ({}, ("alloc", 1, "alloc", 300))):
            with self.subTest(settings=settings, actions=actions):
                job = self.start(*actions, BFC_WAIT="3600", **settings)
                self.assertEqual(job.results(), ["0", "2"])

    def test_waits_once_for_its_own_memory(self):
        """Past its pool, so that it looks like that of others."""
        job = self.start("alloc", 160, "alloc", 150, "alloc", 150, "alloc", 120, "wait",
                         BFC_WAIT="0.3", BFC_BYPASS_ABOVE="155M")
        self.assertEqual(job.until_ready(), ["0", "2", "2", "2"])
        self.assertEqual(job.pool()["last_resorts"]["wait"]["saved"], 0)
        self.assertEqual([e["kind"] for e in job.shown()["landmarks"]].count("waited"), 1)

    def test_first_come_first_served(self):
        holder = self.holder(200)
        waiters = []
        for position in (1, 2, 3):
            waiters.append(self.start("alloc", 150, "wait", "free", "wait", BFC_WAIT="90"))
            waiters[-1].until_waiting(position)
        holder.go_on()
        for i, waiter in enumerate(waiters):
            self.assertEqual(waiter.until_ready(), ["0"])
            for later in waiters[i + 1:]:
                later.until_waiting()
            waiter.go_on()

    def test_a_job_that_begins_does_not_take_what_another_one_waits_for(self):
        """Although it is free, and its pool is the first."""
        holder = self.holder(160)
        first = self.start("alloc", 200, "wait", BFC_WAIT="90")
        first.until_waiting(1)
        new = self.start("alloc", 60, BFC_WAIT="90")
        new.until_waiting(2)
        holder.go_on()
        self.assertEqual(first.until_ready(), ["0"])
        first.end()
        self.assertEqual(new.results(), ["0"])

    def test_three_that_run_out_at_once(self):
        """One holds all they want; each gets its turn."""
        holder = self.holder(200)
        waiters = [self.start("alloc", 150, BFC_WAIT="90") for _ in range(3)]
        queue = {}
        while set(queue) != {1, 2, 3}:
            queue = {waiter.until_waiting()["position"]: waiter for waiter in waiters}
        holder.go_on()
        self.assertEqual([queue[position].results() for position in (1, 2, 3)], [["0"]] * 3)

    def test_who_has_come_to_its_own_limit_is_passed_over(self):
        holder = self.holder(160)
        limited = self.start("beside", 150, "wait", "alloc", 60, "wait", BFC_LIMIT="200M", BFC_WAIT="3600")
        self.assertEqual(limited.until_ready(), [])
        limited.until_waiting(1)
        limited.go_on()
        self.assertEqual(limited.until_ready(), ["0"])
        job = self.start("alloc", 120, BFC_WAIT="20")
        job.until_waiting()
        holder.go_on()
        self.assertEqual(job.results(), ["0"])

    def until_it_waits_no_longer(self, job):
        for _ in range(3000):
            if not job.pool()["waiting"]:
                return
            time.sleep(0.01)
        raise AssertionError("it still waits: " + job.said())

    def test_what_other_threads_free_in_several_regions_serves_it(self):
        """While another job keeps what it has."""
        self.holder(100)
        job = self.start("alloc", 60, "alloc", 60, "beside", 110, "wait", "free", "free", "wait", BFC_WAIT="3600")
        self.assertEqual(job.until_ready(), ["0", "0"])
        job.until_waiting(1)
        job.go_on()
        self.assertEqual(job.until_ready(), [])
        self.until_it_waits_no_longer(job)
        self.assertEqual(job.pool()["in_use"], 110 << 20)

    def test_what_other_threads_free_in_another_context_serves_it(self):
        """Whether the policy takes what is wanted, or a region of 20 MiB for 5 MiB."""
        for mib, held, policy in (60, 110, "bfc"), (12, 5, "pytorch"):
            with self.subTest(policy=policy):
                holder = self.holder(100 if policy == "bfc" else 230)
                job = self.start("context", "alloc", mib, "alloc", mib, "beside", held, "wait", "free", "free", "wait",
                                 BFC_WAIT="3600", BFC_POLICY=policy)
                self.assertEqual(job.until_ready(), ["0", "0"])
                job.until_waiting_on(0)
                job.go_on()
                self.assertEqual(job.until_ready(), [])
                self.until_used(job, held)
                job.end()
                holder.end()

    def until_used(self, job, mib):
        """The contexts of a job use so much in all."""
        for _ in range(3000):
            if sum(pool["in_use"] for pool in job.shown()["pools"]) == mib << 20:
                return
            time.sleep(0.01)
        raise AssertionError("it is not served: " + job.said())

    def test_what_other_threads_free_below_its_own_limit_serves_it(self):
        """It has come to BFC_LIMIT while it waited, and goes back below it."""
        holder = self.holder(160)
        job = self.start("beside", 150, "wait", "alloc", 30, "alloc", 30, "wait", "free", "free", "wait",
                         BFC_LIMIT="200M", BFC_WAIT="3600")
        self.assertEqual(job.until_ready(), [])
        job.until_waiting(1)
        job.go_on()
        self.assertEqual(job.until_ready(), ["0", "0"])
        time.sleep(0.2)  # some looks: it steps aside
        job.go_on()
        self.assertEqual(job.until_ready(), [])
        holder.go_on()
        self.until_it_waits_no_longer(job)
        self.assertEqual(job.pool()["in_use"], 150 << 20)

    def test_a_dead_or_stopped_waiter_loses_its_turn(self):
        for number in (signal.SIGKILL, signal.SIGSTOP):
            with self.subTest(number=number):
                holder = self.holder(200)
                first = self.start("alloc", 150, BFC_WAIT="90")
                first.until_waiting(1)
                second = self.start("alloc", 160, "wait", BFC_WAIT="90")
                second.until_waiting(2)
                first.process.send_signal(number)  # not waited for: a zombie leaves the queue too
                second.until_waiting(1)
                holder.go_on()
                self.assertEqual(second.until_ready(), ["0"])
                second.end()
                first.end()
                holder.end()

    def test_who_becomes_another_program_leaves_the_queue(self):
        """And the next job that begins removes its segment, although its process lives."""
        holder = self.holder(160)
        gone = self.start("beside", 150, "wait", "exec", 60, BFC_WAIT="3600")
        gone.until_ready()
        gone.until_waiting(1)
        gone.go_on()
        while os.path.basename(os.readlink(f"/proc/{gone.pid}/exe")) == os.path.basename(ACTOR):
            time.sleep(0.01)
        job = self.start("alloc", 150, BFC_WAIT="90")
        job.until_waiting(1)
        self.assertFalse(segment_exists(gone.pid))
        self.assertIsNone(gone.process.poll())
        holder.go_on()
        self.assertEqual(job.results(), ["0"])

    def test_of_waiters_that_block_each_other_the_younger_is_told(self):
        older = self.start("alloc", 100, "wait", "alloc", 150, BFC_WAIT="3600")
        younger = self.start("alloc", 100, "wait", "alloc", 150, "wait", BFC_WAIT="3600")
        older.until_ready()
        younger.until_ready()
        older.go_on()
        older.until_waiting(1)
        younger.go_on()
        self.assertEqual(younger.until_ready(), ["2"])
        self.assertRegex(younger.said(), r"  waited +[0-9.]+ s, no longer, since all jobs that wait hold what the "
                         "others want\n")
        self.assertRegex(younger.said(), rf"  beside it +process {older.pid} .*; it waits for memory\n")
        older.until_waiting(1)
        younger.go_on()
        younger.process.wait()
        self.assertEqual(older.results(), ["0"])

    def test_the_younger_is_told_where_only_whole_pages_suffice(self):
        """The older one lacks what both have in use and a MiB: the driver has rounded up what the younger one has."""
        older = self.start("alloc", 101, "wait", "alloc", 154, BFC_WAIT="3600")
        younger = self.start("alloc", 94, "alloc", 1, "wait", "alloc", 100, "wait", BFC_WAIT="3600")
        older.until_ready()
        younger.until_ready()
        older.go_on()
        older.until_waiting(1)
        younger.go_on()
        self.assertEqual(younger.until_ready(), ["2"])
        older.until_waiting(1)
        younger.go_on()
        younger.process.wait()
        self.assertEqual(older.results(), ["0"])

    def test_of_waiters_on_two_devices_the_younger_is_told(self):
        """Each holds what the other one waits for, on another device; a third one waits in vain for neither."""
        first = self.start("alloc", 160, "wait", "device", 1, "alloc", 150, BFC_WAIT="3600", SIM_DEVICES="2")
        second = self.start("device", 1, "alloc", 160, "wait", "device", 0, "alloc", 150, "wait", "free", "wait",
                            BFC_WAIT="3600", SIM_DEVICES="2")
        first.until_ready()
        second.until_ready()
        first.go_on()
        first.until_waiting_on(1)
        second.go_on()
        self.assertEqual(second.until_ready(), ["2"])
        self.assertRegex(second.said(), r"  waited +[0-9.]+ s, no longer, since all jobs that wait hold what the "
                         "others want\n")
        first.until_waiting_on(1)
        second.go_on()
        self.assertEqual(first.results(), ["0"])

    def test_who_waits_on_two_devices_for_one_that_works_is_not_told(self):
        """The older one waits for what the younger one holds, who waits on another device for what a third one
        will free."""
        third = self.start("device", 1, "alloc", 160, "wait", "free", "wait", SIM_DEVICES="2")
        third.until_ready()
        younger = self.start("alloc", 160, "wait", "device", 1, "alloc", 150, SIM_DEVICES="2", BFC_WAIT="3600")
        younger.until_ready()
        older = self.start("alloc", 150, SIM_DEVICES="2", BFC_WAIT="3600")
        older.until_waiting(1)
        younger.go_on()
        younger.until_waiting_on(1)
        time.sleep(0.3)  # some looks
        older.until_waiting(1)
        third.go_on()
        self.assertEqual(younger.results(), ["0"])
        self.assertEqual(older.results(), ["0"])

    def test_one_that_can_be_served_is_not_blocked_by_one_that_cannot(self):
        """The older one wants what the younger one holds; the younger one wants little."""
        third = self.holder(60)
        younger = self.start("alloc", 90, "wait", "alloc", 50, BFC_WAIT="3600")
        younger.until_ready()
        older = self.start("alloc", 90, "wait", "alloc", 130, BFC_WAIT="3600")
        older.until_ready()
        older.go_on()
        older.until_waiting(1)
        younger.go_on()
        younger.until_waiting(2)
        third.go_on()
        self.assertEqual(younger.results(), ["0"])
        third.go_on()
        self.assertEqual(older.results(), ["0"])

    def test_killed_at_any_moment(self):
        """Holder or waiter: the other one goes on, and nothing is left behind."""
        dice = random.Random(1)
        pids = []
        for round_number in range(10):
            holder = self.start("alloc", 160, "sleep", 100, BFC_WAIT="90")
            waiter = self.start("alloc", 200, BFC_WAIT="90")
            victim, survivor = (holder, waiter) if round_number % 2 else (waiter, holder)
            time.sleep(dice.random() * 0.15)
            victim.process.kill()
            victim.process.wait()
            self.assertTrue(set(survivor.results()) <= {"0"})
            pids += [victim.pid, survivor.pid]
        self.assertEqual(self.start("alloc", 250).results(), ["0"])
        subprocess.run([BFCSTAT], capture_output=True)  # removes what the killed ones left
        self.assertEqual([pid for pid in pids if segment_exists(pid)], [])

    @unittest.skipUnless(os.getuid() == 0, "needs root, to become another user")
    def test_another_users_job(self):
        """They do not see each other's segments: the driver's count tells."""
        with open(self.share, "wb"):
            os.chmod(self.share, 0o666)
        try:
            holder = Job(self, ["alloc", 160, "wait"], {}, user=65534)
            holder.until_ready()
        except (OSError, AssertionError) as problem:
            self.skipTest(f"another user cannot run it: {problem}")
        job = self.start("alloc", 200, BFC_WAIT="90")
        job.until_waiting(1)
        holder.go_on()
        holder.process.wait()
        self.assertEqual(job.results(), ["0"])

    # ---- many ----

    def play(self, jobs, rounds, most, blocks, **settings):
        board = self.share + "-board"
        started = [Job(self, [rounds, most, blocks, seed, board], settings, SHARE) for seed in range(1, jobs + 1)]
        # All at once: the stand-in device takes an ended process that nobody has waited for as living.
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            said = list(pool.map(lambda job: job.process.communicate(timeout=250 + 2 * rounds)[0], started))
        for job, line in zip(started, said):
            self.assertEqual(job.process.returncode, 0, line)
            allocations, refused, _, wrong, _, _, overtaken, _ = line.split()
            self.assertEqual(wrong, "0")
            yield int(allocations), int(refused), int(overtaken)
        self.assertEqual([job.pid for job in started if segment_exists(job.pid)], [])

    def test_eight_jobs_that_fill_the_device_in_turns(self):
        for _, refused, _ in self.play(8, 8, 45, 1, BFC_WAIT="90", SIM_MEMORY="64M"):
            self.assertEqual(refused, 0)

    def test_who_frees_and_allocates_again_stands_behind_those_who_wait(self):
        """In the end it hands over what it frees, although nobody asks it for that."""
        for settings in ({"BFC_FREE": "sync"}, {"BFC_FREE": "lazy"}, {"BFC_FREE": "ordered"}, {"BFC_BACKING": "pages"}):
            with self.subTest(settings=settings):
                busy = self.start("alloc", 160, "wait", "swap", 160, BFC_WAIT="90", **settings)
                self.assertEqual(busy.until_ready(), ["0"])
                busy.go_on()
                job = self.start("alloc", 200, BFC_WAIT="90", BFC_LAST_RESORT="pool,contexts,wait")
                self.assertEqual(job.results(), ["0"])
                busy.go_on()
                busy.go_on()
                self.assertEqual(busy.process.wait(timeout=100), 0, busy.said())

    def test_handing_over_leaves_most_rounds_to_the_pool(self):
        """Of three jobs only one has room, for short."""
        stats = self.share + "-stats"
        played = list(self.play(3, 100, "18-20", 1, BFC_WAIT="90", SIM_MEMORY="32M", SIM_STATS=stats))
        self.assertEqual([refused for _, refused, _ in played], [0, 0, 0])
        with open(stats, encoding="utf-8") as lines:
            taken = sum(json.loads(line)["calls"]["cuMemAlloc_v2"] for line in lines)
        self.assertLess(taken, 300 * 3 / 4)

    def test_three_jobs_at_a_full_device(self):
        """Contents are checked; who waits in vain frees what it has, and so all come to an end."""
        for allocations, _, _ in self.play(3, int(ROUNDS), 25, 3, BFC_WAIT="3600", SIM_MEMORY="64M"):
            self.assertGreaterEqual(allocations, int(ROUNDS))


if __name__ == "__main__":
    sys.exit(unittest.main())
