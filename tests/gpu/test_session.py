#!/usr/bin/env python3
"""What scripts/gpu-check does with its parts, here parts of our own: what is built once, turns, and what becomes of
a part that crashes, is cut off, or finds the device dead or the disk full. Without a device or a stand-in."""

import contextlib
import io
import json
import os
import resource
import shutil
import subprocess
import sys
import tarfile
import threading
import time
import unittest
from unittest import mock

sys.dont_write_bytecode = True
from check import hypre, machine, report, tree  # noqa: E402
from check.parts import Part, build, clients, conformance, programs  # noqa: E402
from check.results import Results  # noqa: E402
from check.running import SHORTEST, Clock, OutOfTime, Runner  # noqa: E402
from check.session import Session, sources  # noqa: E402
from check.toolkit import ROOT, Toolkit  # noqa: E402
from check.tree import Stamps  # noqa: E402
from in_folder import RUN, InFolder  # noqa: E402

HERE = os.path.dirname(os.path.realpath(__file__))


class Built(InFolder):
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


class Turns(InFolder):
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


if __name__ == "__main__":
    unittest.main(verbosity=2)
