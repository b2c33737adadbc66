"""A loop plans itself (BFC_PLAN=auto), with whole programs over the stand-in device."""
import json
import os
import subprocess
import tempfile
import time
import unittest

PATIENCE = 120  # seconds, after which something hangs


class Job:
    def __init__(self, **variables):
        self.log = tempfile.TemporaryFile("w+")
        environment = {**os.environ, "LD_PRELOAD": os.environ["PRELOAD"], "BFC_PLAN": "auto",
                       "BFC_LOG": "info", **variables}
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

    def end(self):
        self.process.stdin.close()
        status = self.process.wait(PATIENCE)
        self.process.stdout.close()
        return status


class Learning(unittest.TestCase):
    def job(self, **variables):
        job = Job(**variables)
        self.addCleanup(lambda: (job.process.kill(), job.process.wait(), job.process.stdout.close(),
                                 job.process.stdin.close(), job.log.close()))
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

    def test_a_known_loop_is_recognised(self):
        job = self.job()
        for loop in 1, 2, 1, 2:
            job.play_until_followed(loop)
        self.assertEqual(job.lines().count("planned a loop"), 2, job.lines())
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
