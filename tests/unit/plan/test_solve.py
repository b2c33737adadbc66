#!/usr/bin/env python3
"""bfcplan solve as people use it: plans of rows, and what rows may ask for."""

import json
import os
import random
import unittest

from cases import Case, EXAMPLES, lifetimes, read, up


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

    def test_errors_leave_the_old_plan(self):
        plan = self.write("p", "old")
        self.run_plan("solve", self.write("a.csv", "id,lower\n"), "-o", plan, status=1)
        with open(plan, encoding="utf-8") as file:
            self.assertEqual(file.read(), "old")

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


if __name__ == "__main__":
    unittest.main()
