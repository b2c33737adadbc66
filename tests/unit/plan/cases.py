"""What tests of bfcplan share: runs of it, and a validator of plans of its own. BFCPLAN and GENERATE name the programs."""

import csv
import json
import os
import random
import subprocess
import tempfile
import unittest

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
