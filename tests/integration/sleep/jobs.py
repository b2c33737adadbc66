"""Jobs of a test (job.py), which are told what to do line by line.

Needs LIBCUDA, PRELOAD and BFCSTAT in the environment.
"""
import ast
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

LIBCUDA, PRELOAD, BFCSTAT = (os.environ[n] for n in ("LIBCUDA", "PRELOAD", "BFCSTAT"))
PLAYER = str(pathlib.Path(__file__).with_name("job.py"))
ON = {"BFC_BACKING": "pages", "BFC_GATE": "on"}


class Job:
    def __init__(self, test, settings=ON, wrapper=(), program=(sys.executable, PLAYER, LIBCUDA), **more):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("BFC_", "SIM_"))}
        self.errors = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(
            [*wrapper, *program], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.errors, env={**clean, "LD_PRELOAD": PRELOAD, "BFC_LOG": "info", **settings}, **more)
        self.pid = self.process.pid
        test.addCleanup(self.end)
        if (said := self.process.stdout.readline()) != "ready\n":
            raise AssertionError(f"{said!r} {self.said()}")

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.errors.close()

    def begin(self, line):
        """Tells the job to do something, whose answer `answer` reads."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self):
        said = self.process.stdout.readline()
        if not said:
            raise AssertionError(f"the job ended: {self.process.wait()} {self.said()}")
        return ast.literal_eval(said)

    def do(self, line):
        self.begin(line)
        return self.answer()

    def finish(self):
        """Lets the job come to its end; returns its status."""
        self.process.stdin.close()
        return self.process.wait(timeout=60)

    def said(self):
        self.errors.seek(0)
        return self.errors.read()

    def stat(self, *command):
        return subprocess.run([BFCSTAT, *command, str(self.pid)], capture_output=True, text=True, timeout=100)

    def asking(self, command):
        return subprocess.Popen([BFCSTAT, command, str(self.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def shown(self):
        return json.loads(self.stat("--json").stdout)

    def sleep(self):
        return self.shown()["sleep"]

    def fall_asleep(self):
        asked = self.stat("sleep")
        if asked.returncode:
            raise AssertionError(asked.stderr)

    def is_asleep(self):
        return self.sleep()["state"] == "asleep"

    def await_state(self, state):
        until = time.monotonic() + 60
        while self.sleep()["state"] != state:
            if time.monotonic() > until:
                raise AssertionError(f"never {state}: {self.sleep()} {self.said()}")
            time.sleep(0.01)


def main():
    unittest.main(verbosity=2)
