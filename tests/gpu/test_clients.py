#!/usr/bin/env python3
"""The clients of scripts/gpu-check as far as they go without a GPU, with the packages that are here, and
NVIDIA's and Numba's own code over the stand-in. BFC_TEST_PYTHON names the interpreter to look in first.
usage: test_clients.py LIBRARY SIM_DIR PACKAGES     PACKAGES: where scripts/fetch-runtimes puts them"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

LIBRARY = SIM = PACKAGES = ""
HERE = os.path.dirname(os.path.realpath(__file__))
NUMPY_FOR_CUPY = """
from numpy import *
from numpy import asarray as asnumpy


class cuda:
    @staticmethod
    def set_allocator(allocator):
        assert allocator is None

    set_pinned_memory_allocator = set_allocator
"""


def python_with(module):
    """A command to run scripts by."""
    places = [(os.environ.get("BFC_TEST_PYTHON"), ""), (sys.executable, PACKAGES), ("/usr/bin/python3", "")]
    for python, packages in places:
        command = ["env", "PYTHONPATH=" + packages, python]
        if python and subprocess.run([*command, "-c", f"import {module}"], capture_output=True,
                                     check=False).returncode == 0:
            return command
    raise unittest.SkipTest(f"no {module} here")


class Clients(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_it(self, python, script, **variables):
        env = {n: v for n, v in os.environ.items() if not n.startswith(("BFC_", "LD_", "SIM_"))}
        env.update(PYTHONDONTWRITEBYTECODE="1", **variables)
        return subprocess.run([*python, os.path.join(HERE, script)], env=env, cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=250,
                              check=False)

    def twice(self, python, script, **variables):
        """A client that works, and computes the same preloaded, where there is no driver at all."""
        lines = []
        for preload in "", LIBRARY:
            done = self.run_it(python, script, CLIENT_DEVICE="cpu", CLIENT_ROUNDS="3",
                               LD_PRELOAD=preload, **variables)
            self.assertEqual(done.returncode, 0, done.stderr)
            lines.append(json.loads(done.stdout.splitlines()[-1]))
        self.assertEqual(len({line["digest"] for line in lines}), 1)

    def test_pytorch(self):
        self.twice(python_with("torch"), "client_pytorch.py")

    def test_jax(self):
        """With the flags that gpu-check gives it: a flag that JAX does not know ends the program."""
        self.twice(python_with("jax"), "client_jax.py", JAX_PLATFORMS="cpu",
                   XLA_FLAGS="--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0")

    def test_numba(self):
        """On Numba's own simulator, which starts a thread a thread: one run is enough."""
        done = self.run_it(python_with("numba.cuda"), "client_numba.py", CLIENT_ROUNDS="1",
                           NUMBA_ENABLE_CUDASIM="1")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_cupy(self):
        """Its arithmetic by NumPy, its own interface by name."""
        with open(os.path.join(self.folder, "cupy.py"), "w", encoding="utf-8") as file:
            file.write(NUMPY_FOR_CUPY)
        python = python_with("numpy")
        python[1] += os.pathsep + self.folder
        self.twice(python, "client_cupy.py")

    def test_cupy_names(self):
        names = "c.zeros, c.int64, c.arange, c.sort, c.asnumpy, c.ndarray.sum, c.cuda.set_allocator, " \
                "c.cuda.set_pinned_memory_allocator"
        done = subprocess.run([*python_with("cupy"), "-c", "import cupy as c; print(" + names + ")"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_missing(self):
        done = self.run_it([sys.executable], "client_cupy.py")
        if done.returncode != 77:
            self.skipTest("CuPy is here")
        self.assertIn("No module named", json.loads(done.stdout)["skipped"])

    def over_the_stand_in(self, module, script):
        """The same natively and preloaded, where few calls reach the driver."""
        python, made = python_with(module), []
        outputs = []
        for preload in "", LIBRARY:
            stats = os.path.join(self.folder, "stats")
            done = self.run_it(python, script, LD_LIBRARY_PATH=SIM, LD_PRELOAD=preload, SIM_STATS=stats,
                               SIM_MEMORY="1G")
            self.assertEqual(done.returncode, 0, done.stderr)
            outputs.append(done.stdout)
            with open(stats, encoding="utf-8") as file:
                made.append(json.loads(file.readlines()[-1])["cuMemAlloc"])
            os.remove(stats)
        self.assertEqual(outputs[0], outputs[1])
        self.assertGreaterEqual(made[0], 200)
        self.assertLessEqual(made[1], 20)

    def test_nvidia_bindings(self):
        self.over_the_stand_in("cuda.bindings.driver", "bindings.py")

    def test_numba_arrays(self):
        self.over_the_stand_in("numba.cuda", "arrays.py")


if __name__ == "__main__":
    LIBRARY, SIM, PACKAGES = map(os.path.realpath, sys.argv[1:4])
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
