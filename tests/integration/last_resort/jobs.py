"""Jobs of a test, over the stand-in device of 256 MiB that they share.

Needs ACTOR (tests/integration/policy), PRELOAD and BFCSTAT in the environment.
"""
import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest

ACTOR, PRELOAD, BFCSTAT = (os.environ[n] for n in ("ACTOR", "PRELOAD", "BFCSTAT"))
SEGMENTS = "/dev/shm"


def segment_exists(pid):
    return any(name.startswith("bfcpreload.") and name.endswith(f".{pid}") for name in os.listdir(SEGMENTS))


class Job:
    def __init__(self, test, actions, settings, program=ACTOR, **more):
        ready = {k: v for k, v in os.environ.items() if not k.startswith(("BFC_", "SIM_"))}
        self.errors = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(
            [program, *map(str, actions)], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.errors, **more,
            env={**ready, "LD_PRELOAD": PRELOAD, "SIM_MEMORY": "256M", "BFC_GROWTH": "exact",
                 "SIM_SHARE": test.share, **settings})
        self.pid = self.process.pid
        test.addCleanup(self.end)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        self.errors.close()

    def until_ready(self):
        """Up to its next `wait`; returns what its allocations came to."""
        results = []
        while (line := self.process.stdout.readline().strip()) != "ready":
            if not line:
                raise AssertionError(f"it ended: {self.process.wait()}")
            results.append(line.split()[2])
        return results

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def results(self):
        said = self.process.communicate(timeout=100)[0]
        return [line.split()[2] for line in said.splitlines() if line.startswith("alloc")]

    def said(self):
        self.errors.seek(0)
        return self.errors.read()

    def shown(self):
        done = subprocess.run([BFCSTAT, "--json", str(self.pid)], capture_output=True, text=True, timeout=60)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def until_waiting_on(self, device):
        for _ in range(1000):
            shown = self.shown()
            if shown and any(pool["device"] == device and pool["waiting"] for pool in shown["pools"]):
                return
            time.sleep(0.01)
        raise AssertionError(f"it does not wait on device {device}: " + self.said())

    def pool(self):
        shown = self.shown()
        return shown["pools"][0] if shown and shown["pools"] else None

    def until_waiting(self, position=None):
        for _ in range(1000):
            pool = self.pool()
            if pool and pool["waiting"] and position in (None, pool["waiting"]["position"]):
                return pool["waiting"]
            if self.process.poll() is not None:
                raise AssertionError("it ended: " + self.said())
            time.sleep(0.01)
        raise AssertionError(f"it does not wait at position {position}")


class JobsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.mkdtemp(prefix="bfc-last-resort-")
        self.addCleanup(shutil.rmtree, folder)
        os.chmod(folder, 0o755)
        self.share = os.path.join(folder, "share")

    def start(self, *actions, **settings):
        return Job(self, actions, settings)

    def holder(self, mib, *more, **settings):
        job = self.start("alloc", mib, "wait", "free", "wait", *more, **settings)
        self.assertEqual(job.until_ready(), ["0"])
        return job
