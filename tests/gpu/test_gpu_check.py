#!/usr/bin/env python3
"""scripts/gpu-check as far as it goes without a GPU: its answers where there is none, and the parts that
the stand-in GPU can carry. usage: test_gpu_check.py GPU_CHECK SIM_DIR CUDA"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

GPU_CHECK = SIM = CUDA = ""


class GpuCheck(unittest.TestCase):
    def run_it(self, *arguments, libraries=""):
        env = {n: v for n, v in os.environ.items() if not n.startswith(("BFC_", "LD_"))}
        env.update(LD_LIBRARY_PATH=libraries, SIM_MEMORY="4G")
        return subprocess.run([GPU_CHECK, *arguments], env=env, capture_output=True, text=True,
                              timeout=280)

    def test_without_a_gpu(self):
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("a GPU is here")
        run = self.run_it()
        self.assertEqual((run.returncode, run.stdout.count("\n")), (77, 1), run)
        self.assertIn("no GPU here", run.stdout)

    def test_unknown_part(self):
        run = self.run_it("--parts", "measure,nonsense")
        self.assertEqual(run.returncode, 2)
        self.assertIn("no such part: nonsense; known are build, measure", run.stderr)

    def test_over_the_stand_in(self):
        """Building, measuring, and the roads but for those of a static runtime, which are NVIDIA's."""
        if not os.path.exists(os.path.join(CUDA, "lib64", "stubs", "libcuda.so")):
            self.skipTest("no CUDA toolkit here")
        with tempfile.TemporaryDirectory() as folder:
            run = self.run_it("--parts", "measure,roads", "--out", folder, "--cuda", CUDA,
                              libraries=SIM)
            with open(os.path.join(folder, "results.json"), encoding="utf-8") as file:
                results = json.load(file)
            with open(os.path.join(folder, "results.md"), encoding="utf-8") as file:
                page = file.read()
        failures = [line for line in results["failures"] if "static runtime" not in line]
        self.assertEqual(failures, [], run.stderr)
        parts = results["parts"]
        self.assertEqual(parts["measure"]["a mark covers work of a destroyed stream"], 1)
        self.assertEqual(parts["measure"]["alignment of blocks of 1 byte"], 512)
        self.assertIn("pitch from width, element 4", parts["measure"])
        self.assertRegex(parts["roads"]["driver linked"], r"^ok, [0-9]+ pooled$")
        self.assertGreaterEqual(len(parts["roads"]), 19)
        self.assertIn("| driver linked | ok, ", page)

    def test_clients_compile(self):
        folder = os.path.dirname(os.path.realpath(__file__))
        for name in sorted(os.listdir(folder)):
            if name.endswith(".py"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    compile(file.read(), name, "exec")

    def test_time_runs_out(self):
        with tempfile.TemporaryDirectory() as folder:
            run = self.run_it("--seconds", "1", "--out", folder, libraries=SIM)
        self.assertNotEqual(run.returncode, 0)
        self.assertNotIn("Traceback", run.stderr)


if __name__ == "__main__":
    GPU_CHECK, SIM, CUDA = sys.argv[1:4]
    SIM = os.path.realpath(SIM)
    unittest.main(argv=sys.argv[:1])
