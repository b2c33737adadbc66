#!/usr/bin/env python3
"""What scripts/gpu-check makes of what it has found: the device's surroundings, decisions, kept results."""

import json
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from check import decisions, machine, report  # noqa: E402
from check.results import Results  # noqa: E402

HERE = os.path.dirname(os.path.realpath(__file__))


class Surroundings(unittest.TestCase):
    """Who else uses the device, and what part of one it is."""

    class Managed:
        is_part = False

        def __init__(self, others, mig):
            self.others, self.mig = others, mig

        def used(self):
            return 3 << 30

        def other_processes(self):
            return self.others

        def number(self, name):
            return self.mig if "Mig" in name else None

    def test_alone(self):
        known, complaints = machine.surroundings(self.Managed(0, 0))
        self.assertEqual((known, complaints), ({"in use before": 3 << 30, "other processes": 0,
                                                "a part of a device (MIG)": False}, []))

    def test_others(self):
        self.assertRegex(machine.surroundings(self.Managed(2, 0))[1][0], "^2 other processes use the device, with 3072 MiB")

    def test_a_part_of_a_device(self):
        self.assertRegex(machine.surroundings(self.Managed(None, 1))[1][0], r"^a part of a device \(MIG\)")

    def test_no_management_library(self):
        self.assertEqual(machine.surroundings(None)[1], [])
        self.assertIsNone(machine.find_managed({"uuid": "0" * 32}, "libnothing.so"))


class Decisions(unittest.TestCase):
    """By made-up figures: each rule, on either side of its border."""

    def results(self):
        pair = {"runtime_ns": 100, "malloc_beside_ns": 100, "free_beside_ns": 100}
        measured = {decisions.PAIR + how: dict(pair) for how in ("native", *decisions.MODES)}
        measured.update({f"{decisions.PAIR}{mode}, BFC_RUNTIME=off": dict(pair, runtime_ns=110)
                         for mode in decisions.MODES})
        measured.update({f"{call}, ns, 2 MiB": 10_000 for call in decisions.VMM})
        measured["cuMemMap beside a kernel of 50 ms, times of 3 that it waited for that, 2 MiB"] = 0
        ways = {"native": 10.0, "preloaded, sync": 8.0, "preloaded, lazy": 7.0, "preloaded, ordered": 7.5,
                "preloaded, lazy, pages": 7.1}
        return {"failures": [], "ended": ["measure", "unknowns", "pages"], "parts": {
            "measure": measured, "pages": {"demo": "ok"},
            "programs": {f"gpt, {way}": {"seconds": seconds, "peak": 1000} for way, seconds in ways.items()},
            "unknowns": {"cuMemFree of 2 MiB that nothing used waits for the context's streams":
                         {"answer": "yes", "expected": "yes", "decides": "no: a barrier is none"}}}}

    def answers(self, results):
        return [decision["answer"] for decision in decisions.decide(results)]

    def change(self, part, name, **values):
        results = self.results()
        results["parts"][part].setdefault(name, {}).update(values)
        return self.answers(results)

    def test_as_they_are(self):
        self.assertEqual(self.answers(self.results()), ["lazy", "nowhere among what was measured", "it stays", "auto"])

    def test_nothing_measured(self):
        self.assertEqual(self.answers({"failures": [], "ended": [], "parts": {}}), [decisions.NOTHING] * 4)

    def test_all_failed(self):
        results = self.results()
        failed = {part: dict.fromkeys(entries, "FAILED") for part, entries in results["parts"].items()}
        failed["measure"]["cuMemMap beside a kernel of 50 ms, times of 3 that it waited for that, 2 MiB"] = 0
        self.assertEqual(self.answers({"failures": ["pages: demo: why"], "ended": list(failed), "parts": failed}), [decisions.NOTHING] * 4)

    def test_mode_of_free(self):
        self.assertEqual(self.change("programs", "gpt, preloaded, lazy", seconds=7.9)[0], "ordered")
        self.assertEqual(self.change("programs", "gpt, preloaded, lazy", peak=1200)[0], "ordered")
        unsafe = {"answer": "no", "decides": "no: lazy and ordered are unsafe for such work"}
        self.assertEqual(self.change("unknowns", "a fence covers it", **unsafe)[0], "sync")
        for failure in "programs: gpt, lazy: differs", "conformance: case01-driver: native: ok\nlazy: differs\n":
            results = self.results()
            results["failures"].append(failure)
            self.assertEqual(self.answers(results)[0], "ordered")

    def test_what_did_not_run(self):
        """Is no pass: neither unknowns that were not asked, nor pages that were skipped, nor a mode without its pair."""
        for part, answers in {"unknowns": {0: "nothing before part `unknowns` has ended"}, "measure": {3: decisions.NOTHING},
                              "pages": {3: decisions.NOTHING}}.items():
            results = self.results()
            results["ended"].remove(part)
            self.assertEqual({number: self.answers(results)[number] for number in answers}, answers)
        results = self.results()
        results["parts"]["pages"] = {"demo": "skipped"}
        self.assertEqual(self.answers(results)[3], decisions.NOTHING)
        results["parts"]["unknowns"] = {}
        self.assertEqual(self.answers(results)[0], "nothing before part `unknowns` has ended")
        del results["parts"]["measure"][decisions.PAIR + "ordered, BFC_RUNTIME=off"]
        self.assertEqual(self.answers(results)[2], decisions.NOTHING)

    def test_how_much_they_rest_on(self):
        """The programs are named, and memory that is not known of all of them is not known."""
        results = self.results()
        question = next(iter(results["parts"]["unknowns"]))
        results["parts"]["unknowns"]["another"] = dict(results["parts"]["unknowns"][question], answer=decisions.NOT_ASKED)
        self.assertIn("lazy: time 0.875 of sync's in gpt; memory 1.000; 0 failures; unsafe by 0 of 1 answers to what was "
                      "unknown, and 1 could not be asked", decisions.decide(results)[0]["figures"])
        results["parts"]["programs"].update({f"thrust, preloaded, {mode}": {"seconds": 1.0} for mode in decisions.MODES})
        answer = decisions.decide(results)[0]
        self.assertIn("in gpt, thrust; memory unknown;", answer["figures"])
        self.assertEqual(answer["answer"], "sync")

    def test_where_sync_loses(self):
        self.assertEqual(self.change("programs", "gpt, preloaded, sync", seconds=11.0)[1], "sync loses at: gpt")
        self.assertEqual(self.change("measure", decisions.PAIR + "sync", free_beside_ns=200)[1],
                         "sync loses at: free_beside_ns")
        question = "cuMemFree of 2 MiB that nothing used waits for the context's streams"
        self.assertRegex(self.change("unknowns", question, answer="no")[1], "cudaFree does not wait, so sync must not$")

    def test_short_way(self):
        name = decisions.PAIR + "ordered, BFC_RUNTIME=off"
        self.assertRegex(self.change("measure", name, runtime_ns=104)[2], "^it does not pay")

    def test_backing(self):
        for part, name, value in (("measure", "cuMemCreate, ns, 2 MiB", 400_000),
                                  ("measure", "cuMemUnmap beside it, times of 3 that it waited for that, 2 MiB", 1)):
            results = self.results()
            results["parts"][part][name] = value
            self.assertRegex(self.answers(results)[3], "^malloc, because of ")
        self.assertRegex(self.change("programs", "gpt, preloaded, lazy, pages", seconds=8.0)[3],
                         "^malloc, because of slower programs$")


class Page(unittest.TestCase):
    """What its reader may conclude."""

    def page(self, **changes):
        results = {"machine": {}, "runs": [], "failures": [], "surprises": [], "skipped": [], "parts": {}, "seconds": {},
                   "decisions": [], "ended": [], "left": []}
        return report.markdown({**results, **changes})

    def test_units(self):
        page = self.page(machine={"driver": 12090, "memory": 80 << 30, "in use before": 3 << 20, "a part of a device (MIG)": False})
        self.assertIn("- driver: of CUDA 12.9\n- memory: 81,920 MiB\n- in use before: 3 MiB\n- a part of a device (MIG): no\n", page)
        self.assertIn("\nWhere a figure has no unit in its name: memory, widths and pitches are in bytes,", page)

    def test_nothing_was_checked(self):
        """No failures are no success."""
        page = self.page(parts={"tools": {"gdb": "skipped", "driver_linked": "built"}, "smoke": {"driver, native": "ok"},
                                "routes": {"host": "FAILED"}},
                         ended=["build", "tools", "smoke", "stress", "routes"], left=["pages"])
        for row in ("build | 0 | 0 | 0 | 0 |  |  | ended", "tools | 0 | 0 | 0 | 1 |  |  | **ended without a result**",
                    "smoke | 1 | 0 | 0 | 0 |  |  | ended", "stress | 0 | 0 | 0 | 0 |  |  | **ended without a result**",
                    "routes | 0 | 1 | 0 | 0 |  |  | ended", "pages | 0 | 0 | 0 | 0 |  |  | not finished"):
            self.assertIn(f"\n| {row} |\n", page)

    def test_what_programs_print(self):
        """Is shown, and neither marks up the page nor commands a terminal."""
        page = self.page(failures=["routes: host: File \"<string>\", line 1, in <module> \033[31m a|b &lt;\nnext"])
        self.assertIn('- routes: host: File "&lt;string>", line 1, in &lt;module> ?[31m a/b &amp;lt; next\n', page)


def faults_of(folder):
    """What keeps a folder's results from being kept."""
    with open(os.path.join(folder, "results.json"), encoding="utf-8") as file:
        results = json.load(file)
    with open(os.path.join(folder, "results.md"), encoding="utf-8") as file:
        page = file.read()
    return [fault for fault, there in (
        ("of a dry run", "dry run" in results["machine"]),
        ("the page is another's", page != report.markdown(results)),
        ("the decisions are others", results["decisions"] != decisions.decide(results))) if there]


class Kept(unittest.TestCase):
    """Results of real devices, in the folder `results`."""

    def test_what_is_kept(self):
        kept = os.path.join(HERE, "results")
        for name in sorted(os.listdir(kept)):
            if os.path.isdir(os.path.join(kept, name)):
                self.assertEqual(faults_of(os.path.join(kept, name)), [], name)

    def test_what_is_refused(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        results = Results(folder.name)
        results.machine.update({"dry run": "over the simulated GPU"})
        results.write()
        self.assertEqual(faults_of(folder.name), ["of a dry run"])
        del results.machine["dry run"]
        results.write()
        self.assertEqual(faults_of(folder.name), [])
        results.note("measure", decisions.PAIR + "native", {"runtime_ns": 1})
        with open(os.path.join(folder.name, "results.json"), "w", encoding="utf-8") as file:
            json.dump({**results.all, "decisions": []}, file)
        self.assertEqual(faults_of(folder.name), ["the page is another's", "the decisions are others"])


if __name__ == "__main__":
    unittest.main()
