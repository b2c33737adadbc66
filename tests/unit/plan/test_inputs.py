#!/usr/bin/env python3
"""What the commands of bfcplan read and write: tables, plans, graphs, dumps of compilers, pictures and traces."""

import json
import os
import random
import unittest
import xml.dom.minidom

from cases import Case, EXAMPLES, lifetimes, read


class BadInput(Case):
    def test_csv_errors_name_file_row_and_reason(self):
        good = "id,lower,upper,size\na,0,1,2\n"
        for text, words in (
                ("", ["line 1", "empty"]),
                ("id,lower,upper\n", ["size"]),
                ("id,lower,upper,size,colour\n", ["colour"]),
                ("id,lower,upper,size,id\n", ["twice"]),
                (good + "b,1,1,2\n", ["row 2 (line 3)", "upper '1'"]),
                (good + "b,1,x,2\n", ["row 2 (line 3)", "upper 'x'"]),
                (good + "b,1,2,-3\n", ["row 2 (line 3)", "size '-3'"]),
                (good + "b,1,2,1e3\n", ["row 2 (line 3)", "size '1e3'"]),
                (good + "b,1,2,9223372036854775809\n", ["row 2", "2^63"]),
                (good + "b,1,99999999999999999999,1\n", ["row 2", "upper"]),
                (good + "a,1,2,3\n", ["row 2", "row 1", "id 'a'"]),
                (good + "b,1,2\n", ["row 2", "3 fields"]),
                (good + ",1,2,3\n", ["row 2", "id"]),
                (good + '"b,1,2,3\n', ["line 3", "quote"])):
            path = self.write("bad.csv", text)
            result = self.run_plan("solve", path, "-o", self.path("p"), status=1)
            for word in [path, *words]:
                self.assertIn(word, result.stderr)
            self.assertFalse(os.path.exists(self.path("p")))

    def test_files_that_are_not_there(self):
        self.run_plan("solve", self.path("none"), "-o", self.path("p"), status=1)
        self.run_plan("solve", self.write("a.csv", "id,lower,upper,size\n"), "-o",
                      self.path("none/p"), status=1)

    def test_usage(self):
        for arguments in ([], ["pack"], ["solve"], ["solve", "a"], ["solve", "a", "-o"],
                          ["solve", "a", "-o", "b", "--align", "0"], ["check", "a"],
                          ["solve", "a", "-o", "b", "--capacity", "12Q"],
                          ["solve", "a", "-o", "b", "--frobnicate"], ["plot", "a"],
                          ["lifetimes", "a", "-o", "b", "--order", "best"],
                          ["solve", "a", "b", "-o", "c"]):
            self.run_plan(*arguments, status=2)
        self.assertIn("usage", self.run_plan("--help").stdout)
        self.assertRegex(self.run_plan("--version").stdout, r"^bfcplan \d+\.\d+\.\d+\n$")


class Check(Case):
    def setUp(self):
        super().setUp()
        self.csv = self.write("a.csv", lifetimes(50, 3))
        self.plan = self.path("a.plan")
        self.run_plan("solve", self.csv, "-o", self.plan)

    def test_another_file_is_refused(self):
        with open(self.csv, encoding="utf-8") as file:
            lines = file.read().splitlines()
        parts = lines[7].split(",")
        parts[3] = str(int(parts[3]) + 512)
        changed = "\n".join(lines[:7] + [",".join(parts)] + lines[8:]) + "\n"
        result = self.run_plan("check", self.plan, self.write("b.csv", changed), status=1)
        self.assertIn("row 7 (line 8)", result.stderr)
        self.run_plan("check", self.plan, self.write("b.csv", "\n".join(lines[:-1])), status=1)

    def test_damage_is_refused(self):
        with open(self.plan, "rb") as file:
            whole = file.read()
        draw = random.Random(2)
        for _ in range(40):
            damaged = bytearray(whole)
            at = draw.randrange(len(whole))
            damaged[at] ^= 1 << draw.randrange(8)
            with open(self.path("d.plan"), "wb") as file:
                file.write(damaged)
            self.run_plan("check", self.path("d.plan"), self.csv, status=1)
        with open(self.path("d.plan"), "wb") as file:
            file.write(whole[:-1])
        self.run_plan("check", self.path("d.plan"), self.csv, status=1)


class Graphs(Case):
    def graph(self, order):
        out = self.path("g.csv")
        result = self.run_plan("lifetimes", os.path.join(EXAMPLES, "network.json"), "-o", out,
                               f"--order={order}", "--json", "--time-limit", 1)
        return json.loads(result.stdout)["peak"], out

    def test_example_goes_from_graph_to_plan(self):
        peaks = {}
        for order in ("given", "dfs", "bfs", "min-peak"):
            peaks[order], out = self.graph(order)
            self.solve(out)
        self.assertEqual(peaks["min-peak"], min(peaks.values()))

    def test_min_peak_runs_one_branch_after_the_other(self):
        branches = [{"name": f"{kind}{i}", "inputs": ["x" if kind == "up" else f"u{i}"],
                     "outputs": [{"name": f"{'u' if kind == 'up' else 'd'}{i}",
                                  "size": 1000 if kind == "up" else 1}]}
                    for kind in ("up", "down") for i in range(6)]
        graph = {"inputs": [{"name": "x", "size": 1}],
                 "nodes": branches + [{"name": "end", "inputs": [f"d{i}" for i in range(6)],
                                       "outputs": [{"name": "y", "size": 1, "keep": True}]}]}
        path = self.write("g.json", json.dumps(graph))
        peak = {}
        for order in ("given", "bfs", "min-peak"):
            result = self.run_plan("lifetimes", path, "-o", self.path("g.csv"), "--order", order,
                                   "--json", "--time-limit", 1)
            peak[order] = json.loads(result.stdout)["peak"]
        self.assertGreater(peak["given"], 6000)
        self.assertLess(peak["min-peak"], 1010)

    def test_errors(self):
        node = '{"name": "n", "inputs": ["%s"], "outputs": [{"name": "t", "size": %s}]}'
        for text, words in (
                ("{", ["JSON"]), ('{"nodes": [\n{]}', ["line 2"]), ("[]", ["object"]),
                ('{"nodes": [' + node % ("q", 1) + "]}", ["node 0 ('n')", "q"]),
                ('{"nodes": [' + node % ("t", 1) + ', {"name": "n"}]}', ["node 1", "name"]),
                ('{"nodes": [' + node % ("t", -1) + "]}", ["node 0", "size"]),
                ('{"nodes": [' + node % ("t", "1.5") + "]}", ["node 0", "size"]),
                ('{"nodes": [{"name": "a", "inputs": ["y"], "outputs": [{"name": "x", "size": 1}]},'
                 '{"name": "b", "inputs": ["x"], "outputs": [{"name": "y", "size": 1}]}]}',
                 ["cycle"]),
                ('{"nodes": [{"name": "n", "extra": 1}]}', ["extra"]),
                ('{"nodes": [' + node % ("t", 1) + "]}", ["node 0 ('n')", "reads what it writes itself: t"]),
                ('{"inputs": [{"name": "x", "size": 1, "alias": "nobody"}], "nodes": []}',
                 ["tensor 0 ('x')", "'nobody'"]),
                ('{"inputs": [{"name": "n.workspace", "size": 1}], "nodes": [{"name": "n", "workspace": 1}]}',
                 ["a tensor and a node's workspace", "'n.workspace'"])):
            path = self.write("bad.json", text)
            result = self.run_plan("lifetimes", path, "-o", self.path("o"), status=1)
            for word in [path, *words]:
                self.assertIn(word, result.stderr)


RANGES = """HloLiveRange (max 4):
  InstructionSequence:
    0:x
  BufferLiveRange:
    x{}:0-4
    a{}:0-1
    b.1{}:1-2
    c{0}:2-3
  Live ranges at 2 (peak):
    d{}: 9-9 bytes
"""
ASSIGNMENT = """BufferAssignment:
allocation 0: size 64, parameter 0, shape |f32[16]| at ShapeIndex {}:
 value: <1 x @0> (size=64,offset=0): f32[16]{0}
allocation 3: size 384, preallocated-temp:
 value: <2 a @0> (size=200,offset=0): f32[50]{0}
 value: <3 b.1 @0> (size=128,offset=256): f32[32]{0}
 value: <4 c{0} (phi) @0> (size=100,offset=256): f32[25]{0}
"""


class Outputs(Case):
    def test_what_cannot_be_written_is_said_before_the_work(self):
        path = self.write("a.csv", lifetimes(50, 3))
        graph = self.write("g.json", '{"nodes": []}')
        for out, why in (("/nowhere/at/all", "No such file"), (self.folder.name, "Is a directory"),
                         ("-", "stands for standard input alone")):
            for arguments in (["solve", path, "-o", out], ["solve", path, "--offsets", out],
                              ["plot", path, "-o", out], ["lifetimes", graph, "-o", out]):
                with self.subTest(arguments):
                    said = self.run_plan(*arguments, status=1).stderr
                    self.assertIn(f"{out}: ", said)
                    self.assertIn(why, said)
        # The input is looked at later than the output.
        said = self.run_plan("solve", "nothing.csv", "-o", "/nowhere/at/all", status=1).stderr
        self.assertIn("/nowhere/at/all", said)

    def test_plot_from_standard_input(self):
        out = self.path("o.svg")
        with open(self.write("a.csv", lifetimes(50, 3)), encoding="utf-8") as rows:
            self.run_plan("plot", "-", "-o", out, stdin=rows)
        self.assertTrue(os.path.exists(out))

    def test_dims_are_for_models(self):
        result = self.run_plan("lifetimes", os.path.join(EXAMPLES, "network.json"), "-o", self.path("o"), "--dims", "a=1",
                               status=2)
        self.assertIn("--dims is for a MODEL.onnx", result.stderr)


class Dumps(Case):
    """XLA's dumps; the test `client compilers` reads real ones, and models."""

    def dump(self, assignment, ranges):
        if ranges is not None:
            self.write("m-live-range.txt", ranges)
        return self.write("m-buffer-assignment.txt", assignment)

    def test_temporary_values_become_rows(self):
        out = self.path("o.csv")
        result = self.run_plan("lifetimes", self.dump(ASSIGNMENT, RANGES), "-o", out)
        self.assertIn("XLA's own plan needs 384 bytes", result.stderr)
        self.assertIn("3 buffers; in the compiler's order 328 bytes", result.stdout)
        self.assertEqual([tuple(row.values()) for row in read(out)],
                         [("a", "0", "2", "200", "", "3"), ("b.1", "1", "3", "128", "", "3"),
                          ("c{0}", "2", "4", "100", "b.1", "3")])
        self.assertEqual(self.solve(out, align=64)[0]["peak"], 384)

    def test_the_order_is_the_compiler_s(self):
        path = self.dump(ASSIGNMENT, RANGES)
        result = self.run_plan("lifetimes", path, "-o", self.path("o.csv"), "--order=dfs", status=2)
        self.assertIn("is in the compiler's order", result.stderr)

    def test_what_cannot_be_read_is_named(self):
        out = self.path("o.csv")
        for assignment, ranges, wanted in (
                (ASSIGNMENT, None, "m-live-range.txt: cannot be read"),
                (ASSIGNMENT, "HloLiveRange\n", "it has no BufferLiveRange"),
                ("nothing\n", RANGES, "it has no allocations")):
            for name in os.listdir(self.folder.name):
                os.unlink(self.path(name))
            path = self.dump(assignment, ranges)
            self.assertIn(wanted, self.run_plan("lifetimes", path, "-o", out, status=1).stderr)
            self.assertFalse(os.path.exists(out))


class Plots(Case):
    def test_plans_and_files(self):
        path = self.write("a.csv", lifetimes(300, 9))
        self.run_plan("solve", path, "-o", self.path("p"))
        for source in (self.path("p"), path):
            self.run_plan("plot", source, "-o", self.path("o.svg"))
            document = xml.dom.minidom.parse(self.path("o.svg"))
            self.assertGreaterEqual(len(document.getElementsByTagName("title")), 290)
            self.assertIn("peak", document.toxml())

    def test_many_rectangles_stay_small(self):
        path = self.generate("a.csv", "train", 30000, 1)
        self.run_plan("solve", path, "-o", self.path("p"))
        self.run_plan("plot", self.path("p"), "-o", self.path("o.svg"))
        self.assertLess(os.path.getsize(self.path("o.svg")), 30000 * 60)
        document = xml.dom.minidom.parse(self.path("o.svg"))
        drawn = "".join(p.getAttribute("d") for p in document.getElementsByTagName("path"))
        self.assertGreaterEqual(drawn.count("M"), 30000)


class Traces(Case):
    def period(self, *arguments):
        path = self.generate("a.trace", *arguments)
        return path, json.loads(self.run_plan("period", path, "--json").stdout)

    def test_loop(self):
        path, found = self.period("loop", 10, 1)
        self.assertEqual(found["period"], 40)
        self.assertLessEqual(found["prefix"], 25 + 40)
        self.assertGreaterEqual(found["repetitions"], 8)
        self.assertFalse(found["jitter"])
        plan = self.path("p")
        report = json.loads(self.run_plan("solve", path, "-o", plan, "--json").stdout)
        self.assertEqual(report["period"], 40)
        self.assertEqual(report["buffers"], found["prefix"] + 40)
        self.run_plan("check", plan, path)

    def test_a_trace_of_nothing_has_no_plan(self):
        path = self.generate("a.trace", "loop", 10, 1)
        os.truncate(path, 1000)
        said = self.run_plan("solve", path, "-o", self.path("p"), status=1).stderr
        self.assertIn("no allocation is in it, since its tail is missing", said)
        self.assertFalse(os.path.exists(self.path("p")))

    def test_loop_with_jitter(self):
        path, found = self.period("loop", 12, 1, 10)
        self.assertEqual((found["period"], found["jitter"]), (40, True))
        self.run_plan("solve", path, "-o", self.path("p"))
        self.run_plan("check", self.path("p"), path)

    def test_too_much_jitter_and_noise_have_none(self):
        self.assertEqual(self.period("loop", 12, 1, 90)[1]["period"], 0)
        path, found = self.period("noise", 500, 1)
        self.assertEqual(found["period"], 0)
        self.assertIn("no period", self.run_plan("period", path).stdout)
        self.run_plan("solve", path, "-o", self.path("p"))
        self.run_plan("check", self.path("p"), path)

    def test_lifetimes_in_a_csv_have_a_period_too(self):
        lines = ["id,lower,upper,size"]
        for step in range(6):
            for i in range(5):
                lines.append(f"{step}-{i},{step * 20 + i},{step * 20 + 19 - i},{100 + i}")
        path = self.write("a.csv", "\n".join(lines) + "\n")
        found = json.loads(self.run_plan("period", path, "--json").stdout)
        self.assertEqual((found["prefix"], found["period"], found["repetitions"]), (0, 5, 6))

    def test_a_tail_that_is_cut_off(self):
        path = self.generate("a.trace", "loop", 2000, 1)
        with open(path, "rb") as file:
            whole = file.read()
        with open(self.path("b.trace"), "wb") as file:
            file.write(whole[:-7])
        result = self.run_plan("period", self.path("b.trace"), "--json")
        self.assertIn("tail", result.stderr)
        self.assertEqual(json.loads(result.stdout)["period"], 40)
        damaged = bytearray(whole)
        damaged[200] ^= 1
        with open(self.path("c.trace"), "wb") as file:
            file.write(damaged)
        self.assertIn("block 0", self.run_plan("period", self.path("c.trace"), status=1).stderr)


if __name__ == "__main__":
    unittest.main()
