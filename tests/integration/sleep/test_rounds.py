"""Random rounds of sleep and wake, without and with refused calls, in each mode of free.
usage: test_rounds.py (LIBCUDA, PRELOAD and BFCSTAT in the environment; BFC_TEST_SLEEPS: rounds in all)"""

import os
import pathlib
import subprocess
import sys
import unittest

from jobs import BFCSTAT, LIBCUDA, PRELOAD, main

ROUNDS = int(os.environ.get("BFC_TEST_SLEEPS", "60"))
REFUSED = "+".join(("cuMemUnmap", "cuMemRelease", "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemHostAlloc",
                    "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2"))
SETTINGS = (
    {"BFC_FREE": "sync"}, {"BFC_FREE": "ordered"}, {"BFC_FREE": "lazy", "SIM_SEED": "7"},
    {"BFC_FREE": "lazy", "SIM_FAIL": f"random:5:40:{REFUSED}"}, {"BFC_PLAN": "auto", "SIM_FAIL": f"random:8:80:{REFUSED}"},
    {"BFC_SLEEP_TO": "/tmp", "SIM_SEED": "9"},
)


class Rounds(unittest.TestCase):
    def test_no_wrong_byte(self):
        for seed, settings in enumerate(SETTINGS):
            with self.subTest(settings):
                clean = {k: v for k, v in os.environ.items() if not k.startswith(("BFC_", "SIM_"))}
                done = subprocess.run(
                    [sys.executable, str(pathlib.Path(__file__).with_name("rounds.py")), LIBCUDA, str(seed),
                     str(-(-ROUNDS // len(SETTINGS))), BFCSTAT], capture_output=True, text=True,
                    env={**clean, "LD_PRELOAD": PRELOAD, "BFC_SLEEP_IDLE": "0.004", "SIM_MEMORY": "256M", **settings})
                print(settings, done.stdout.strip(), flush=True)
                self.assertEqual(done.returncode, 0, done.stderr[-3000:])


if __name__ == "__main__":
    main()
