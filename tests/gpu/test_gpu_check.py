#!/usr/bin/env python3
"""scripts/gpu-check as a dry run over the stand-in GPU, with made-up frameworks, so that its first run on
a real device is not the first one. usage: test_gpu_check.py GPU_CHECK BUILD INCLUDE [TEST...]"""

import contextlib
import io
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import unittest
from unittest import mock

sys.dont_write_bytecode = True
from check import hypre, machine, report, tree  # noqa: E402
from check.parts import Part, build, clients, conformance, programs  # noqa: E402
from check.results import CannotResume, Results  # noqa: E402
from check.running import SHORTEST, Clock, OutOfTime, Runner  # noqa: E402
from check.session import Session, sources  # noqa: E402
from check.stand_in import CXX, StandIn  # noqa: E402
from check.toolkit import ROOT, Toolkit  # noqa: E402
from check.tree import Stamps  # noqa: E402

GPU_CHECK = BUILD = INCLUDE = ""
RUN = {"begun": "2027-01-15 10:00 UTC", "bfcpreload": "0.1.0, sources 012345", "card": "0a1b2c3d", "cases": "all"}
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


class Runs(unittest.TestCase):
    """What the tests below share."""

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
        env.update({"FAKE_PIDS": self.path("pids"), "SIM_DEVICES": "1", **variables})
        return env

    def run_it(self, *arguments, dry=True, **variables):
        return subprocess.run(self.command(*arguments, dry=dry), env=self.environment(**variables),
                              capture_output=True, text=True, timeout=900, check=False)

    def results(self):
        """And the page must be one that can be rendered."""
        with open(os.path.join(self.out, "results.json"), encoding="utf-8") as file:
            results = json.load(file)
        with open(os.path.join(self.out, "results.md"), encoding="utf-8") as file:
            page = file.read()
        for part, entries in results["parts"].items():
            table = page.split(f"## {part} (")[1].split("\n\n")[1].splitlines()
            self.assertEqual(table[:2], ["| | |", "|---|---|"])
            shown = [value for value in entries.values()
                     if value != "done" and not (part == "unknowns" and isinstance(value, dict))]
            self.assertEqual(len(table) - 2, len(shown))
            self.assertEqual({row.count("|") for row in table}, {3})
        for name in "failures", "surprises", "skipped":
            lines = page.split(f"## {name}\n\n")[1].split("\n\n")[0].splitlines()
            self.assertEqual(len(lines), len(results[name]) or 1)
        return results


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
        parts = ["build", "smoke", "conformance", "measure", "unknowns", "demo", "roads", "runtimes", "pages", "tools",
                 "stress"]
        run = self.run_it("--only", ",".join(parts), "--cases", "01,15,41", "--also", self.path("also"))
        results = self.results()
        with open(self.path("also/results.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file), results)
        self.assertTrue(os.path.exists(self.path("also/conformance.log")))
        self.assertEqual((run.returncode, results["failures"], results["surprises"]), (0, [], []), run)
        self.assertEqual(results["ended"], parts)
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
        self.assertEqual(measured["cuIpcOpenMemHandle of another process's handle"], 0)
        self.assertNotEqual(measured["cuIpcOpenMemHandle of a token of bfcpreload's"], 0)
        for name in ("idle cuCtxSynchronize, ns, 8 streams", "cuCtxRecordEvent, ns, 128 busy streams",
                     "cuCtxWaitEvent, ns, 0 streams", "pitch from width, element 4",
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
        roads = {name: value for name, value in parts["roads"].items() if value != "built"}
        self.assertEqual(len(roads), 25)
        for name, value in roads.items():
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


class WhenItGoesWrong(Runs):

    def test_a_part_that_fails_stops_no_other(self):
        """With broken headers nothing can be compiled; the demo's programs are there."""
        self.write("work/toolkit/include/cuda.h", "#error broken\n")
        run = self.run_it("--only", "measure,roads,demo,conformance", "--built", BUILD, "--cases", "01")
        results = self.results()
        self.assertEqual(run.returncode, 1)
        self.assertEqual(results["left"], [])
        self.assertEqual(results["parts"]["measure"]["measure"], "FAILED")
        self.assertEqual(results["parts"]["roads"]["driver_linked"], "FAILED")
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
        """Of a run in which `measure` ended and `roads` ran out of time."""
        results = Results(self.out)
        results.machine.update(self.MACHINE)
        for part in "measure", "roads":
            results.note(part, "something", "FAILED", "failures", "why")
            results.end_part(part, 1, whole=part == "measure")
        return results

    def test_parts_that_ended_are_kept(self):
        self.earlier()
        results = Results(self.out)
        self.assertEqual(results.take_over(self.MACHINE, ["measure", "roads", "demo"]), ["roads", "demo"])
        results.drop("roads")
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


class Built(Runs):
    """What a folder of --work that is kept spares."""
    BOTH = ["libbfcpreload.so", "bfcstat"]

    def build(self, text, works=True):
        """What is built of these sources, and what is there then."""
        built = []

        def make(name):
            def made(*_):
                built.append(name)
                if works:
                    self.write(name, text)
                return works
            return made

        session = mock.Mock(stamps=Stamps(self.folder, text), library=self.path(self.BOTH[0]),
                            bfcstat=self.path(self.BOTH[1]))
        with mock.patch.multiple(build, build_library=make(self.BOTH[0]), build_bfcstat=make(self.BOTH[1])):
            build.build_ours(session)
        return built, [name for name in self.BOTH if os.path.exists(self.path(name))]

    def test_once(self):
        self.assertEqual(self.build("one"), (self.BOTH, self.BOTH))
        self.assertEqual(self.build("one"), ([], self.BOTH))
        os.remove(self.path("bfcstat"))
        self.assertEqual(self.build("one"), (["bfcstat"], self.BOTH))

    def test_again_when_the_sources_have_changed(self):
        self.build("one")
        self.assertEqual(self.build("another", works=False), (self.BOTH, []))
        self.assertEqual(self.build("one"), (self.BOTH, self.BOTH))

    def test_what_the_sources_are(self):
        self.assertEqual(tree.fingerprint("here"), tree.fingerprint("here"))
        self.assertNotEqual(tree.fingerprint("here"), tree.fingerprint("there"))
        self.assertIn(os.path.join(ROOT, "pool/pool.h"), tree.files("pool"))


class Turns(Runs):
    """Parts of our own, without a device: what becomes of one that crashes or is cut off."""

    def session(self, resumes=False, budget=100, left=()):
        session = object.__new__(Session)
        session.results, session.clock, session.resumes = Results(self.out), Clock(budget), resumes
        if resumes:
            session.results.take_over({}, [])
        session.results.begin(RUN, left)
        session.runner = Runner(session.clock, self.folder, {})
        session.begun, session.trouble, session.find_trouble = set(), None, lambda: None
        return session

    def do(self, session, **parts):
        session.do({name: Part(1, 50, run) for name, run in parts.items()}, list(parts))
        return session.results.all

    def test_one_that_crashes(self):
        found = self.do(self.session(), crashes=lambda session: {}["nothing"], works=lambda session: session.note("works", "it", "ok"))
        self.assertRegex(found["failures"][0], "^crashes: gpu-check itself: Traceback")
        self.assertEqual((found["parts"]["works"], found["ended"]), ({"it": "ok"}, ["works"]))

    def test_one_that_is_cut_off_has_another_turn(self):
        """And does not do again what it has done."""
        calls, limits = [], []

        def cut_off(session):
            for name in "one", "two":
                if not session.has("slow", name):
                    calls.append(name)
                    session.note("slow", name, "ok")
                    limits.append(session.clock.left())
                    if name == "one":
                        raise OutOfTime

        found = self.do(self.session(), slow=cut_off, works=lambda session: None)
        self.assertEqual((calls, found["skipped"]), (["one", "two"], []))
        self.assertLess(limits[0], 51)
        self.assertGreater(limits[1], 51)  # all that is left
        self.assertEqual((found["parts"]["slow"], found["ended"]), ({"one": "ok", "two": "ok"}, ["works", "slow"]))

    def test_what_a_stop_ends(self):
        """Has not failed, in any thread."""
        session = self.session()
        done = []

        def runs():
            try:
                done.append(session.run(["sleep", "100"]))
            except OutOfTime:
                done.append("out of time")

        threads = [threading.Thread(target=runs) for _ in range(3)]
        for thread in threads:
            thread.start()
        while len(session.runner.running) < len(threads):
            time.sleep(0.01)
        session.runner.stop()
        for thread in threads:
            thread.join()
        self.assertEqual(done, ["out of time"] * 3)

    def test_a_device_that_dies(self):
        """The part is not over, the later ones are not begun, and all of it is done again when the device is back."""
        session, begun = self.session(left=["dies", "later"]), []

        def dies(session):
            begun.append("dies")
            session.note("dies", "one", "ok")
            session.fail("dies", "two", "why")
            session.find_trouble = lambda: "the device can no longer be used (cuInit answers 100)"

        found = self.do(session, dies=dies, later=lambda session: begun.append("later"))
        self.assertEqual((begun, found["ended"], found["left"]), (["dies"], [], ["dies", "later"]))
        self.assertEqual(found["surprises"], ["dies: the machine: the device can no longer be used (cuInit answers 100)"])
        session = self.session(resumes=True)
        found = self.do(session, dies=lambda session: session.note("dies", "two", "ok"), later=lambda session: None)
        self.assertEqual((found["parts"]["dies"], found["failures"], found["surprises"], found["left"]),
                         ({"two": "ok"}, [], [], []))

    def test_trouble_of_the_machine(self):
        session = self.session()
        del session.find_trouble
        session.work = self.folder
        for why, room, trouble in (None, 1 << 40, None), ("no", 1 << 40, r"the device can no longer be used \(no\)"), \
                (None, 1 << 10, self.folder + " is full"):
            with mock.patch.object(machine, "why_unusable", return_value=why), \
                    mock.patch.object(shutil, "disk_usage", return_value=mock.Mock(free=room)):
                found = session.find_trouble()
            (self.assertRegex if trouble else self.assertEqual)(found, trouble)

    def test_a_crash_is_tried_again(self):
        """By the next run too; what it said goes when it ends well."""
        self.do(self.session(left=["broken"]), broken=lambda session: {}["nothing"])
        session = self.session(resumes=True)
        found = self.do(session, broken=lambda session: session.note("broken", "it", "ok"))
        self.assertEqual((found["failures"], found["parts"]["broken"], found["ended"]), ([], {"it": "ok"}, ["broken"]))

    def test_a_full_disk(self):
        """The files stay whole, in either folder; what they lack comes when there is room."""
        results = Results(self.out, self.path("also"))
        results.begin(RUN, ["smoke"])
        old = resource.getrlimit(resource.RLIMIT_FSIZE)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, old[1]))
            with contextlib.redirect_stderr(io.StringIO()):  # it may be a file too
                results.begin_part("smoke", False)
                results.note("smoke", "it", "ok")
                results.end_part("smoke", 1, whole=True)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, old)
        self.assertIsInstance(results.problem, OSError)
        self.assertEqual(self.results()["parts"], {})
        results.write()
        for folder in self.out, self.path("also"):
            self.assertEqual(sorted(os.listdir(folder)), ["results.json", "results.md"])
            with open(folder + "/results.json", encoding="utf-8") as file:
                self.assertEqual(json.load(file)["parts"], {"smoke": {"it": "ok"}})

    def test_the_second_folder(self):
        """Is lost without harm, and its files are never half written."""
        results = Results(self.out, self.path("also"))
        results.write()
        with open(self.path("also/results.json"), encoding="utf-8") as earlier:
            results.note("smoke", "it", "ok")
            results.write()
            self.assertEqual(json.load(earlier)["parts"], {})
        shutil.rmtree(self.path("also"))
        results.note("smoke", "another", "ok")
        results.write()
        self.assertEqual(len(self.results()["parts"]["smoke"]), 2)

    def test_ways_of_a_program_are_of_one_run(self):
        """Their figures are compared. What is complete is not done again."""
        late = ["preloaded, lazy"]

        def way(attempt, how, *_, **__):
            name = f"{attempt.name}, {how}"
            if not attempt.session.has("programs", name):
                if how in late:
                    raise OutOfTime
                attempt.session.note("programs", name, {"digest": "one", "seconds": run})
            return attempt.session.results.all["parts"]["programs"][name]

        def gpt(session):
            programs.compare(clients.Attempt(session, "programs", "gpt", [], 5), clients.Client({}))

        for run, seconds in (1, {1}), (2, {2}), (3, {2}):
            session = self.session(resumes=True, left=["programs"])
            session.flags, session.stand_in = {}, None
            with mock.patch.object(clients.Attempt, "run", way):
                found = self.do(session, programs=gpt)
            self.assertEqual({entry["seconds"] for entry in found["parts"]["programs"].values() if isinstance(entry, dict)}, seconds)
            self.assertEqual(found["left"], ["programs"] if late else [])
            late.clear()

    def test_what_is_left(self):
        """It is named, also by a run that resumes with other parts."""
        def cut_off(session):
            raise OutOfTime

        session = self.session(budget=SHORTEST, left=["slow", "works"])
        found = self.do(session, slow=cut_off, works=lambda session: None)
        self.assertEqual(found["left"], ["slow"])
        self.assertIn("\n**Not finished: slow. `--resume` does the rest of them.**\n", report.markdown(found))
        later = Results(self.out)
        later.take_over(found["machine"], ["other"])
        later.begin(RUN, ["other"])
        self.assertEqual(later.all["left"], ["slow", "other"])
        later.end_part("slow", 1, whole=True)
        later.end_part("other", 1, whole=True)
        self.assertNotIn("Not finished", report.markdown(later.all))

    def test_what_a_program_is_cut_off_by(self):
        """Its own limit is its fault, the part's time is not."""
        session = self.session()
        self.assertEqual(session.run(["sleep", "100"], 3)[0], 124)
        session.clock.begin_part(1, 0, 4)
        with self.assertRaises(OutOfTime):
            session.run(["sleep", "100"], 60)

    def test_a_case_that_no_longer_builds(self):
        """Is not run as it was built before."""
        session = self.session()
        session.cases, session.stamps, session.work = ["01"], Stamps(self.folder, "tree"), self.folder
        session.toolkit, session.driver = Toolkit(self.folder), lambda: ["none"]
        for number in "01", "02":
            self.write(f"conformance/case{number}-driver", "of other sources")
        conformance.check(session, "conformance", ["driver"])
        self.assertEqual(os.listdir(self.path("conformance")), ["case02-driver"])
        self.assertEqual(session.results.all["parts"]["conformance"], {"build": "see surprises"})

    def test_cases_that_fill_the_device(self):
        """Others beside them would be out of memory."""
        filling = set()
        for case in sources("tests/conformance/case??.c"):
            with open(case, encoding="utf-8") as file:
                if "hog(" in file.read():
                    filling.add(case[-4:-2])
        self.assertGreater(len(filling), 2)
        self.assertLessEqual(filling, conformance.ALONE)

    def test_without_nvcc(self):
        session = self.session()
        session.toolkit = Toolkit(self.folder)
        self.assertIsNone(programs.command_of(session, "thrust"))
        self.assertIsNone(clients.compiled_command(session, "cublas"))
        self.assertEqual(session.results.all["skipped"],
                         ["programs: thrust: missing: no nvcc", "clients: cublas: missing: no nvcc"])

    def test_nvcc_that_hangs(self):
        """It leaves time to others, and may have been late."""
        session = self.session(budget=8)
        self.write("nvcc", "#!/bin/sh\nsleep 100\n")
        os.chmod(self.path("nvcc"), 0o755)
        session.work = self.folder
        self.assertIsNone(clients.compiles(session, "programs", "thrust", self.path("nvcc")))
        self.assertEqual((session.results.all["skipped"], session.out_of_time), (["programs: thrust: out of time"], True))
        self.assertGreater(session.clock.left(), SHORTEST)

    def test_hypre_that_is_not_built(self):
        """A line says why: no source, no nvcc, or what the command said that failed."""
        session = self.session()
        session.toolkit, session.work, session.stand_in = Toolkit(self.folder), self.folder, None
        session.results.machine["capability"] = "9.0"
        with mock.patch.object(hypre, "ARCHIVE", self.path("none.tar.gz")):
            self.assertIsNone(programs.command_of(session, "hypre"))
        self.assertRegex(session.results.all["skipped"][0],
                         "^programs: hypre: missing: no .*none.tar.gz, which scripts/fetch-programs fetches$")
        with mock.patch.object(hypre, "ARCHIVE", __file__), mock.patch.object(shutil, "which", return_value=None):
            self.assertIsNone(programs.command_of(session, "hypre"))
        self.assertIn("programs: hypre: missing: no cmake, ninja", session.results.all["skipped"])
        with self.assertRaisesRegex(hypre.NotBuilt, "^does not build: sh ended with 3: it is broken"):
            hypre.must(session, ["sh", "-c", "echo it is broken; exit 3"])

    def test_hypre_that_is_another_one(self):
        """A damaged archive, or one that somebody else has made, is not unpacked."""
        session = self.session()
        session.work, session.toolkit = self.folder, mock.Mock()
        self.write("programs/" + os.path.basename(hypre.ARCHIVE), "half of it")
        with mock.patch.object(hypre, "ARCHIVE", self.path("programs", os.path.basename(hypre.ARCHIVE))), \
                mock.patch.object(shutil, "which", return_value="/bin/true"), \
                self.assertRaisesRegex(hypre.NotBuilt, "is damaged or another one: its SHA-256 is [0-9a-f]{64}, not the one in "
                                       "tests/gpu/pinned; scripts/fetch-programs fetches it again"):
            hypre.build(session, "90")
        self.assertEqual(sorted(os.listdir(self.folder)), ["out", "programs"])

    def test_hypre_for_another_device(self):
        """What was compiled for one device, or for the simulated one, is none for another."""
        session = self.session()
        session.stamps, session.toolkit, session.stand_in = Stamps(self.folder, "tree"), mock.Mock(), None
        configured = []

        def must(_, command):
            configured.append([flag for flag in command if "_SM=" in flag or "_FLAGS=" in flag])
            self.write("made/old.o", "")

        with mock.patch.object(hypre, "must", must):
            for architecture, stand_in, times in ("90", None, 1), ("90", None, 1), ("100", None, 2), ("100", "one", 3):
                session.stand_in = stand_in
                hypre.configure(session, self.path("source"), self.path("made"), architecture)
                self.assertEqual(len(configured), times)
        self.assertIn("-DHYPRE_CUDA_SM=100", configured[1])

    def test_hypre_unpacked(self):
        """Only unqualified names change."""
        for name in hypre.AMBIGUOUS:
            self.write("hypre-2.32.0/src/" + name, "a, make_reverse_iterator(b), thrust::make_reverse_iterator(c)")
        with tarfile.open(self.path("packed.tar.gz"), "w:gz") as archive:
            archive.add(self.path("hypre-2.32.0"), "hypre-2.32.0")
        with mock.patch.object(hypre, "ARCHIVE", self.path("packed.tar.gz")):
            hypre.unpack(self.path("source"))
        for name in hypre.AMBIGUOUS:
            with open(self.path("source", name), encoding="utf-8") as file:
                self.assertEqual(file.read(), "a, thrust::make_reverse_iterator(b), thrust::make_reverse_iterator(c)")

    def test_hypre_objects(self):
        self.write("built/build.ninja", "build CMakeFiles/HYPRE.dir/krylov/pcg.c.o: C_COMPILER__HYPRE_Release x\n"
                   "build CMakeFiles/HYPRE.dir/struct_mv/box.c.o: CUDA_COMPILER__HYPRE_Release x\n"
                   "build test/CMakeFiles/ij.dir/ij.c.o: CUDA_COMPILER__ij_Release x\n")
        self.assertEqual(hypre.parts_of_ij(self.path("built")),
                         ["CMakeFiles/HYPRE.dir/krylov/pcg.c.o", "test/CMakeFiles/ij.dir/ij.c.o"])

    def ij(self, steps):
        """The client, with a driver that does these steps."""
        self.write("ij", "#!/bin/sh\n" + steps)
        os.chmod(self.path("ij"), 0o755)
        return subprocess.run([sys.executable, os.path.join(HERE, "client_hypre.py"), self.path("ij")],
                              env={**os.environ, "CLIENT_SIDES": "8,16"}, capture_output=True, text=True, check=False)

    def test_hypre_client(self):
        """Its results are the iterations and the norms, not the times, of which the start's does not count."""
        line = "=====\n"
        def printed(solve):
            return "cat <<'END'\n" + "".join(
                f"{line}{name} times:\n{line}{name}:\n  wall clock time = {seconds} seconds\n"
                for name, seconds in (("Hypre init", 9.0), ("Setup phase", 0.25), ("Solve phase", solve))) + \
                "Iterations = 11\nFinal Relative Residual Norm = 4.2e-09\nEND\n"
        runs = [json.loads(self.ij(printed(solve)).stdout) for solve in (0.5, 0.75)]
        self.assertEqual([run["seconds"] for run in runs], [1.5, 2.0])
        self.assertEqual(runs[0]["digest"], runs[1]["digest"])
        for steps, why in ("exit 7\n", "ij ended with 7"), ("echo nothing\n", "ij does not say what it found: nothing"):
            done = self.ij(steps)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(why, done.stderr)

    def test_results_that_differ(self):
        """It is a failure where the native ones are always the same, and nothing is known where they are not."""
        for again, kind in ("one", "failures"), ("another", "surprises"):
            session = self.session()
            attempt = clients.Attempt(session, "programs", "gpt", ["true"], 5)
            session.note("programs", "gpt, native, again", {"digest": again})
            line = {"digest": "two"}
            clients.judge_result(attempt, "preloaded, lazy", line, {"digest": "one"}, {})
            self.assertEqual((line["result"], len(session.results.all[kind])), ("differs", 1))
            self.assertRegex(session.results.all[kind][0], "^programs: gpt, preloaded, lazy: ")

    def test_a_client_that_is_cut_off(self):
        """It hangs if it ends natively, and may have been late if it does not."""
        for when, kind, why in ("LD_PRELOAD", "failures", "cut off after 3 s"), ("HOME", "skipped", "out of time"):
            session = self.session()
            session.library, session.bfcstat = "/nowhere/lib.so", "/nowhere/bfcstat"
            session.managed = None
            hangs = ["sh", "-c", f'[ -z "${when}" ] || sleep 100']
            self.assertIsNone(clients.Attempt(session, "programs", "gpt", hangs, 3).run("preloaded, lazy", "lazy"))
            self.assertRegex(session.results.all[kind][0], f"^programs: gpt, preloaded, lazy: (.|\n)*{why}$")
            self.assertEqual(sum(len(session.results.all[name]) for name in ("failures", "skipped")), 1)

    def test_without_packages(self):
        session = self.session()
        session.results.machine.update({name: "missing" for name in clients.FRAMEWORKS})
        self.assertEqual([programs.command_of(session, name) for name in programs.OF_FRAMEWORK], [None] * 4)
        self.assertIn("programs: gpt: missing: no module torch", session.results.all["skipped"])


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
