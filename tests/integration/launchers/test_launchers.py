#!/usr/bin/env python3
"""Open MPI, Dask and Ray start workers with the library, as docs/launchers.md says, over the stand-in GPU.

A launcher that is not installed is skipped: Dask and Ray are looked for in the Python that runs this, or in
the one that LAUNCHERS_PYTHON names.
"""

import json
import os
import shutil
import subprocess
import sys
import unittest

BFCRUN, SIM, TRAIN = (os.environ[name] for name in ("BFCRUN", "SIM_DIR", "TRAIN"))
PYTHON = os.environ.get("LAUNCHERS_PYTHON", sys.executable)

# What a worker does; it answers with its pid, and whether its allocations were pooled.
WORK = """
import ctypes, json, os, subprocess
def work(_):
    cuda = ctypes.CDLL("libcuda.so.1")
    context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
    assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    for _ in range(100):
        assert cuda.cuMemAlloc_v2(ctypes.byref(pointer), 1 << 20) == 0 and cuda.cuMemFree_v2(pointer) == 0
    shown = subprocess.run([os.environ["BFCSTAT"], "--json", str(os.getpid())], capture_output=True, text=True,
                           env={}).stdout
    pool, = json.loads(shown)["pools"]
    return [os.getpid(), pool["hits"]]
"""

DASK = WORK + """
def main():
    import dask, distributed
    dask.config.set({"distributed.nanny.pre-spawn-environ.LD_PRELOAD": os.environ["LIBRARY"]})
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            workers = list(client.scheduler_info()["workers"])
            answers = [client.submit(work, 0, workers=[w], pure=False) for w in workers]
            print(json.dumps(client.gather(answers)))
if __name__ == "__main__":
    main()
"""

RAY = WORK + """
import sys, ray
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False,
         runtime_env={"env_vars": {"LD_PRELOAD": os.environ["LIBRARY"]}})
print(json.dumps(ray.get([ray.remote(work).remote(n) for n in range(2)])))
"""


def has(module):
    return subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True).returncode == 0


class Launchers(unittest.TestCase):
    def run_it(self, *command, **more):
        environment = dict(os.environ, LD_LIBRARY_PATH=SIM, SIM_MEMORY="4G", **more)
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=250)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])
        return done

    def check(self, done):
        answers = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(len(answers), 2)
        for _, hits in answers:
            self.assertGreaterEqual(hits, 99)

    @unittest.skipUnless(shutil.which("mpirun"), "Open MPI is not installed")
    def test_mpirun(self):
        done = self.run_it("mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2", "--mca", "btl", "self",
                           BFCRUN, "--summary=1", TRAIN, "20", "5")
        self.assertEqual(done.stderr.count("bfcpreload: summary of process"), 2, done.stderr)

    @unittest.skipUnless(has("distributed"), "Dask is not installed")
    def test_dask(self):
        self.check(self.run_it(PYTHON, "-c", DASK))

    @unittest.skipUnless(has("ray"), "Ray is not installed")
    def test_ray(self):
        self.check(self.run_it(PYTHON, "-c", RAY, RAY_USAGE_STATS_ENABLED="0"))


if __name__ == "__main__":
    unittest.main()
