"""Every driver call of a fall and of a wake refused once, halted at, and the process killed there:
no byte is lost, nothing is half asleep, and nothing stays behind.
usage: test_refused.py (LIBCUDA, PRELOAD and BFCSTAT in the environment)"""

import os
import tempfile
import time
import unittest

from jobs import ON, Job, main

CALLS = ("cuMemUnmap", "cuMemRelease", "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemHostAlloc", "cuStreamCreate",
         "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2", "cuStreamSynchronize", "cuCtxRecordEvent", "cuEventQuery",
         "cuEventCreate", "cuMemFreeHost", "cuStreamDestroy_v2", "cuCtxPushCurrent_v2", "cuMemGetInfo_v2")
FILLED = "a = allocate(9*MIB); fill(a, 7, 9*MIB); b = allocate(1000); fill(b, 9, 1000); synchronize()"
INTACT = "is_filled(a, 7, 9*MIB) and is_filled(b, 9, 1000)"
COUNTS = f"[count(name) for name in {CALLS}]"


class Refused(unittest.TestCase):
    def job(self, **settings):
        job = Job(self, {**ON, **settings})
        job.do(FILLED)
        return job

    def moments(self, **settings):
        """The calls of a fall and of the wake after it, by their numbers: the first two and the last of each.
        How many pages are made, and so these numbers, depend on the device's memory."""
        job = self.job(**settings)
        before = job.do(COUNTS)
        job.fall_asleep()
        asleep = job.do(COUNTS)
        job.do(INTACT)
        after = job.do(COUNTS)
        job.end()
        for step, first, last in (("fall", before, asleep), ("wake", asleep, after)):
            for name, one, end in zip(CALLS, first, last):
                for number in sorted({one + 1, one + 2, end}):
                    if one < number <= end:
                        yield step, name, number

    def test_refused_calls(self):
        for step, name, number in self.moments():
            with self.subTest(f"{name}@{number} of a {step}"):
                job = self.job(SIM_FAIL=f"{name}@{number}")
                state = "asleep" if job.stat("sleep").returncode == 0 else "awake"
                self.assertEqual(job.sleep()["state"], state)
                tries = [job.do(INTACT) for _ in range(2)]
                self.assertTrue(tries[-1], job.said())
                job.fall_asleep()
                self.assertTrue(job.do(INTACT), job.said())
                self.assertEqual(job.do("free(a) or free(b)"), 0)

    def test_killed_at_calls(self):
        for step, name, number in self.moments(SIM_MEMORY="64M"):
            if name in ("cuEventCreate", "cuCtxPushCurrent_v2", "cuMemGetInfo_v2", "cuMemRelease"):
                continue
            with self.subTest(f"{name}@{number} of a {step}"), tempfile.TemporaryDirectory() as folder:
                share = {"SIM_SHARE": f"{folder}/share", "SIM_MEMORY": "64M"}
                os.mkdir(f"{folder}/contents")
                job = self.job(BFC_SLEEP_TO=f"{folder}/contents", SIM_HALT=f"{name}@{number}:{folder}/halted", **share)
                asked = job.asking("sleep")
                if step == "wake":
                    asked.wait()
                    job.begin(INTACT)
                self.await_file(f"{folder}/halted", asked)
                job.end()
                asked.wait()
                self.assertEqual(os.listdir(f"{folder}/contents"), [])
                other = Job(self, share)
                self.assertGreater(other.do("free_bytes()"), 60 << 20)
                self.assertEqual(other.do("fill(allocate(50*MIB), 1, 50*MIB)"), 0)
                other.end()

    def await_file(self, path, asked):
        until = time.monotonic() + 60
        while not os.path.exists(path) and time.monotonic() < until:
            time.sleep(0.005)
        self.assertTrue(os.path.exists(path))


if __name__ == "__main__":
    main()
