#!/usr/bin/env python3
"""What bfcplan shows of its progress, and what an interrupt leaves."""

import json
import os
import pty
import shutil
import signal
import subprocess
import time
import unittest

from cases import BFCPLAN, Case, EXAMPLES, lifetimes


class Interrupts(Case):
    def test_interrupt_keeps_the_best_so_far(self):
        path = self.generate("a.csv", "cut", 2000, 5)
        job = subprocess.Popen([BFCPLAN, "solve", path, "-o", self.path("p"), "--json", "--align",
                                "1", "--time-limit", "90"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        time.sleep(2)
        job.send_signal(signal.SIGINT)
        out, told = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 0)
        self.assertRegex(told, r"^bfcplan: interrupted: [^\r\n]*\n$")
        self.assertLess(json.loads(out)["seconds"], 60)
        self.run_plan("check", self.path("p"), path)

    def on_terminal(self, *arguments):
        """A job whose standard error is a terminal; the terminal's other end."""
        here, there = pty.openpty()
        job = subprocess.Popen([BFCPLAN, *map(str, arguments)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=there)
        os.close(there)
        self.addCleanup(os.close, here)
        return job, here

    @staticmethod
    def read_until(here, wanted):
        shown = b""
        while wanted not in shown:
            try:
                more = os.read(here, 4096)
            except OSError:
                more = b""
            if not more:
                break
            shown += more
        return shown.decode()

    def test_progress_and_interrupt_on_a_terminal(self):
        path = self.generate("a.csv", "cut", 2000, 5)
        job, here = self.on_terminal("solve", path, "-o", self.path("p"), "--align", "1",
                                     "--time-limit", "90")
        self.assertRegex(self.read_until(here, b"peak"), r"step 3 of 5, packing: \d+ %, \d+ s left")
        job.send_signal(signal.SIGINT)
        self.assertIn("interrupted: the best plan so far is checked and written",
                      self.read_until(here, b"without it"))
        out, _ = job.communicate(timeout=60)
        self.assertIn(b"interrupted", out)
        self.assertEqual(job.returncode, 0)
        self.run_plan("check", self.path("p"), path)

    def test_every_command_shows_progress_and_obeys_an_interrupt(self):
        plan, out = self.path("p"), self.path("out")
        self.run_plan("solve", self.write("a.csv", lifetimes(30, 1)), "-o", plan)
        for steps, *arguments in ((2, "check", plan, "-"), (5, "plot", "-", "-o", out),
                                  (2, "period", "-"), (3, "lifetimes", "-", "-o", out)):
            with self.subTest(arguments[0]):
                job, here = self.on_terminal(*arguments)  # reads what does not come
                self.assertIn(f"step 1 of {steps}, reading: 0 %", self.read_until(here, b" %"))
                job.send_signal(signal.SIGINT)
                self.assertIn("interrupted: nothing was written", self.read_until(here, b"written"))
                self.assertEqual(job.wait(timeout=60), -signal.SIGINT)
                job.communicate()
                self.assertEqual(sorted(os.listdir(self.folder.name)), ["a.csv", "p"])

    def test_interrupt_before_there_is_a_plan(self):
        job, here = self.on_terminal("solve", "-", "-o", self.path("p"))
        job.stdin.write(b"id,lower,upper,size\n")
        job.stdin.flush()
        self.wait_until_caught(job)
        job.send_signal(signal.SIGINT)
        self.assertIn("nothing was written", self.read_until(here, b"written"))
        self.assertEqual(job.wait(timeout=60), -signal.SIGINT)
        job.communicate()
        self.assertEqual(os.listdir(self.folder.name), [])

    @staticmethod
    def wait_until_caught(job):
        caught = 0
        while not caught & 1 << (signal.SIGINT - 1):
            with open(f"/proc/{job.pid}/status", encoding="ascii") as file:
                caught = int(next(line for line in file if line.startswith("SigCgt")).split()[1], 16)

    def interrupt(self, seconds, *arguments):
        """Exit status, and what was told, of a job that is interrupted after so many seconds."""
        job = subprocess.Popen([BFCPLAN, *map(str, arguments)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        self.wait_until_caught(job)
        time.sleep(seconds)
        job.send_signal(signal.SIGINT)
        _, told = job.communicate(timeout=500)
        return job.returncode, told

    def test_interrupt_in_every_step(self):
        """With ROWS=10000000 by hand: the same at size, in some minutes."""
        path, plan = self.generate("a.csv", "train", os.environ.get("ROWS", 50000), 1), self.path("p")
        started = time.monotonic()
        self.run_plan("solve", path, "-o", plan)
        whole = time.monotonic() - started
        for command in (("solve", path, "-o", self.path("new")), ("check", plan, path)):
            for share in (0, 0.2, 0.5, 0.7, 0.9):
                with self.subTest(command=command[0], share=share):
                    status, told = self.interrupt(whole * share, *command)
                    self.assertIn(status, (0, -signal.SIGINT))
                    if status != 0:
                        self.assertRegex(told, r"^bfcplan: interrupted[^\n]*nothing was written\n$")
                    elif command[0] == "solve":
                        os.remove(self.path("new"))  # whole: it may have been over by then
                    self.assertEqual(sorted(os.listdir(self.folder.name)), ["a.csv", "p"])

    @unittest.skipUnless(shutil.which("strace"), "strace is not installed")
    def test_interrupt_when_an_output_has_just_been_made(self):
        """The system call that makes it returns late: the interrupt comes before the program knows of its file."""
        for _ in range(20):  # a busy machine may look too late
            job = subprocess.Popen(
                ["strace", "-f", "-o", "/dev/null", "-e", "trace=openat", "-e", "inject=openat:delay_exit=50000",
                 "sh", "-c", 'echo $$ && exec "$@"', "sh", BFCPLAN, "lifetimes",
                 os.path.join(EXAMPLES, "network.json"), "-o", self.path("new")],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            pid = job.stdout.readline()
            if not pid:
                self.skipTest(f"strace: {job.communicate()[1]}")
            while not os.listdir(self.folder.name) and job.poll() is None:
                time.sleep(0.001)
            interrupted = job.poll() is None
            if interrupted:
                os.kill(int(pid), signal.SIGINT)
            told = job.communicate(timeout=60)[1]
            if os.path.exists(self.path("new")):  # too late
                os.remove(self.path("new"))
                interrupted = False
            self.assertEqual(os.listdir(self.folder.name), [])
            if interrupted:
                break
        self.assertRegex(told, r"^bfcplan: interrupted: nothing was written\n$")

    def test_progress_only_on_a_terminal(self):
        path = self.write("a.csv", lifetimes(300, 1))
        result = self.run_plan("solve", path, "-o", self.path("p"), "--time-limit", 2)
        self.assertEqual(result.stderr, "")


if __name__ == "__main__":
    unittest.main()
