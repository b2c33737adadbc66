#!/usr/bin/env python3
"""bfcplan as people use it, with a validator of its own. BFCPLAN and GENERATE name the programs."""

import csv
import json
import os
import pty
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.dom.minidom

BFCPLAN = os.environ["BFCPLAN"]
GENERATE = os.environ["GENERATE"]
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "examples")


def up(value, align):
    return -(-value // align) * align


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8", newline="") as file:
            file.write(text)
        return self.path(name)

    def generate(self, name, *arguments):
        with open(self.path(name), "wb") as file:
            subprocess.run([GENERATE, *map(str, arguments)], stdout=file, check=True)
        return self.path(name)

    def run_plan(self, *arguments, status=0, stdin=None):
        result = subprocess.run([BFCPLAN, *map(str, arguments)], stdin=stdin, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, check=False, timeout=100)
        self.assertEqual(result.returncode, status, result.stderr)
        if status in (1, 2):
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        return result

    def solve(self, path, *arguments, align=512, status=0):
        """Solves, checks the plan with bfcplan and here; returns the report and offsets by id."""
        plan, out = self.path("out.plan"), self.path("out.csv")
        result = self.run_plan("solve", path, "-o", plan, "--offsets", out, "--json", "--align",
                               align, "--time-limit", "5", *arguments, status=status)
        report = json.loads(result.stdout)
        self.run_plan("check", plan, path)
        placed = {row["id"]: int(row["offset"]) for row in read(out)}
        rows = read(path)
        self.assertEqual([row["id"] for row in read(out)], [row["id"] for row in rows])
        self.no_overlaps(rows, placed, align)
        spaces = {}
        for row in rows:
            end = placed[row["id"]] + up(int(row["size"]), align) if int(row["size"]) else 0
            space = row.get("space")
            spaces[space] = max(spaces.get(space, 0), end)
        self.assertEqual(report["peak"], sum(spaces.values()))
        self.assertEqual(report["buffers"], len(rows))
        self.assertGreaterEqual(report["peak"], report["lower_bound"])
        return report, placed

    def no_overlaps(self, rows, placed, align):
        """By sweeping over births with the rows alive; aliases may overlap."""
        root = {row["id"]: row["id"] for row in rows}

        def find(name):
            while root[name] != name:
                name = root[name]
            return name

        for row in rows:
            if row.get("alias"):
                root[find(row["id"])] = find(row["alias"])
        alive = []
        for row in sorted(rows, key=lambda r: int(r["lower"])):
            birth, death, size = int(row["lower"]), int(row["upper"]), int(row["size"])
            low = placed[row["id"]]
            self.assertEqual(low % align, 0)
            alive = [other for other in alive if other[0] > birth]
            for _, other_low, other_high, other, space in alive:
                if size and other_high > other_low and space == row.get("space") \
                        and find(other) != find(row["id"]):
                    self.assertFalse(low < other_high and other_low < low + size,
                                     (row["id"], other))
            alive.append((death, low, low + size, row["id"], row.get("space")))


def lifetimes(count, seed, most=10000):
    draw = random.Random(seed)
    lines = ["id,lower,upper,size"]
    for i in range(count):
        birth = draw.randrange(10 * count)
        lines.append(f"{i},{birth},{birth + 1 + draw.randrange(100)},{draw.randrange(most)}")
    return "\n".join(lines) + "\n"


class Solve(Case):
    def test_minimalloc_example_packs_into_twelve(self):
        report, _ = self.solve(os.path.join(EXAMPLES, "minimalloc-input.12.csv"), "--capacity", 12,
                               align=1)
        self.assertEqual(report["peak"], 12)
        self.assertEqual(report["lower_bound"], 12)

    def test_random_lifetimes(self):
        for seed in range(5):
            path = self.write("a.csv", lifetimes(200, seed))
            report, _ = self.solve(path, align=[1, 8, 512, 7, 4096][seed])
            self.assertLess(report["ratio"], 1.3)

    def test_cut_rectangle_is_put_together_again(self):
        path = self.generate("a.csv", "cut", 60, 3)
        report, _ = self.solve(path, "--capacity", 1 << 20, "--time-limit", 60, align=1)
        self.assertLessEqual(report["peak"], 1 << 20)

    def test_training_like_lifetimes(self):
        report, _ = self.solve(self.generate("a.csv", "train", 5000, 2))
        self.assertLessEqual(report["ratio"], 1.01)

    def test_no_rows_and_zero_sizes(self):
        report, _ = self.solve(self.write("a.csv", "id,lower,upper,size\n"))
        self.assertEqual((report["peak"], report["ratio"]), (0, 1))
        report, _ = self.solve(self.write("a.csv", "id,lower,upper,size\na,0,1,0\nb,0,2,512\n"))
        self.assertEqual(report["peak"], 512)

    def test_sizes_and_times_up_to_two_to_the_63(self):
        most = 1 << 63
        report, _ = self.solve(self.write("a.csv", "upper,size,id,lower\n"
                                          f"{most},{most - 512},a,{most - 10}\n"
                                          f"{most - 10},{most},b,0\n{most},512,c,{most - 1}\n"
                                          f"0,1,d,-{most - 1}\n"))
        self.assertEqual(report["peak"], most)
        result = self.run_plan("solve", self.write("b.csv", "id,lower,upper,size\n"
                                                   f"a,0,2,{most}\nb,1,3,1\n"),
                               "-o", self.path("p"), status=1)
        self.assertIn("row 2 (line 3)", result.stderr)
        self.assertIn("2^63", result.stderr)

    def test_sizes_too_fine_for_the_search(self):
        """The search counts in 2^29 units at most; sizes without a common divisor need more."""
        rows = read(self.generate("coarse.csv", "cut", 300, 5))
        lines = [f"{i},{row['lower']},{row['upper']},{(int(row['size']) << 22) + i % 7}"
                 for i, row in enumerate(rows)]
        path = self.write("a.csv", "id,lower,upper,size\n" + "\n".join(lines) + "\n")
        report, _ = self.solve(path, "--time-limit", 1, align=1)
        self.assertLess(report["ratio"], 1.3)

    def test_capacity_that_cannot_be_met(self):
        path = self.write("a.csv", "id,lower,upper,size\na,0,2,512\nb,1,3,512\n")
        result = self.run_plan("solve", path, "-o", self.path("p"), "--capacity", 1023, status=3)
        self.assertIn("1024", result.stderr)
        self.assertFalse(os.path.exists(self.path("p")))

    def test_quotes_line_ends_and_column_order(self):
        path = self.write("a.csv", '\ufeffsize, upper ,lower,id\r\n\r\n 4, 2 ,0,"a,""b"\r\n4,2,0,c')
        self.run_plan("solve", path, "-o", self.path("p"), "--offsets", self.path("o"), "--align", 1)
        self.assertEqual([row["id"] for row in read(self.path("o"))], ['a,"b', "c"])

    def test_interrupt_keeps_the_best_so_far(self):
        path = self.generate("a.csv", "cut", 2000, 5)
        job = subprocess.Popen([BFCPLAN, "solve", path, "-o", self.path("p"), "--json", "--align",
                                "1", "--time-limit", "90"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        time.sleep(2)
        job.send_signal(signal.SIGINT)
        out, told = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 0)
        self.assertRegex(told, r"^bfcplan: interrupted: [^\r\n]*\n$")
        self.assertLess(json.loads(out)["seconds"], 60)
        self.run_plan("check", self.path("p"), path)

    def on_terminal(self, *arguments):
        """A job whose standard error is a terminal; the terminal's other end."""
        here, there = pty.openpty()
        job = subprocess.Popen([BFCPLAN, *map(str, arguments)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=there)
        os.close(there)
        self.addCleanup(os.close, here)
        return job, here

    @staticmethod
    def read_until(here, wanted):
        shown = b""
        while wanted not in shown:
            try:
                more = os.read(here, 4096)
            except OSError:
                more = b""
            if not more:
                break
            shown += more
        return shown.decode()

    def test_progress_and_interrupt_on_a_terminal(self):
        path = self.generate("a.csv", "cut", 2000, 5)
        job, here = self.on_terminal("solve", path, "-o", self.path("p"), "--align", "1",
                                     "--time-limit", "90")
        self.assertRegex(self.read_until(here, b"peak"), r"step 3 of 5, packing: \d+ %, \d+ s left")
        job.send_signal(signal.SIGINT)
        self.assertIn("interrupted: the best plan so far is checked and written",
                      self.read_until(here, b"without it"))
        out, _ = job.communicate(timeout=60)
        self.assertIn(b"interrupted", out)
        self.assertEqual(job.returncode, 0)
        self.run_plan("check", self.path("p"), path)

    def test_every_command_shows_progress_and_obeys_an_interrupt(self):
        plan, out = self.path("p"), self.path("out")
        self.run_plan("solve", self.write("a.csv", lifetimes(30, 1)), "-o", plan)
        for steps, *arguments in ((2, "check", plan, "-"), (5, "plot", "-", "-o", out),
                                  (2, "period", "-"), (3, "lifetimes", "-", "-o", out)):
            with self.subTest(arguments[0]):
                job, here = self.on_terminal(*arguments)  # reads what does not come
                self.assertIn(f"step 1 of {steps}, reading: 0 %", self.read_until(here, b" %"))
                job.send_signal(signal.SIGINT)
                self.assertIn("interrupted: nothing was written", self.read_until(here, b"written"))
                self.assertEqual(job.wait(timeout=60), -signal.SIGINT)
                job.communicate()
                self.assertEqual(sorted(os.listdir(self.folder.name)), ["a.csv", "p"])

    def test_interrupt_before_there_is_a_plan(self):
        job, here = self.on_terminal("solve", "-", "-o", self.path("p"))
        job.stdin.write(b"id,lower,upper,size\n")
        job.stdin.flush()
        self.wait_until_caught(job)
        job.send_signal(signal.SIGINT)
        self.assertIn("nothing was written", self.read_until(here, b"written"))
        self.assertEqual(job.wait(timeout=60), -signal.SIGINT)
        job.communicate()
        self.assertEqual(os.listdir(self.folder.name), [])

    @staticmethod
    def wait_until_caught(job):
        caught = 0
        while not caught & 1 << (signal.SIGINT - 1):
            with open(f"/proc/{job.pid}/status", encoding="ascii") as file:
                caught = int(next(line for line in file if line.startswith("SigCgt")).split()[1], 16)

    def interrupt(self, seconds, *arguments):
        """Exit status, and what was told, of a job that is interrupted after so many seconds."""
        job = subprocess.Popen([BFCPLAN, *map(str, arguments)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        self.wait_until_caught(job)
        time.sleep(seconds)
        job.send_signal(signal.SIGINT)
        _, told = job.communicate(timeout=500)
        return job.returncode, told

    def test_interrupt_in_every_step(self):
        """With ROWS=10000000 by hand: the same at size, in some minutes."""
        path, plan = self.generate("a.csv", "train", os.environ.get("ROWS", 50000), 1), self.path("p")
        started = time.monotonic()
        self.run_plan("solve", path, "-o", plan)
        whole = time.monotonic() - started
        for command in (("solve", path, "-o", self.path("new")), ("check", plan, path)):
            for share in (0, 0.2, 0.5, 0.7, 0.9):
                with self.subTest(command=command[0], share=share):
                    status, told = self.interrupt(whole * share, *command)
                    self.assertIn(status, (0, -signal.SIGINT))
                    if status != 0:
                        self.assertRegex(told, r"^bfcplan: interrupted[^\n]*nothing was written\n$")
                    elif command[0] == "solve":
                        os.remove(self.path("new"))  # whole: it may have been over by then
                    self.assertEqual(sorted(os.listdir(self.folder.name)), ["a.csv", "p"])

    @unittest.skipUnless(shutil.which("strace"), "strace is not installed")
    def test_interrupt_when_an_output_has_just_been_made(self):
        """The system call that makes it returns late: the interrupt comes before the program knows of its file."""
        for _ in range(20):  # a busy machine may look too late
            job = subprocess.Popen(
                ["strace", "-f", "-o", "/dev/null", "-e", "trace=openat", "-e", "inject=openat:delay_exit=50000",
                 "sh", "-c", 'echo $$ && exec "$@"', "sh", BFCPLAN, "lifetimes",
                 os.path.join(EXAMPLES, "network.json"), "-o", self.path("new")],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            pid = job.stdout.readline()
            if not pid:
                self.skipTest(f"strace: {job.communicate()[1]}")
            while not os.listdir(self.folder.name) and job.poll() is None:
                time.sleep(0.001)
            interrupted = job.poll() is None
            if interrupted:
                os.kill(int(pid), signal.SIGINT)
            told = job.communicate(timeout=60)[1]
            if os.path.exists(self.path("new")):  # too late
                os.remove(self.path("new"))
                interrupted = False
            self.assertEqual(os.listdir(self.folder.name), [])
            if interrupted:
                break
        self.assertRegex(told, r"^bfcplan: interrupted: nothing was written\n$")

    def test_errors_leave_the_old_plan(self):
        plan = self.write("p", "old")
        self.run_plan("solve", self.write("a.csv", "id,lower\n"), "-o", plan, status=1)
        with open(plan, encoding="utf-8") as file:
            self.assertEqual(file.read(), "old")

    def test_progress_only_on_a_terminal(self):
        path = self.write("a.csv", lifetimes(300, 1))
        result = self.run_plan("solve", path, "-o", self.path("p"), "--time-limit", 2)
        self.assertEqual(result.stderr, "")

    def test_large_and_deeply_nested(self):
        count = 30000
        rows = [f"{i},{i},{2 * count - i},{512 * (1 + i % 5)}" for i in range(count)]
        path = self.write("a.csv", "id,lower,upper,size\n" + "\n".join(rows) + "\n")
        plan = self.path("p")
        report = json.loads(self.run_plan("solve", path, "-o", plan, "--json").stdout)
        self.assertEqual(report["ratio"], 1)
        self.run_plan("check", plan, path)


class Constraints(Case):
    def test_alias_shares_memory(self):
        path = self.write("a.csv", "id,lower,upper,size,alias\na,0,5,1024,\nb,5,9,512,a\n"
                          "c,2,9,512,\nd,5,9,512,\ne,8,12,2048,b\n")
        report, placed = self.solve(path)
        self.assertEqual(placed["a"], placed["b"])
        self.assertEqual(placed["b"], placed["e"])
        self.assertEqual(report["lower_bound"], 3072)

    def test_alias_leaves_its_gap_to_others(self):
        path = self.write("a.csv", "id,lower,upper,size,alias\na,0,5,512,\nb,10,15,512,a\n"
                          "c,5,10,512,\n")
        report, _ = self.solve(path)
        self.assertEqual(report["peak"], 512)

    def test_group_is_contiguous_in_row_order(self):
        draw = random.Random(1)
        lines = ["id,lower,upper,size,group"]
        for i in range(60):
            birth = draw.randrange(50)
            lines.append(f"{i},{birth},{birth + 1 + draw.randrange(20)},{draw.randrange(1, 5000)},"
                         + (f"g{i % 4}" if i % 3 == 0 else ""))
        path = self.write("a.csv", "\n".join(lines) + "\n")
        _, placed = self.solve(path)
        rows = read(path)
        for group in ("g0", "g1", "g2", "g3"):
            members = [row for row in rows if row["group"] == group]
            for one, two in zip(members, members[1:]):
                self.assertEqual(placed[two["id"]], placed[one["id"]] + up(int(one["size"]), 512))

    def test_spaces_are_apart(self):
        path = self.write("a.csv", "id,lower,upper,size,space\na,0,5,1024,hbm\nb,0,5,512,vmem\n"
                          "c,0,5,512,hbm\n")
        report, placed = self.solve(path)
        self.assertEqual(placed["b"], 0)
        self.assertEqual(report["lower_bound"], 2048)
        self.assertEqual([s["peak"] for s in report["spaces"]], [1536, 512])

    def test_pinned_offsets_are_kept_and_filled_around(self):
        path = self.write("a.csv", "id,lower,upper,size,offset\na,0,5,1024,1024\nb,0,5,1024,\n"
                          "c,1,4,512,2048\nd,2,9,512,\ne,5,9,4096,\n")
        report, placed = self.solve(path)
        self.assertEqual((placed["a"], placed["c"]), (1024, 2048))
        self.assertEqual(placed["b"], 0)
        self.assertLessEqual(report["peak"], 4608)

    def test_streams_wait_for_the_gap(self):
        text = "id,lower,upper,size,stream\na,0,5,512,0\nb,{0},9,512,1\nc,5,9,512,0\n"
        path = self.write("a.csv", text.format(5))
        _, placed = self.solve(path)
        self.assertNotEqual(placed["a"], placed["b"])
        _, placed = self.solve(self.write("a.csv", text.format(7)), "--stream-gap", 1)
        self.assertEqual(placed["a"] in (placed["b"], placed["c"]), True)
        for birth in (7, 8):
            path = self.write("a.csv", f"id,lower,upper,size,stream\na,0,5,512,0\n"
                              f"b,{birth},9,512,1\n")
            report, _ = self.solve(path, "--stream-gap", 2)
            self.assertEqual(report["peak"], 512 if birth > 7 else 1024)

    def test_everything_together(self):
        draw = random.Random(4)
        lines = ["id,lower,upper,size,alias,group,space,stream,offset"]
        for i in range(150):
            birth = draw.randrange(200)
            space = i % 2
            alias = i - 10 if i >= 10 and i % 7 == 0 else ""
            group = f"g{space}" if i in (20, 22, 24, 31, 33) else ""
            pin = 512 * i if i in (1, 2) else ""
            lines.append(f"{i},{birth},{birth + 1 + draw.randrange(40)},{draw.randrange(3000)},"
                         f"{alias},{group},{space},0,{pin}")
        self.solve(self.write("a.csv", "\n".join(lines) + "\n"))

    def test_contradictions_are_named(self):
        head = "id,lower,upper,size,alias,group,space,offset\n"
        for text, words in (
                ("a,0,5,8,b,,,\n", ["row 1 (line 2)", "alias 'b'"]),
                ("a,0,5,8,,,x,\nb,0,5,8,a,,y,\n", ["row 2", "space"]),
                ("a,0,5,8,,g,,\nb,0,5,8,a,h,,\n", ["row 2", "group"]),
                ("a,0,5,8,,,,3\n", ["row 1", "multiple of 512"]),
                ("a,0,5,8,,,,0\nb,4,6,8,,,,0\n", ["row 1", "row 2", "overlap"]),
                ("a,0,5,8,,g,,512\nb,4,6,8,,g,,0\n", ["row 2", "offset 0"])):
            result = self.run_plan("solve", self.write("a.csv", head + text), "-o", self.path("p"),
                                   status=1)
            for word in words:
                self.assertIn(word, result.stderr)


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
    sys.exit(unittest.main())
