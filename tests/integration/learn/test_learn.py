"""A loop plans itself (BFC_PLAN=auto), with whole programs over the stand-in device."""
import json
import os
import subprocess
import tempfile
import time
import unittest

PATIENCE = 120  # seconds, after which something hangs


class Job:
    """Each has a device of its own: another program whose device is full would ask this one for
    idle memory."""

    def __init__(self, **variables):
        self.folder = tempfile.TemporaryDirectory()
        self.log = tempfile.TemporaryFile("w+")
        environment = {**os.environ, "LD_PRELOAD": os.environ["PRELOAD"], "BFC_PLAN": "auto",
                       "BFC_LOG": "info", "SIM_SHARE": os.path.join(self.folder.name, "device"),
                       **variables}
        self.process = subprocess.Popen([os.environ["LOOPS"]], env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log)

    def do(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def until(self, command, is_so):
        """Gives the command until what it answers is so."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            answer = self.do(command)
            if is_so(answer):
                return answer
        raise AssertionError(f"never came about: {answer}\n{self.lines()}")

    def play_until_followed(self, loop, what="play"):
        """Plays a loop until its plan serves a whole play of it; returns the last two answers."""
        before = self.do(f"{what} {loop} 5")

        def is_followed(answer):
            nonlocal before
            good = (answer["memory"] > 0 and answer["missed"] == before["missed"]
                    and answer["followed"] >= before["followed"] + 5 * 48)
            before, self.last = answer, before
            return good

        return self.until(f"{what} {loop} 5", is_followed)

    def lines(self):
        self.log.seek(0)
        return self.log.read()

    def wakes(self):
        """How often the job's threads have waited."""
        threads = os.listdir(f"/proc/{self.process.pid}/task")
        return sum(self.status(f"task/{thread}/status", "voluntary_ctxt_switches")
                   for thread in threads)

    def status(self, path, key):
        with open(f"/proc/{self.process.pid}/{path}", encoding="ascii") as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith(key + ":"))

    def end(self):
        self.process.stdin.close()
        status = self.process.wait(PATIENCE)
        self.process.stdout.close()
        return status


class Learning(unittest.TestCase):
    def job(self, **variables):
        job = Job(**variables)
        self.addCleanup(lambda: (job.process.kill(), job.process.wait(), job.process.stdout.close(),
                                 job.process.stdin.close(), job.log.close(), job.folder.cleanup()))
        return job

    def finish(self, job):
        self.assertEqual(job.end(), 0, job.lines())

    def test_a_loop_is_planned_and_followed(self):
        for mode in "sync", "ordered":
            with self.subTest(mode):
                job = self.job(BFC_FREE=mode)
                job.do("keep 3000000")
                job.play_until_followed(1)
                answer = job.until(
                    "play 1 20", lambda a: a["reserved"] <= a["memory"] + (8 << 20))
                after = job.do("play 1 50")
                self.assertEqual(after["missed"], answer["missed"])
                self.assertEqual(after["reserve_calls"], answer["reserve_calls"])
                self.assertEqual(after["followed"], answer["followed"] + 50 * 48)
                self.assertEqual(after["period"], 48)
                self.assertIn("planned a loop of 48 allocations", job.lines())
                self.finish(job)

    def test_a_program_that_sleeps_is_hardly_looked_at(self):
        job = self.job()
        job.do("play 1 3")
        time.sleep(2)
        before = job.wakes()
        time.sleep(2)
        self.assertLess(job.wakes() - before, 50)
        self.finish(job)

    def test_contexts_that_come_and_go_keep_no_addresses(self):
        job = self.job()
        job.do("churn 1")
        before = job.status("status", "VmPeak")
        job.do("churn 4000")
        self.assertLess(job.status("status", "VmPeak") - before, 300 << 20)  # KiB
        self.finish(job)

    def test_a_plan_that_fits_in_part_is_replaced(self):
        job = self.job()
        for loop in 5, 105:
            job.play_until_followed(loop)
        self.finish(job)

    def test_a_plan_is_not_taken_and_left_for_ever(self):
        """Of a loop with the sizes of a known one, whose blocks live longer: their places are taken."""
        job = self.job()
        job.play_until_followed(1)
        leaves, before = 0, job.last
        for _ in range(1000):
            answer = job.do("late 1 1")
            leaves += bool(before["source"] and not answer["source"])
            before = answer
            time.sleep(0.001)
        self.assertLessEqual(leaves, 11)  # each takes twice as many looks, of a play or more
        self.finish(job)

    def test_a_known_loop_is_recognised(self):
        job = self.job()
        for loop in 1, 2, 1, 2:
            job.play_until_followed(loop)
        self.assertEqual(job.lines().count("planned a loop"), 2, job.lines())
        self.finish(job)

    def take_plan(self, pid, *options):
        """bfcstat plan: the file's path, and what bfcstat said of it."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "plan")
        return path, subprocess.run([os.environ["BFCSTAT"], "plan", "-o", path, *options, str(pid)],
                                    capture_output=True, text=True, check=False)

    def test_taken_out_the_next_run_follows_it_from_its_first_repetition(self):
        for mode in "sync", "lazy", "ordered":
            with self.subTest(mode):
                first = self.job(BFC_FREE=mode, SIM_STEP="1")
                first.do("keep 3000000")
                first.do("keep 65536")
                first.play_until_followed(1)
                path, told = self.take_plan(first.process.pid)
                self.assertIn("2 allocations before the loop, 48 in it", told.stdout, told.stderr)
                self.finish(first)
                second = self.job(BFC_FREE=mode, SIM_STEP="1", BFC_PLAN=path)
                second.do("keep 3000000")
                second.do("keep 65536")
                for played in 1, 2, 3:
                    answer = second.do("play 1 1")
                    self.assertEqual((answer["followed"], answer["missed"]), (48 * played, 0))
                again, told = self.take_plan(second.process.pid)
                with open(path, "rb") as one, open(again, "rb") as other:
                    self.assertEqual(one.read(), other.read(), told.stderr)
                self.finish(second)

    def test_a_loop_of_a_later_context_is_taken_out_too(self):
        job = self.job(BFC_FREE="sync")
        job.do("play 3 1")
        job.do("renew")
        job.play_until_followed(1)
        path, told = self.take_plan(job.process.pid)
        self.assertIn("0 allocations before the loop, 48 in it", told.stdout, told.stderr)
        self.finish(job)
        job = self.job(BFC_PLAN=path)
        self.assertEqual(job.do("play 1 4")["followed"], 4 * 48)
        self.finish(job)

    def test_where_there_is_no_plan_one_line_says_so(self):
        job = self.job(BFC_PLAN="none")
        job.do("play 1 1")
        for target, options, why in ((job.process.pid, (), "has no plan"),
                                     (1, (), "process 1 "), (2**31 - 1, (), "2147483647"),
                                     ("0", (), "neither a process id"),
                                     ("one", (), "neither a process id"),
                                     (job.process.pid, ("--device=x",), "--device takes")):
            path, told = self.take_plan(target, *options)
            self.assertNotEqual(told.returncode, 0)
            self.assertEqual(told.stderr.count("\n"), 1, told.stderr)
            self.assertIn(why, told.stderr)
            self.assertFalse(os.path.exists(path))
        self.finish(job)

    def test_only_of_the_devices_that_have_one(self):
        job = self.job()
        job.play_until_followed(1)
        _, told = self.take_plan(job.process.pid, "--device=7")
        self.assertIn("no plan of device 7, but of device 0", told.stderr)
        shown = subprocess.run([os.environ["BFCSTAT"], str(job.process.pid)], capture_output=True,
                               text=True, check=True).stdout
        self.assertIn("before its first plan", shown)
        self.finish(job)

    def test_the_limit_holds(self):
        job = self.job(BFC_LIMIT="20M")
        for _ in range(40):
            answer = job.do("play 1 10")
        self.assertLessEqual(answer["peak_reserved"], 20 << 20)
        self.finish(job)

    def test_threads_race(self):
        job = self.job()
        for _ in range(20):
            job.do("both 1 40")
        self.finish(job)

    def test_a_child_learns_nothing_and_its_parent_goes_on(self):
        job = self.job()
        job.do("play 1 2")
        job.do("fork")
        job.play_until_followed(1)
        job.do("fork")
        job.play_until_followed(1)
        self.finish(job)

    def test_a_new_context_learns_anew(self):
        job = self.job()
        for _ in range(3):
            job.play_until_followed(1)
            job.do("renew")
        self.finish(job)

    def test_contexts_may_end_and_the_program_exit_at_any_time(self):
        for plays in range(1, 8):
            job = self.job()
            job.do(f"play 1 {plays}")
            job.do("renew")
            job.do(f"play 2 {plays}")
            self.finish(job)

    def test_without_it_nothing_is_learned(self):
        job = self.job(BFC_PLAN="none")
        for _ in range(5):
            answer = job.do("play 1 40")
        self.assertEqual(answer["source"], 0)
        self.assertNotIn("planned", job.lines())
        self.finish(job)


if __name__ == "__main__":
    unittest.main()
