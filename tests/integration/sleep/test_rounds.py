"""Random rounds of sleep and wake: threads, streams, kernels, graphs, plans, exports; without and with refused
calls, in each mode of free, two jobs in turns on one device, and jobs that are killed.
usage: test_rounds.py (LIBCUDA, PRELOAD, BFCSTAT and KERNELS in the environment; BFC_TEST_SLEEPS: rounds in all;
BFC_TEST_SEED: the first seed)"""

import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import unittest

from jobs import BFCSTAT, LIBCUDA, PRELOAD, Job, main

ROUNDS, SEED = int(os.environ.get("BFC_TEST_SLEEPS", "18")), int(os.environ.get("BFC_TEST_SEED", "0"))
REFUSED = "+".join(("cuMemUnmap", "cuMemRelease", "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemHostAlloc",
                    "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2", "cuStreamSynchronize", "cuCtxRecordEvent",
                    "cuEventQuery", "cuMemGetInfo_v2", "cuMemFreeHost", "cuLaunchKernel", "cuGraphLaunch"))
SETTINGS = (
    ({"BFC_FREE": "sync"}, ()), ({"BFC_FREE": "ordered", "SIM_SEED": "5"}, ()),
    ({"BFC_FREE": "lazy", "SIM_SEED": "7"}, ()), ({"BFC_FREE": "lazy", "SIM_FAIL": f"random:5:40:{REFUSED}"}, ()),
    ({"BFC_FREE": "ordered", "SIM_FAIL": f"random:8:80:{REFUSED}"}, ()),
    ({"BFC_SLEEP_TO": "/tmp", "SIM_SEED": "9"}, ()),
)
LOOPS = ({"BFC_FREE": "lazy", "SIM_SEED": "3"}, {"BFC_FREE": "ordered", "SIM_FAIL": f"random:4:60:{REFUSED}"})


def begin(seed, rounds, settings, more=()):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("BFC_", "SIM_"))}
    return subprocess.Popen(
        [sys.executable, str(pathlib.Path(__file__).with_name("rounds.py")), LIBCUDA, str(seed), str(rounds), BFCSTAT,
         os.environ["KERNELS"], *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**clean, "LD_PRELOAD": PRELOAD, "BFC_BACKING": "pages", "BFC_SLEEP_IDLE": "0.004", "SIM_MEMORY": "256M", **settings})


class Rounds(unittest.TestCase):
    def await_end(self, settings, job):
        said, errors = job.communicate(timeout=36000)
        print(settings, said.replace("plays\n", "").strip(), flush=True)
        self.assertEqual(job.returncode, 0, errors[-3000:])

    def test_no_wrong_byte(self):
        for number, (settings, more) in enumerate(SETTINGS):
            with self.subTest(settings):
                self.await_end(settings, begin(SEED + number, -(-ROUNDS // len(SETTINGS)), settings, more))

    @unittest.skipUnless("BFCPLAN" in os.environ, "built without the planner")
    def test_plan(self):
        for number, settings in enumerate(LOOPS):
            with self.subTest(settings), tempfile.TemporaryDirectory() as folder:
                trace, plan = f"{folder}/trace", f"{folder}/plan"
                run = SEED + 20 + number, -(-ROUNDS // 10)
                self.await_end({}, begin(*run, {"BFC_RECORD": trace}, ("loop",)))
                subprocess.run([os.environ["BFCPLAN"], "solve", trace, "-o", plan], check=True, stdout=subprocess.DEVNULL)
                self.await_end(settings, begin(*run, {**settings, "BFC_PLAN": plan}, ("loop",)))

    def test_two_jobs_in_turns(self):
        """Each holds up to 54 MiB of the device's 64, so one falls asleep for the other."""
        with tempfile.TemporaryDirectory() as folder:
            settings = {"SIM_SHARE": f"{folder}/share", "SIM_MEMORY": "64M", "BFC_SLEEP_QUANTUM": "0.05"}
            for job in [begin(SEED + number, -(-ROUNDS // 10), settings) for number in (50, 51)]:
                self.await_end(settings, job)

    def test_killed(self):
        """At any moment: nothing of it stays, on the device or on the disk."""
        dice = random.Random(SEED)
        with tempfile.TemporaryDirectory() as folder:
            share = {"SIM_SHARE": f"{folder}/share", "SIM_MEMORY": "256M"}
            os.mkdir(f"{folder}/contents")
            for number in range(max(3, ROUNDS // 100)):
                job = begin(SEED + number, 10**9, {**share, "BFC_SLEEP_TO": f"{folder}/contents"})
                self.assertEqual(job.stdout.readline(), "plays\n", job.poll())
                time.sleep(dice.random())
                self.assertIsNone(job.poll())
                job.kill()
                job.communicate()
                self.assertEqual(os.listdir(f"{folder}/contents"), [])
            other = Job(self, share)
            self.assertEqual(other.do("fill(allocate(240*MIB), 1, 240*MIB)"), 0)


if __name__ == "__main__":
    main()
