#!/usr/bin/env python3
"""What the text of an out of memory names and advises, and that the advice holds, over the stand-in device of
256 MiB that several processes share.

Needs what jobs.py needs and MINUTES in the environment.
"""
import os
import subprocess
import sys
import unittest

from jobs import BFCSTAT, Job, JobsTest

MINUTES = os.environ["MINUTES"]


class Text(JobsTest):
    def test_the_limit_is_named_and_the_advice_holds(self):
        actions = ("alloc", 90, "alloc", 20)
        job = self.start(*actions, BFC_LIMIT="100M")
        self.assertEqual(job.results(), ["0", "2"])
        self.assertIn("  refused by   BFC_LIMIT: it is 100 MiB, and this process has 90.0 MiB of it reserved\n", job.said())
        self.assertNotIn("free by the driver", job.said())
        self.assertIn("  try          a higher BFC_LIMIT: with 110M this request would have fitted\n", job.said())
        self.assertEqual(self.start(*actions, BFC_LIMIT="110M").results(), ["0", "0"])

    def test_the_limit_is_named_where_the_policy_takes_more_than_is_wanted(self):
        """Regions of 20 MiB: the third block is within the limit, its region is not."""
        actions = ("alloc", 9, "alloc", 9, "alloc", 9)
        settings = {"BFC_POLICY": "pytorch", "BFC_GROWTH": "double"}
        job = self.start(*actions, BFC_LIMIT="30M", **settings)
        self.assertEqual(job.results(), ["0", "0", "2"])
        self.assertIn("  refused by   BFC_LIMIT: it is 30.0 MiB, and this process has 20.0 MiB of it reserved\n", job.said())
        self.assertIn("  try          a higher BFC_LIMIT: with 40M this request would have fitted\n", job.said())
        self.assertEqual(self.start(*actions, BFC_LIMIT="40M", **settings).results(), ["0", "0", "0"])

    def test_other_jobs_are_not_asked_where_the_region_exceeds_the_limit(self):
        other = self.start("alloc", 60, "free", "wait")
        other.until_ready()
        job = self.start("alloc", 9, "alloc", 9, "alloc", 9, "wait",
                         BFC_LIMIT="30M", BFC_POLICY="pytorch", BFC_GROWTH="double")
        self.assertEqual(job.until_ready(), ["0", "0", "2"])
        self.assertGreater(other.pool()["reserved"], 0)

    def test_the_advised_limit_counts_on_free_pages(self):
        """Of 90 MiB reserved 50 are free in whole pages, which move: 16 of the 66 are lacking."""
        actions = ("alloc", 40, "alloc", 50, "free", "alloc", 65)
        job = self.start(*actions, BFC_LIMIT="100M", BFC_BACKING="pages")
        self.assertEqual(job.results(), ["0", "0", "2"])
        self.assertIn("  try          a higher BFC_LIMIT: with 106M this request would have fitted\n", job.said())
        self.assertEqual(self.start(*actions, BFC_LIMIT="106M", BFC_BACKING="pages").results(), ["0", "0", "0"])

    def test_the_reserve_is_named_and_the_advice_holds(self):
        job = self.start("alloc", 200, BFC_RESERVE="100M")
        self.assertEqual(job.results(), ["2"])
        self.assertIn("  refused by   BFC_RESERVE: 100 MiB are left to others, and 256 MiB are free on the device\n", job.said())
        self.assertIn("  try          a lower BFC_RESERVE: with 56M this request would have fitted\n", job.said())
        self.assertEqual(self.start("alloc", 200, BFC_RESERVE="56M").results(), ["0"])

    def test_waiting_is_suggested_only_where_it_would_help(self):
        holder = self.holder(160)
        said = [self.start("alloc", mib) for mib in (200, 300)]
        for job in said:
            self.assertEqual(job.results(), ["2"])
        self.assertIn("BFC_WAIT=SECONDS: this request would fit once", said[0].said())
        self.assertNotIn("BFC_WAIT", said[1].said())
        self.assertIn("  refused by   the size of the device: 256 MiB in all\n", said[1].said())
        self.assertRegex(said[0].said(), rf"  beside it +process {holder.pid} .*: 160 MiB in use, 0 B cached\n")

    GAPS = ("alloc", 60, "free", "alloc", 20) + ("alloc", 60, "free", "alloc", 45) * 3 + ("alloc", 60)

    def test_the_end_of_a_context_is_named_and_nothing_suggested(self):
        """Another thread's, while one waits: the driver tells no figures then."""
        self.holder(200)
        job = self.start("beside", 150, "wait", "reset", "wait", BFC_WAIT="90")
        job.until_ready()
        job.until_waiting()
        job.go_on()
        job.process.wait(timeout=100)
        said = job.said()
        self.assertRegex(said, r"(?m)^  refused by   the end of the context or of the process$")
        self.assertRegex(said, r"(?m)^  waited .* until the context or the process was about to end$")
        self.assertNotRegex(said, r"(?m)^  try ")

    def test_larger_regions_are_suggested_and_the_advice_holds(self):
        """For what has an effect with the growth in force."""
        for growth, advice in (("exact", {"BFC_GROWTH": "double", "BFC_GROWTH_SIZE": "1G"}),
                               ("double", {"BFC_GROWTH": "double", "BFC_GROWTH_SIZE": "1G"}),
                               ("fixed", {"BFC_GROWTH": "fixed", "BFC_GROWTH_SIZE": "1G"})):
            with self.subTest(growth=growth):
                job = self.start(*self.GAPS, BFC_GROWTH=growth)
                self.assertEqual(job.results()[-1], "2")
                text = " ".join(f"{name}={value}" for name, value in advice.items() if value != growth)
                self.assertIn(f"  try          {text}: in one piece the 85.0 MiB cached and the 16.0 MiB that could be "
                              "taken would have sufficed", job.said())
                again = self.start(*self.GAPS, **advice)
                self.assertEqual(set(again.results()), {"0"})

    def test_no_room_is_not_named_where_larger_regions_are_suggested(self):
        said = self.failed(*self.GAPS, BFC_GROWTH="exact", BFC_LIMIT="240M").said()
        self.assertIn("BFC_GROWTH_SIZE=1G: in one piece the 85.0 MiB cached would have sufficed; larger regions keep it "
                      "together\n", said)

    def test_larger_regions_are_not_suggested_where_they_are_as_large(self):
        job = self.start(*self.GAPS[:-1], "alloc", 101, BFC_GROWTH="double", BFC_GROWTH_SIZE="1G")
        job.results()
        self.assertNotIn("BFC_GROWTH", job.said())

    def test_waiting_is_suggested_and_the_advice_holds(self):
        holder = self.holder(160)
        self.assertIn("BFC_WAIT=SECONDS: this", self.failed("alloc", 200).said())
        again = self.start("alloc", 200, BFC_WAIT="90")
        again.until_waiting()
        holder.go_on()
        self.assertEqual(again.results(), ["0"])

    def test_fewer_processes_are_suggested_and_the_advice_holds(self):
        holder = self.holder(160)
        said = self.failed("alloc", 200, BFC_WAIT="0.1", SIM_MAPS_HOST="0").said()
        self.assertIn("  try          fewer processes on the device: 0 B are in use here\n", said)
        holder.end()
        self.assertEqual(self.start("alloc", 200).results(), ["0"])

    def test_fewer_processes_are_not_suggested_against_its_own_limit(self):
        said = self.failed(*self.GAPS, BFC_LIMIT="240M", BFC_POLICY="pytorch", BFC_GROWTH="double",
                           SIM_MAPS_HOST="0").said()
        self.assertIn("  refused by   BFC_LIMIT", said)
        self.assertIn("  try          a smaller problem: 155 MiB are in use here", said)

    def failed(self, *actions, **settings):
        job = self.start(*actions, **settings)
        self.assertEqual(job.results()[-1], "2")
        return job

    def test_neighbours_that_hold_most_are_listed_and_those_that_hold_nothing_are_not(self):
        empty = self.holder(10)
        empty.go_on()
        empty.until_ready()
        subprocess.run([BFCSTAT, "trim", str(empty.pid)], check=True, capture_output=True)
        holders = [self.holder(mib) for mib in (11, 12, 13, 14, 15, 80)]
        said = self.failed("alloc", 200).said()
        self.assertNotIn(f"process {empty.pid} ", said)
        self.assertRegex(said, rf"(?m)^  beside it +process {holders[-1].pid} .*: 80\.0 MiB in use, 0 B cached$")
        self.assertRegex(said, r"(?m)^  beside it +\d+ more: .* in use, .* cached$")
        self.assertEqual(said.count("  beside it    process "), 4)

    def test_regions_in_the_place_of_pages_are_told_apart(self):
        said = self.failed("alloc", 100, "alloc", 100, "free", "alloc", 20, "alloc", 60, "alloc", 150,
                           BFC_BACKING="pages", SIM_FAIL="cuMemMap@1+:304").said()
        self.assertIn("  pages        0 B cached in whole ones, for any block; 0 B in such as", said)
        self.assertIn("  regions      20.0 MiB cached in some that took the place of pages; largest free 20.0 MiB\n", said)

    def test_spilling_is_suggested_with_the_size_that_suffices(self):
        self.holder(160)
        for actions, spill, enough in ((("alloc", 200), "0", "200M"),
                                       (("alloc", 150, "alloc", 120), "199M", "270M"),
                                       (("alloc", 1, "alloc", 300), "0", "300M")):
            with self.subTest(actions=actions):
                job = self.start(*actions, BFC_SPILL=spill)
                self.assertEqual(job.results()[-1], "2")
                self.assertIn(f"BFC_SPILL={enough}: in host memory, which is slower, this request would have fitted\n", job.said())
                self.assertNotIn("nothing that could be set", job.said())
                self.assertEqual(self.start(*actions, BFC_SPILL=enough).results()[-1], "0")

    def test_spilling_is_not_suggested_where_it_cannot_be_had(self):
        for settings in ({"SIM_MAPS_HOST": "0"}, {"BFC_LAST_RESORT": "pool"}):
            job = self.start("alloc", 300, **settings)
            self.assertEqual(job.results(), ["2"])
            self.assertNotIn("BFC_SPILL", job.said())

    def test_more_than_the_device_counts_too(self):
        job = self.start("alloc", 1, "alloc", 300, "wait")
        self.assertEqual(job.until_ready(), ["0", "2"])
        self.assertEqual(job.pool()["out_of_memory"], 1)

    def test_who_tries_again_and_again_gets_a_line_a_minute(self):
        job = Job(self, [], {}, MINUTES)
        job.process.communicate(timeout=60)
        self.assertEqual(job.process.returncode, 0)
        lines = [line for line in job.said().splitlines() if "out of memory" in line]
        self.assertEqual(len(lines), 4, lines)
        for line in (lines[0], lines[3]):
            self.assertIn("out of memory: 300 MiB asked for", line)
        for line in lines[1:3]:
            self.assertRegex(line, r"^bfcpreload: out of memory again: \d+ times? in the last minute or so, the last for "
                             "300 MiB on device 0$")

    def test_who_probes_for_a_size_is_told_once(self):
        actions = [word for mib in range(400, 300, -1) for word in ("alloc", mib)]
        job = self.start(*actions)
        self.assertEqual(job.results(), ["2"] * 100)
        self.assertEqual(job.said().count("out of memory"), 1)


if __name__ == "__main__":
    sys.exit(unittest.main())
