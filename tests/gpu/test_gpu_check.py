#!/usr/bin/env python3
"""scripts/gpu-check over the stand-in GPU, with a made-up toolkit and made-up frameworks, so that its
first run on a real device is not the first one. usage: test_gpu_check.py GPU_CHECK BUILD SIM_DIR INCLUDE"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

GPU_CHECK = BUILD = SIM = INCLUDE = ""
HERE = os.path.dirname(os.path.realpath(__file__))
FAKES = os.path.join(HERE, "fakes")
NVCC = """#!/bin/sh
exec c++ -I '{include}' -include cuda_runtime.h -x c++ "$@" -L '{libraries}' -lcudart
"""


def python_with_numpy():
    for python in sys.executable, "/usr/bin/python3":
        if subprocess.run([python, "-c", "import numpy"], stderr=subprocess.DEVNULL,
                          check=False).returncode == 0:
            return python
    return sys.executable


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class GpuCheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="bfc-gpu-check-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.out = os.path.join(self.folder, "out")

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def toolkit(self):
        """Laid out as CUDA's, with the stand-in in place of the libraries."""
        self.write("cuda/lib64/libcudart_static.a", f"INPUT({SIM}/libcudart_static.a)\n")
        os.makedirs(self.path("cuda/lib64/stubs"))
        os.symlink(INCLUDE, self.path("cuda/include"))
        os.symlink(f"{SIM}/libcuda.so.1", self.path("cuda/lib64/stubs/libcuda.so"))
        os.symlink(f"{SIM}/libcudart.so.13", self.path("cuda/lib64/libcudart.so"))
        self.write("cuda/bin/nvcc", NVCC.format(include=INCLUDE, libraries=self.path("cuda/lib64")))
        os.chmod(self.path("cuda/bin/nvcc"), 0o755)
        return self.path("cuda")

    def command(self, *arguments):
        return [python_with_numpy(), GPU_CHECK, "--out", self.out, *arguments]

    def environment(self, gpu=True, **variables):
        env = {n: v for n, v in os.environ.items() if not n.startswith(("BFC_", "LD_"))}
        env.update(SIM_MEMORY="4G", BFC_STRESS_SECONDS="5", FAKE_PIDS=self.path("pids"), **variables)
        if gpu:
            env["LD_LIBRARY_PATH"] = SIM
        return env

    def run_it(self, *arguments, gpu=True, **variables):
        return subprocess.run(self.command(*arguments), env=self.environment(gpu, **variables),
                              capture_output=True, text=True, timeout=400, check=False)

    def results(self):
        """And the page must be one that can be rendered."""
        with open(os.path.join(self.out, "results.json"), encoding="utf-8") as file:
            results = json.load(file)
        with open(os.path.join(self.out, "results.md"), encoding="utf-8") as file:
            page = file.read()
        for part, entries in results["parts"].items():
            table = page.split(f"## {part} (")[1].split("\n\n")[1].splitlines()
            self.assertEqual(table[:2], ["| | |", "|---|---|"])
            self.assertEqual(len(table) - 2, len(entries))
            self.assertEqual({row.count("|") for row in table}, {3})
        for name in "failures", "surprises", "skipped":
            lines = page.split(f"## {name}\n\n")[1].split("\n\n")[0].splitlines()
            self.assertEqual(len(lines), len(results[name]) or 1)
        return results

    # ---- before it begins ----

    def test_without_a_gpu(self):
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("a GPU is here")
        run = self.run_it(gpu=False)
        self.assertEqual((run.returncode, run.stdout.count("\n")), (77, 1), run)
        self.assertIn("no GPU here (", run.stdout)
        self.assertFalse(os.path.exists(self.out))

    def test_a_driver_without_devices(self):
        run = self.run_it(SIM_DEVICES="0")
        self.assertEqual(run.returncode, 77, run)
        self.assertRegex(run.stdout, r"^gpu-check: no GPU here \(libcuda.so.1 answers [0-9]+ ")

    def test_unknown_part(self):
        run = self.run_it("--parts", "measure,nonsense")
        self.assertEqual(run.returncode, 2)
        self.assertIn("no such part: nonsense; known are build, measure", run.stderr)

    def test_a_folder_that_cannot_be_preloaded_from(self):
        run = self.run_it("--parts", "demo", "--work", self.path("with blank"))
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertRegex(run.stderr, "^gpu-check: .* cannot be preloaded: .* --work names another folder$")

    # ---- the parts ----

    def test_from_nothing(self):
        """Builds by itself; measures; every road; the demo, a tool and some of the conformance cases."""
        run = self.run_it("--parts", "measure,roads,demo,tools,conformance,stress", "--cuda", self.toolkit(),
                          "--cases", "01,15,41", "--work", self.path("work"))
        results = self.results()
        # The demo has no program for the stand-in outside a Meson build, and says so.
        failures = [line for line in results["failures"] if not line.startswith("demo: ")]
        self.assertEqual(failures, [], run.stderr)
        self.assertEqual(results["surprises"], [])
        self.assertTrue(results["finished"])
        parts = results["parts"]
        self.assertEqual(parts["build"], {"libbfcpreload.so": "built", "bfcstat": "built"})
        measured = parts["measure"]
        self.assertEqual(measured["a fence covers work of a destroyed stream"], 1)
        self.assertEqual(measured["alignment of blocks of 1 byte"], 512)
        self.assertEqual(measured["cuIpcOpenMemHandle of another process's handle"], 0)
        self.assertNotEqual(measured["cuIpcOpenMemHandle of a token of bfcpreload's"], 0)
        for name in ("idle cuCtxSynchronize, ns, 8 streams", "cuCtxRecordEvent, ns, 64 busy streams",
                     "cuCtxWaitEvent, ns, 0 streams", "pitch from width, element 4",
                     "cuMemFree beside a kernel of 50 ms, ns, 512 bytes",
                     "code during a capture, relaxed, cuMemFree(victim)",
                     "cudaMalloc + cudaFree, 64 KiB, ordered"):
            self.assertIn(name, measured)
        roads = {name: value for name, value in parts["roads"].items() if value != "built"}
        self.assertEqual(len(roads), 25)
        for name, value in roads.items():
            silent = name.startswith(("ctypes", "past"))
            self.assertRegex(value, "^ok$" if silent else r"^ok, [0-9]+ pooled$", name)
        self.assertEqual(parts["conformance"],
                         {f"case{n}-{r}": "ok" for n in ("01", "15", "41")
                          for r in ("shared", "static", "driver")})
        self.assertRegex(parts["stress"]["random programs"], "^seeds .* [0-9]+ runs, [0-9]+ operations in [0-9]+ s, no difference$")
        self.assertEqual(set(parts["tools"].values()) - {"skipped"} or {"ok, 200 pooled"},
                         {"ok, 200 pooled"})

    def test_demo(self):
        self.run_it("--parts", "demo", "--built", BUILD, "--cuda", self.toolkit())
        results = self.results()
        self.assertEqual(results["failures"], [])
        self.assertIs(results["parts"]["demo"]["contents_equal"], True)

    def test_clients(self):
        """One is missing, one does not start, three work; one hangs and is cut off, with what it has
        started; none stops the others."""
        if not shutil.which("c++") or not os.path.exists(os.path.join(INCLUDE, "nccl.h")):
            self.skipTest("no C++ compiler, or no NCCL")
        toolkit = self.toolkit()
        for library in "cublas", "nccl":
            subprocess.run(["cc", "-shared", "-fPIC", "-I", INCLUDE, os.path.join(FAKES, "libraries.c"),
                            "-o", self.path(f"cuda/lib64/lib{library}.so"),
                            "-L", self.path("cuda/lib64"), "-lcudart"], check=True)
        run = self.run_it("--parts", "clients", "--built", BUILD, "--cuda", toolkit,
                          "--seconds", "60", PYTHONPATH=FAKES, CLIENT_ROUNDS="20")
        results = self.results()
        self.assertEqual(results["failures"], [], run.stderr)
        clients, machine = results["parts"]["clients"], results["machine"]
        self.assertRegex(machine["pytorch"], "^does not start: cut off after")
        self.assertEqual(clients["pytorch, native, its own pool"], "skipped")
        self.assertIn("clients: pytorch, native, its own pool: does not work natively: "
                      "exit status 124", "\n".join(results["skipped"]))
        if machine["jax"] == "missing":  # else this machine has the real one
            self.assertEqual(clients["jax"], "skipped")
        self.assertEqual((machine["cupy"], machine["numba"]),
                         ("does not start: " + machine["cupy"].partition(": ")[2], "made up"))
        self.assertIn("this one is broken", machine["cupy"])
        for name in "numba", "cublas", "nccl":
            ways = {how: clients[f"{name}, {how}"] for how in
                    ("native", "preloaded, sync", "preloaded, lazy", "preloaded, ordered")}
            self.assertEqual(len({way["digest"] for way in ways.values()}), 1)
            self.assertIn("hit rate", str(ways["preloaded, lazy"]["summary"]))
        self.assertGreater(clients["numba, preloaded, sync"]["coverage"]["pooled"], 40)
        with open(self.path("pids"), encoding="utf-8") as file:
            left = [pid for pid in file.read().split() if alive(pid)]
        self.assertEqual(left, [])

    def test_tools(self):
        """Each is found in the toolkit and told the right things; one that does not work natively is
        no failure, one that works only natively is one."""
        toolkit = self.toolkit()
        steps = 'echo "$@" >"$0.flags"; while [ ! -x "$1" ] || [ -d "$1" ]; do shift; done; '
        for name, does in {"compute-sanitizer": 'NV_SANITIZER_INJECTION_PORT_BASE=49152 "$@"', "ncu": '"$@"',
                           "cuda-gdb": "exit 3",
                           "nsys": '[ -z "$LD_PRELOAD" ] || exit 5; "$@"'}.items():
            self.write("cuda/bin/" + name, "#!/bin/sh\n" + steps + does + "\n")
            os.chmod(self.path("cuda/bin", name), 0o755)
        self.run_it("--parts", "tools", "--built", BUILD, "--cuda", toolkit)
        results = self.results()
        tools = results["parts"]["tools"]
        self.assertEqual((tools["ncu"], tools["cuda-gdb"], tools["nsys"]),
                         ("ok, 200 pooled", "skipped", "FAILED"), results)
        self.assertEqual([line.split(":")[1] for line in results["failures"]], [" nsys"])
        with open(self.path("cuda/bin/ncu.flags"), encoding="utf-8") as file:
            self.assertIn("--clock-control none", file.read())

    # ---- when it goes wrong ----

    def test_a_part_that_fails_stops_no_other(self):
        """With broken headers nothing can be compiled; the demo's programs are there."""
        self.write("cuda/include/cuda.h", "#error broken\n")
        run = self.run_it("--parts", "measure,roads,demo,conformance", "--built", BUILD,
                          "--cuda", self.path("cuda"), "--cases", "01")
        results = self.results()
        self.assertEqual(run.returncode, 1)
        self.assertTrue(results["finished"])
        self.assertEqual(results["parts"]["measure"]["measure"], "FAILED")
        self.assertEqual(results["parts"]["roads"]["driver_linked"], "FAILED")
        self.assertEqual(results["parts"]["demo"]["demo"], "ok")
        self.assertNotIn("Traceback", run.stdout + run.stderr + str(results))

    def test_the_time_is_kept(self):
        """All that there is hangs."""
        self.write("hang/jax.py", "import time\ntime.sleep(1000)\n")
        run = self.run_it("--parts", "clients,demo", "--built", BUILD, "--cuda", self.toolkit(),
                          "--seconds", "24", PYTHONPATH=FAKES + os.pathsep + self.path("hang"))
        results = self.results()
        self.assertTrue(results["finished"])
        self.assertNotIn("Traceback", run.stderr)
        self.assertEqual(list(results["seconds"]), ["build", "demo", "clients"])

    def test_no_time_at_all(self):
        run = self.run_it("--seconds", "1")
        self.assertNotEqual(run.returncode, 0)
        self.assertNotIn("Traceback", run.stderr)

    def test_told_to_stop(self):
        """What there was is written, and nothing is left running."""
        process = subprocess.Popen(
            self.command("--parts", "clients", "--built", BUILD, "--cuda", self.toolkit()),
            env=self.environment(PYTHONPATH=FAKES), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True)
        while not os.path.exists(self.path("pids")) or not os.path.getsize(self.path("pids")):
            self.assertIsNone(process.poll(), "it has ended")
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 1)
        self.assertIn("told to stop", error)
        self.assertNotIn("Traceback", error)
        self.assertFalse(self.results()["finished"])
        with open(self.path("pids"), encoding="utf-8") as file:
            self.assertEqual([pid for pid in file.read().split() if alive(pid)], [])


if __name__ == "__main__":
    GPU_CHECK, BUILD, SIM, INCLUDE = map(os.path.realpath, sys.argv[1:5])
    unittest.main(argv=sys.argv[:1] + sys.argv[5:], verbosity=2)
