#!/usr/bin/env python3
"""scripts/gpu-check as a dry run over the stand-in GPU, with made-up frameworks, so that its first run on
a real device is not the first one. usage: test_gpu_check.py GPU_CHECK BUILD INCLUDE [TEST...]"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
from check import machine, report  # noqa: E402
from check.results import CannotResume, Results  # noqa: E402
from check.stand_in import CXX, StandIn  # noqa: E402
from in_folder import RUN, InFolder  # noqa: E402

GPU_CHECK = BUILD = INCLUDE = ""
HERE = os.path.dirname(os.path.realpath(__file__))
FAKES = os.path.join(HERE, "fakes")


def python_with_numpy():
    for python in sys.executable, "/usr/bin/python3":
        if subprocess.run([python, "-c", "import numpy"], stderr=subprocess.DEVNULL,
                          check=False).returncode == 0:
            return python
    return sys.executable


def compiler_cache():
    """As Meson does, where ccache is installed. gpu-check moves XDG_CACHE_HOME, so its place is named."""
    compiler = os.environ.get("CC", "cc")
    if not shutil.which("ccache") or "ccache" in compiler:
        return {}
    place = subprocess.run(["ccache", "--get-config", "cache_dir"], capture_output=True, text=True, check=True)
    return {"CC": "ccache " + compiler, "CCACHE_NOHASHDIR": "1",
            "CCACHE_DIR": place.stdout.strip()}


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Runs(InFolder):
    """The command, as a process of its own, and what it runs with."""

    def toolkit(self):
        """Where a dry run makes its own; what is there already stays. nvcc is the C++ compiler, which is quicker."""
        folder, stand_in = self.path("work/toolkit"), StandIn(BUILD)
        self.write("work/toolkit/bin/nvcc", CXX.format(include=stand_in.include(), libraries=folder + "/lib64"))
        os.chmod(folder + "/bin/nvcc", 0o755)
        return stand_in.make_toolkit(folder)

    def command(self, *arguments, dry=True):
        where = ["--dry-run", BUILD, "--work", self.path("work")] if dry else []
        return [python_with_numpy(), GPU_CHECK, "--out", self.out, *where, *arguments]

    def environment(self, **variables):
        env = {n: v for n, v in os.environ.items() if not n.startswith(("BFC_", "LD_"))}
        env.update(compiler_cache())
        env.update({"FAKE_PIDS": self.path("pids"), "SIM_DEVICES": "1", "BFC_STRESS_SECONDS": "5", **variables})
        return env

    def run_it(self, *arguments, dry=True, **variables):
        return subprocess.run(self.command(*arguments, dry=dry), env=self.environment(**variables),
                              capture_output=True, text=True, timeout=900, check=False)


class BeforeItBegins(Runs):

    def test_without_a_gpu(self):
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("a GPU is here")
        run = self.run_it(dry=False)
        self.assertEqual((run.returncode, run.stdout.count("\n")), (77, 1), run)
        self.assertIn("no GPU here (", run.stdout)
        self.assertFalse(os.path.exists(self.out))

    def test_a_driver_without_devices(self):
        run = self.run_it(SIM_DEVICES="0")
        self.assertEqual(run.returncode, 77, run)
        self.assertRegex(run.stdout, r"^gpu-check: no GPU here \(libcuda.so.1 answers [0-9]+ ")

    def test_unknown_part(self):
        for parts in "measure,nonsense", "nonsense", ",":
            run = self.run_it("--only", parts)
            self.assertEqual(run.returncode, 2)
            self.assertRegex(run.stderr, "no such part: (nonsense|none named); known are build, smoke")

    def test_a_budget_that_is_none(self):
        for budget in "0", "-1", "nan", "1e9", "soon":
            run = self.run_it("--budget=" + budget)
            self.assertEqual(run.returncode, 2)
            self.assertRegex(run.stderr, f"argument --budget: .*{budget}")

    def test_a_dry_run_without_a_stand_in(self):
        run = self.run_it("--dry-run", self.folder)
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertRegex(run.stderr, r"^gpu-check: .*/sim has no libcuda\.so\.1, .*: --dry-run takes the folder "
                         "of a Meson build with -Dtests=enabled$")

    def test_a_folder_that_cannot_be_preloaded_from(self):
        run = self.run_it("--only", "demo", "--work", self.path("with blank"))
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertRegex(run.stderr, "^gpu-check: .* cannot be preloaded: .* --work names another folder$")


    def test_a_toolkit_without_headers(self):
        os.makedirs(self.path("work/toolkit/include"))
        run = self.run_it("--only", "smoke")
        self.assertEqual((run.returncode, run.stdout), (1, ""), run)
        self.assertRegex(run.stderr, r"^gpu-check: there is no cuda\.h in .*/toolkit/include: --cuda names")


class Parts(Runs):

    def test_from_nothing(self):
        """Builds by itself; everything but clients, with some of the conformance cases; the same files in a second
        folder."""
        parts = ["build", "smoke", "conformance", "measure", "unknowns", "demo", "routes", "runtimes", "pages", "tools",
                 "stress"]
        run = self.run_it("--only", ",".join(parts), "--cases", "01,15,41", "--also", self.path("also"))
        results = self.results()
        with open(self.path("also/results.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file), results)
        self.assertEqual((run.returncode, results["failures"], results["surprises"]), (0, [], []), run)
        self.assertEqual(results["ended"], parts)
        self.assertTrue(os.path.exists(self.path("also/conformance.log")))
        self.assertEqual(results["machine"]["dry run"], "over the simulated GPU")
        with open(os.path.join(self.out, "results.md"), encoding="utf-8") as file:
            self.assertIn("**A dry run over the simulated GPU", file.read())
        self.assertIs(results["parts"]["demo"]["contents_equal"], True)
        self.assertEqual(results["left"], [])
        parts = results["parts"]
        self.assertEqual(parts["build"], {"libbfcpreload.so": "built", "bfcstat": "built"})
        measured = parts["measure"]
        self.assertEqual(measured["a fence covers work of a destroyed stream"], 1)
        self.assertEqual(measured["alignment of blocks of 1 byte"], 512)
        self.assertEqual(measured["alignment of blocks of 100,400 bytes"], 512)
        self.assertEqual(measured["alignment of blocks of 1,000,500 bytes"], 512)
        self.assertEqual(measured["cuIpcOpenMemHandle of another process's handle"], 0)
        self.assertNotEqual(measured["cuIpcOpenMemHandle of a token of bfcpreload's"], 0)
        for name in ("idle cuCtxSynchronize, ns, 8 streams", "cuCtxRecordEvent, ns, 128 busy streams",
                     "cuCtxWaitEvent, ns, 0 streams", "pitch from width, element 4",
                     "range of pitched memory, beyond pitch times height",
                     "cuMemFree beside a kernel of 50 ms, ns, 512 bytes",
                     "code during a capture, relaxed, cuMemFree(victim)",
                     "cudaMalloc + cudaFree, 64 KiB, ordered"):
            self.assertIn(name, measured)
        self.check_page_costs(measured)
        self.assertEqual([parts["pages"][n] for n in ("demo", "case01-driver", "case15-driver", "case41-driver")],
                         ["ok"] * 4)
        self.check_smoke(parts["smoke"])
        self.check_unknowns(parts["unknowns"])
        for decision in results["decisions"]:
            self.assertEqual(decision["answer"] == "not measured yet",
                             decision["question"] in ("the default mode of free", "the default backing"), decision)
        routes = {name: value for name, value in parts["routes"].items() if value != "built"}
        self.assertEqual(len(routes), 25)
        for name, value in routes.items():
            silent = name.startswith(("ctypes", "past"))
            self.assertRegex(value, "^ok$" if silent else r"^ok, [0-9]+ pooled$", name)
        self.assertEqual({**parts["conformance"], **parts["runtimes"]},
                         {f"case{n}-{r}": "ok" for n in ("01", "15", "41")
                          for r in ("shared", "static", "driver")})
        self.assertRegex(parts["stress"]["random programs"], "^seeds .* [0-9]+ runs, [0-9]+ operations in [0-9]+ s, no difference$")
        self.assertEqual(set(parts["tools"].values()) - {"skipped"} or {"ok, 200 pooled"},
                         {"ok, 200 pooled"})
        self.run_it("--only", "build")
        self.assertEqual(self.results()["parts"]["build"],
                         {"libbfcpreload.so": "built before", "bfcstat": "built before"})

    def check_smoke(self, smoke):
        self.assertEqual({name: value for name, value in smoke.items() if value != "built"},
                         {f"{route}, {how}": "ok" for route in ("driver", "shared runtime", "static runtime")
                          for how in ("native", "sync", "lazy", "ordered")})

    def check_unknowns(self, unknowns):
        """The stand-in answers as it is expected of a device; which answer is right is not this test's matter."""
        answers = [given["answer"] for given in unknowns.values() if isinstance(given, dict)]
        self.assertGreater(len(answers), 25)
        self.assertLessEqual(set(answers), {"yes", "no", "cannot be asked here"})

    def check_page_costs(self, pages):
        calls = ("cuMemAddressReserve", "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuMemRelease",
                 "cuMemAddressFree")
        for size in 2, 8, 32, 128, 512:
            for call in calls:
                for how in "", " beside a kernel of 50 ms", " by another thread, beside a kernel of 50 ms":
                    self.assertGreater(pages[f"{call}{how}, ns, {size} MiB"], 0)
        name = "cuMemUnmap of a page that a kernel uses, "
        self.assertEqual((pages[name + "code"], pages[name + "the kernel's code"]), (0, 700))

    def test_tools(self):
        """Each is found in the toolkit and gets the right arguments. One that does not work natively is no
        failure; one that works only natively is one."""
        steps = 'echo "$@" >"$0.flags"; while [ ! -x "$1" ] || [ -d "$1" ]; do shift; done; '
        for name, does in {"compute-sanitizer": 'NV_SANITIZER_INJECTION_PORT_BASE=49152 "$@"', "ncu": '"$@"',
                           "cuda-gdb": "exit 3",
                           "nsys": '[ -z "$LD_PRELOAD" ] || exit 5; "$@"'}.items():
            self.write("work/toolkit/bin/" + name, "#!/bin/sh\n" + steps + does + "\n")
            os.chmod(self.path("work/toolkit/bin", name), 0o755)
        self.run_it("--only", "tools", "--built", BUILD)
        results = self.results()
        tools = results["parts"]["tools"]
        self.assertEqual((tools["ncu"], tools["cuda-gdb"], tools["nsys"]),
                         ("ok, 200 pooled", "skipped", "FAILED"), results)
        self.assertEqual([line.split(":")[1] for line in results["failures"]], [" nsys"])
        with open(self.path("work/toolkit/bin/ncu.flags"), encoding="utf-8") as file:
            self.assertIn("--clock-control none", file.read())


class Submissions(Runs):
    """With a made-up CUPTI, which says that each launch, copy and set has run."""

    def test_what_is_seen_and_what_is_not(self):
        if not shutil.which("c++"):
            self.skipTest("no C++ compiler")
        toolkit = self.toolkit()
        cupti = os.path.exists(toolkit + "/include/cupti.h")
        if cupti:
            subprocess.run(["cc", "-shared", "-fPIC", "-I", toolkit + "/include", os.path.join(FAKES, "cupti.c"),
                            "-o", toolkit + "/lib64/libcupti.so"], check=True)
        self.check_seen(*self.run_part(), cupti)
        if not cupti:
            self.skipTest("no header of CUPTI")
        run, results = self.run_part(FAKE_RAN="cuStreamSynchronize")
        self.assertEqual(run.returncode, 1)  # the report says which call began what ran without a hook
        self.assertRegex(results["failures"][0], "^submissions: every kind.*, watched: cuStreamSynchronize ran and was seen by no "
                         "hook, [0-9]+ times$")

    def run_part(self, **variables):
        run = self.run_it("--only", "submissions", "--built", BUILD, "--budget", "600", **variables)
        self.assertNotIn("Traceback", str(run) + str(self.results()))
        return run, self.results()

    def check_seen(self, run, results, cupti):
        part = results["parts"]["submissions"]
        self.assertEqual((results["failures"], results["surprises"], results["left"]), ([], [], []), run)
        self.assertEqual(set(part["a launch, ns"]), {"native", "preloaded, gate off", "preloaded, gate on"})
        for name in "every kind", "every kind, streams per thread":
            self.assertEqual(len({part[f"{name}, {how}"]["digest"] for how in
                                  ("native", "preloaded, lazy", "preloaded, ordered")}), 1)
            if not cupti:
                continue
            watched = part[name + ", watched"]
            self.assertEqual(sum(watched["ran, seen"].values()), watched["kernels"] + watched["copies"] + watched["sets"])
            self.assertEqual([key for key in watched if "unseen" in key or "past" in key], [])
            self.assertTrue([call for call in watched["calls, seen"] if call.startswith("cuStreamWriteValue32")], watched)
            for mode in "lazy", "ordered":
                gate = part[f"{name}, gate in {mode}"]
                self.assertEqual((gate["off"], gate["may hide"]), ("", []))
        self.assertIn("submissions: pytorch", str(results["skipped"]))


class WhenItGoesWrong(Runs):

    def test_a_part_that_fails_stops_no_other(self):
        """With broken headers nothing can be compiled; the demo's programs are there."""
        self.write("work/toolkit/include/cuda.h", "#error broken\n")
        run = self.run_it("--only", "measure,routes,demo,conformance", "--built", BUILD, "--cases", "01")
        results = self.results()
        self.assertEqual(run.returncode, 1)
        self.assertEqual(results["left"], [])
        self.assertEqual(results["parts"]["measure"]["measure"], "FAILED")
        self.assertEqual(results["parts"]["routes"]["driver_linked"], "FAILED")
        self.assertEqual(results["parts"]["demo"]["demo"], "ok")
        self.assertNotIn("Traceback", run.stdout + run.stderr + str(results))

    def test_no_time_at_all(self):
        run = self.run_it("--budget", "1")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("the library or bfcstat was not built, so nothing can be checked: build: the rest of it: out of time",
                      run.stderr)
        self.assertNotIn("Traceback", run.stderr)

    def test_told_to_stop(self):
        """While a framework is asked for its version. What there was is written, and nothing is left running."""
        process = subprocess.Popen(
            self.command("--only", "clients", "--built", BUILD),
            env=self.environment(PYTHONPATH=FAKES), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True)
        while not os.path.exists(self.path("pids")) or not os.path.getsize(self.path("pids")):
            self.assertIsNone(process.poll(), "it has ended")
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 1)
        self.assertIn("stopped by a signal; the results so far are written", error)
        self.assertNotIn("Traceback", error)
        self.assertEqual(self.results()["left"], ["build", "clients"])
        with open(self.path("pids"), encoding="utf-8") as file:
            self.assertEqual([pid for pid in file.read().split() if alive(pid)], [])


    def hangs(self, *arguments):
        """A run whose first framework hangs, and that framework's process."""
        self.write("hang/torch/__init__.py", "import os, time\nwith open(os.environ['FAKE_PIDS'], 'w') as file:\n"
                   "    print(os.getpid(), file=file, flush=True)\ntime.sleep(1000)\n")
        process = subprocess.Popen(self.command("--only", "clients", "--built", BUILD, *arguments), stdout=subprocess.PIPE,
                                   env=self.environment(PYTHONPATH=self.path("hang")), start_new_session=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        while not os.path.exists(self.path("pids")) or not os.path.getsize(self.path("pids")):
            self.assertIsNone(process.poll(), "it has ended")
            time.sleep(0.05)
        with open(self.path("pids"), encoding="utf-8") as file:
            return process, int(file.read())

    def test_killed(self):
        """With its process group, as by a time limit. Neither its programs go on, nor is what it holds held."""
        process, framework = self.hangs()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        while alive(framework):
            time.sleep(0.05)
        run = self.run_it("--resume", "--only", "smoke", "--built", BUILD)
        self.assertIn("gpu-check: smoke left to do", run.stdout, run)

    def test_two_at_once(self):
        """The second one would write what the first one writes."""
        self.hangs()
        for others in ("--out", self.path("another")), ("--work", self.path("another")), \
                ("--out", self.path("another"), "--work", self.path("a third"), "--also", self.out):
            run = self.run_it("--only", "clients", "--built", BUILD, *others)
            self.assertEqual(run.returncode, 1)
            self.assertRegex(run.stderr, f"^gpu-check: another gpu-check is at work in ({self.out}|{self.path('work')}): wait")

    def test_cases_that_are_none(self):
        for cases in "1", "01,99", "one":
            run = self.run_it("--cases", cases)
            self.assertEqual(run.returncode, 2)
            self.assertRegex(run.stderr, f"no such conformance case: {cases.split(',')[-1]}; known are those of")


class Resuming(Runs):
    MACHINE = {"device": "one", "driver": 12050, "memory": 1, "libcuda": "/lib/libcuda.so.1"}

    def earlier(self):
        """Of a run in which `measure` ended and `routes` ran out of time."""
        results = Results(self.out)
        results.machine.update(self.MACHINE)
        for part in "measure", "routes":
            results.note(part, "something", "FAILED", "failures", "why")
            results.end_part(part, 1, whole=part == "measure")
        return results

    def test_parts_that_ended_are_kept(self):
        self.earlier()
        results = Results(self.out)
        self.assertEqual(results.take_over(self.MACHINE, ["measure", "routes", "demo"]), ["routes", "demo"])
        results.drop("routes")
        self.assertEqual(results.all["failures"], ["measure: something: why"])
        self.assertEqual(list(results.all["parts"]), ["measure"])

    def test_nothing_to_resume(self):
        self.assertEqual(Results(self.out).take_over(self.MACHINE, ["measure"]), ["measure"])

    def test_another_machine(self):
        self.earlier()
        with self.assertRaisesRegex(CannotResume, r"results\.json is of another machine \(device differs\)"):
            Results(self.out).take_over({**self.MACHINE, "device": "two"}, ["measure"])

    def test_damaged_results(self):
        whole = self.earlier().all
        whole["runs"].append({**RUN, "parts": []})
        damaged = ({"machine": []}, {"parts": []}, {"parts": {"smoke": "ok"}}, {"failures": {}}, {"failures": [1]}, {"left": [None]},
                   {"seconds": {"smoke": "1"}}, {"runs": [{}]}, {"runs": [dict.fromkeys(RUN)]}, {"more": 1})
        for text in ("", "{", "[]", "{}", "null", "5", "[" * 100000, '{"machine": 1}', json.dumps(whole)[:-20], "\0",
                     *(json.dumps({**whole, **change}) for change in damaged)):
            self.write("out/results.json", text)
            with self.assertRaisesRegex(CannotResume, "cannot be resumed from: .*; leave out --resume"):
                Results(self.out).take_over(self.MACHINE, ["measure"])

    def test_other_sources(self):
        """What a part that was cut off has found with them is not mixed with what it finds now."""
        for checked, kept in (RUN["bfcpreload"], True), ("0.1.0, sources of another kind", False):
            shutil.rmtree(self.out, ignore_errors=True)
            results = Results(self.out)
            results.begin(RUN, ["slow", "quick"])
            for part in "slow", "quick":
                results.begin_part(part, False)
                results.note(part, "it", "ok")
                results.end_part(part, 1, whole=part == "quick")
            later = Results(self.out)
            later.take_over({}, ["slow", "quick"])
            later.begin({**RUN, "bfcpreload": checked}, ["slow"])
            later.begin_part("slow", True)
            self.assertEqual((later.has("slow", "it"), later.has("quick", "it")), (kept, True))
            page = report.markdown(later.all)
            self.assertEqual("**Not all runs had the same: bfcpreload." in page, not kept)
            self.assertIn("| slow | 1 | 0 | 0 | 0 | 1 | 1, 2 | not finished |" if kept else
                          "| slow | 0 | 0 | 0 | 0 |  | 2 | not finished |", page)
            self.assertIn("| quick | 1 | 0 | 0 | 0 | 1 | 1 | ended |", page)

    def test_other_cases(self):
        """A part that ended with some of the cases has not ended with all of them."""
        results = Results(self.out)
        results.begin({**RUN, "cases": "01"}, ["conformance", "smoke"])
        for part in "conformance", "smoke":
            results.begin_part(part, False)
            results.note(part, "case01-driver", "ok")
            results.end_part(part, 1, whole=True)
        for cases, left in ("01", []), ("02", ["conformance"]), ("all", ["conformance"]):
            self.assertEqual(Results(self.out).take_over({}, ["conformance", "smoke"], cases), left)

    def test_without_resume(self):
        """What an earlier run has found is not lost, and its logs are not taken for this one's. Others' files stay."""
        for number in 1, 2:
            self.earlier()
            self.write("out/conformance.log", f"run {number}")
            self.write("out/mine.log", "")
            self.assertEqual(Results(self.out).set_aside(), os.path.join(self.out, f"before-{number}"))
        self.assertEqual(sorted(os.listdir(self.out)), ["before-1", "before-2", "mine.log"])
        self.assertEqual(sorted(os.listdir(self.out + "/before-2")), ["conformance.log", "results.json", "results.md"])
        self.assertIsNone(Results(self.out).set_aside())

    def test_a_whole_run(self):
        """The second run keeps the first one's conformance and adds the stress; a third has nothing to do."""
        common = ("--built", BUILD, "--cases", "01")
        self.run_it("--only", "conformance", *common)
        results = self.results()
        self.assertEqual(results["ended"], ["build", "conformance"])
        results["parts"]["conformance"]["of the first run"] = "ok"
        self.write("out/results.json", json.dumps(results))
        run = self.run_it("--resume", "--only", "conformance,stress", *common, BFC_STRESS_SECONDS="1")
        self.assertIn("gpu-check: stress left to do\n", run.stdout)
        results = self.results()
        self.assertEqual((run.returncode, results["left"]), (0, []), run)
        self.assertEqual(set(results["ended"]), {"build", "conformance", "stress"})
        self.assertEqual(results["parts"]["conformance"]["of the first run"], "ok")
        run = self.run_it("--resume", "--only", "conformance,stress", *common)
        self.assertIn("gpu-check: nothing left to do\n", run.stdout)
        self.assertEqual((run.returncode, self.results()), (0, results))
        run = self.run_it("--resume", *common, SIM_MEMORY="2G")
        self.assertEqual(run.returncode, 1, run)
        self.assertRegex(run.stderr, r"is of another machine \(memory differs\)")


class WhatHangs(Runs):
    """A Meson test of its own, since it mostly waits."""

    def test_clients(self):
        """One is missing, one does not start, three work; one hangs and is cut off, with what it has
        started; none stops the others."""
        if not shutil.which("c++") or not os.path.exists(os.path.join(INCLUDE, "nccl.h")):
            self.skipTest("no C++ compiler, or no NCCL")
        toolkit = self.toolkit()
        for library in "cublas", "nccl":
            subprocess.run(["cc", "-shared", "-fPIC", "-I", INCLUDE, os.path.join(FAKES, "libraries.c"),
                            "-o", f"{toolkit}/lib64/lib{library}.so",
                            "-L", toolkit + "/lib64", "-lcudart"], check=True)
        run = self.run_it("--only", "clients", "--built", BUILD, "--budget", "90", PYTHONPATH=FAKES, CLIENT_ROUNDS="20")
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
            self.assertIn(name + ", native", clients, results["skipped"])
            ways = {how: clients[f"{name}, {how}"] for how in
                    ("native", "preloaded, sync", "preloaded, lazy", "preloaded, ordered")}
            self.assertEqual(len({way["digest"] for way in ways.values()}), 1)
            self.assertIn("hit rate", str(ways["preloaded, lazy"]["summary"]))
        self.assertGreater(clients["numba, preloaded, sync"]["coverage"]["pooled"], 40)
        with open(self.path("pids"), encoding="utf-8") as file:
            left = [pid for pid in file.read().split() if alive(pid)]
        self.assertEqual(left, [])

    def test_the_time_is_kept(self):
        """All that there is hangs."""
        self.write("hang/jax.py", "import time\ntime.sleep(1000)\n")
        run = self.run_it("--only", "clients,demo", "--built", BUILD, "--budget", "24",
                          PYTHONPATH=FAKES + os.pathsep + self.path("hang"))
        results = self.results()
        self.assertEqual("Not finished: " in run.stdout, results["left"] != [])
        self.assertNotIn("Traceback", run.stderr)
        self.assertEqual(set(results["seconds"]), {"build", "demo", "clients"})


if __name__ == "__main__":
    GPU_CHECK, BUILD, INCLUDE = map(os.path.realpath, sys.argv[1:4])
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
