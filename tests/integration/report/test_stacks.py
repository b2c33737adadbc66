#!/usr/bin/env python3
"""Call stacks in the report: what the page says who holds is what the job allocated, and what bfcstat who says.

Needs BFCREPLAY, BFCSTAT, LIBRARY and SIM_DIR in the environment, and chromium."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from browser import BROWSER, Page, run

BFCREPLAY, BFCSTAT, LIBRARY, SIM_DIR = (os.environ[n] for n in "BFCREPLAY BFCSTAT LIBRARY SIM_DIR".split())
HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
STEPS = 50
KEPT = 300000 * STEPS


def by_function(lines):
    """Bytes of collapsed stacks by the function of the training loop that they are of."""
    held = {}
    for line in lines:
        stack, size = line.rsplit(" ", 1)
        name = re.search(r";(weights|activations|cache) \(", stack)[1]
        held[name] = held.get(name, 0) + int(size)
    return held


@unittest.skipUnless(BROWSER, "chromium is not installed: the page is not looked at")
class Stacks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="bfc report ")
        self.addCleanup(shutil.rmtree, self.folder)
        self.trace, self.page = (os.path.join(self.folder, name) for name in ("job.trace", "page.html"))

    def train(self, stacks, steps=STEPS, **settings):
        """A job that has done its steps, and its PID."""
        environment = dict(os.environ, LD_PRELOAD=LIBRARY, LD_LIBRARY_PATH=SIM_DIR, SIM_MEMORY="2G", BFC_LOG="off",
                           BFC_STACKS=stacks, BFC_RECORD=self.trace, **settings)
        job = subprocess.Popen([sys.executable, os.path.join(HERE, "training.py"), str(steps)],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.addCleanup(job.communicate)
        return job, job.stdout.readline().strip()

    def tell(self, job, line):
        job.stdin.write(line + "\n")
        job.stdin.flush()
        self.assertEqual(job.stdout.readline(), "done\n")

    def look(self, script, place=""):
        page = Page(self.folder, self.page, place, script)
        for trouble in ("NaN", "Infinity", "undefined"):
            self.assertNotIn(trouble, page.words())
        return page

    def trace_page(self, stacks, steps=STEPS):
        job, pid = self.train(stacks, steps)
        collapsed = run(BFCSTAT, "who", "--collapsed", pid).splitlines()
        job.communicate()
        run(BFCREPLAY, self.trace, "--report", self.page)
        return collapsed

    def test_a_trace_with_all_stacks_is_exact(self):
        collapsed = self.trace_page("all")
        page = self.look("""
            setMoment(lastAt);
            const pool = poolOf(0), lines = collapsedLines(heldAt(pool, lastAt)), change = grownBetween(pool, firstAt, lastAt);
            const flame = [...document.querySelectorAll(".flame > div")].map(part => [part.textContent, +part.dataset.bytes]);
            const peak = sum([...heldAt(pool, pool.peakAt).values()].map(held => held.bytes));
            return {lines, flame, peak, most: pool.peak, grown: groupBy(change.grown, "site").map(group => [group.name, group.bytes, group.blocks]),
              words: document.getElementById("stacks").textContent};""")
        answer = page.answer
        self.assertEqual(sorted(answer["lines"]), sorted(collapsed))
        self.assertEqual(by_function(answer["lines"]), {"weights": 128 * MIB, "cache": KEPT})
        self.assertNotIn("ffi", "".join(answer["lines"]), "frames that only bring Python's calls to C")
        self.assertEqual((answer["flame"][0], answer["peak"]), (["all", 128 * MIB + KEPT], answer["most"]))
        self.assertEqual(sorted(size for name, size in answer["flame"] if re.match(r"(weights|cache) \(", name)), [KEPT, 128 * MIB])
        self.assertEqual([group[1:] for group in answer["grown"]], [[128 * MIB, 4], [KEPT, STEPS]])
        self.assertRegex(answer["words"], r"^54 of 54 blocks have a stack, exact\. The figures below come to (\d+ MiB) of \1 asked for\.$")

    def test_blocks_tell_their_stack_under_the_mouse_and_when_clicked(self):
        self.trace_page("all")
        page = self.look("""
            const pool = poolOf(0), at = lastAt - 12, stacked = chartOf("every block, stacked"), map = chartOf("every block");
            const low = await over(stacked, at, 2 ** 20), high = await over(stacked, at, 129 * 2 ** 20);
            await over(stacked, at, 2 ** 20, ["mousedown", "click"]);
            const picked = stacked.root.parentNode.parentNode.querySelector(".picked").textContent;
            const place = layoutOf(0, pool), block = pool.blocks.at(at)[0], there = await over(map, at, place.offset(pool.blocks.address[block]) + 2 ** 20);
            return {low, high, picked, there, most: +stacked.root.parentNode.dataset.most, peak: pool.peak, moment: view.moment, at};""")
        answer = page.answer
        self.assertIn("32.0 MiB (33,554,432 bytes)", answer["low"])
        self.assertRegex(answer["low"], r"weights \(training.py:\d+\)")
        self.assertRegex(answer["high"], r"activations \(training.py:\d+\)")
        self.assertIn("train (training.py:", answer["picked"])
        self.assertRegex(answer["there"], r"weights \(training.py:\d+\)")
        self.assertEqual(answer["most"], answer["peak"])
        self.assertAlmostEqual(answer["moment"], answer["at"], delta=4)

    def test_a_sampled_trace_says_what_it_cannot_know(self):
        collapsed = self.trace_page("sample", 200)
        answer = self.look("""
            return {words: document.getElementById("stacks").textContent, lines: collapsedLines(heldAt(poolOf(0), lastAt))};""").answer
        self.assertRegex(answer["words"], r"^\d+ of \d+ blocks ha(ve|s) a stack; sampled by size")
        told, shown = by_function(collapsed), by_function(answer["lines"])
        self.assertEqual(told.keys(), shown.keys())
        for name, size in told.items():
            self.assertAlmostEqual(shown[name], size, delta=1e-4 * size)  # six digits of each weight

    def test_without_stacks_the_page_says_why(self):
        job, pid = self.train("off")
        run(BFCSTAT, "report", pid, "-o", self.page)
        self.assertRegex(self.look(None).words(), r"No call stacks: process \d+ has taken none: BFC_STACKS=off\.")
        job.communicate()
        run(BFCREPLAY, self.trace, "--report", self.page)
        self.assertIn("No call stacks: the trace has none", self.look(None).words())

    def test_a_live_report_agrees_with_bfcstat_who(self):
        _, pid = self.train("all")
        run(BFCSTAT, "report", pid, "-o", self.page)
        collapsed = run(BFCSTAT, "who", "--collapsed", pid).splitlines()
        answer = self.look("""
            const pool = poolOf(0), known = pool.blocks.at(lastAt).filter(i => pool.blocks.site[i]);
            return {lines: collapsedLines(heldAt(pool, lastAt)), live: pool.blocks.at(lastAt).length, known: known.length, freed: pool.blocks.site.filter((site, i) => site && pool.blocks.to[i] < Infinity).length,
              texts: known.map(i => blockText(pool, i, Infinity))};""").answer
        self.assertEqual(sorted(answer["lines"]), sorted(collapsed))
        self.assertEqual((answer["known"], answer["freed"]), (answer["live"], 20 * STEPS))
        self.assertTrue(all(re.search(r"(weights|cache) \(training.py", text) for text in answer["texts"]))

    def test_what_the_last_call_left_is_drawn_until_the_end(self):
        job, pid = self.train("all")
        time.sleep(0.05)  # the last calls are drawn up to a tick of the clock later than they were made
        run(BFCSTAT, "report", pid, "-o", self.page)
        job.communicate()
        answer = self.look("""
            const [at, reserved, live] = callsData(poolOf(0)), last = at.length - 1;
            return {end: at[last] === toAxis(lastAt), live: live[last], same: live[last] === live[last - 1] && reserved[last] === reserved[last - 1]};
            """).answer
        self.assertEqual(answer, {"end": True, "live": 128 * MIB + KEPT, "same": True})

    def test_growth_in_a_recording_is_between_its_moments(self):
        job, pid = self.train("all")
        path = os.path.join(self.folder, "run.jsonl")
        recorder = subprocess.Popen([BFCSTAT, "record", pid, "-o", path, "--interval=0.1"], stdout=subprocess.DEVNULL)
        while not os.path.exists(path) or '"type":"who"' not in open(path, encoding="utf-8").read():
            time.sleep(0.05)
        self.tell(job, "train 20")
        recorder.send_signal(signal.SIGINT)
        self.assertEqual(recorder.wait(), 0)
        run(BFCSTAT, "report", path, "-o", self.page)
        answer = self.look("""
            const {grown, length} = grownBetween(poolOf(0), firstAt, lastAt), row = document.querySelector("#growth tr[data-site]");
            row.click();
            return {grown: groupBy(grown, "site").map(group => [group.name, group.bytes, group.blocks]), length, row: row.textContent, chosen: chosen.site, site: +row.dataset.site};""").answer
        self.assertIsInstance(answer, dict, answer)
        self.assertEqual([group[1:] for group in answer["grown"]], [[128 * MIB, 4], [300000 * 20, 20]])
        self.assertRegex(answer["grown"][1][0], r"^training.py:\d+ ← training.py:\d+")
        self.assertRegex(answer["row"], r"^128 MiB.*/s")
        self.assertEqual(answer["chosen"], answer["site"])

    def test_flame_graph_by_keys_and_search(self):
        self.trace_page("all")
        answer = self.look("""
            const parts = () => [...document.querySelectorAll(".flame > div")], root = parts()[0];
            root.focus(); key("ArrowDown", root); key("ArrowDown", document.activeElement); key("Enter", document.activeElement);
            const zoomed = parts()[0].textContent;
            key("Escape", parts()[0]);
            const search = document.querySelector("input[type=search]");
            key("f"); const focused = document.activeElement === search;
            search.value = "weights"; search.dispatchEvent(new Event("input"));
            return {zoomed, back: parts()[0].textContent, focused, words: search.parentNode.querySelector("span").textContent,
              found: parts().filter(part => part.className === "found").map(part => +part.dataset.bytes)};""").answer
        self.assertRegex(answer["zoomed"], r"^train \(training.py:\d+\)")
        self.assertEqual((answer["back"], answer["focused"]), ("all", True))
        self.assertIn('below "weights": 128 MiB', answer["words"])
        self.assertEqual(set(answer["found"]), {128 * MIB})

    def test_keys_of_the_page(self):
        self.trace_page("all")
        answer = self.look("""
            const dark = isDark(); key("d"); const turned = isDark() !== dark;
            key("?"); const open = help.open, words = help.textContent; key("Escape");
            key("+"); const zoomed = [view.from, view.to]; key("0"); const whole = [view.from, view.to];
            setMoment(10); key("ArrowRight"); const right = view.moment; key("p");
            return {turned, open, closed: !help.open, words, zoomed, whole, right, peak: view.moment === poolOf(0).peakAt, last: lastAt,
              ticks: await pause(300) || view.charts.map(chart => chart.axes[1]._splits)};""").answer
        for what in "turned", "open", "closed", "peak":
            self.assertTrue(answer[what], what)
        self.assertEqual((answer["whole"], answer["right"]), ([0, answer["last"]], 11))
        self.assertEqual(answer["zoomed"], [answer["last"] / 4, answer["last"] * 3 / 4])
        for key in "moment: the peak", "search the flame graph", "dark or light":
            self.assertIn(key, answer["words"])
        for ticks in answer["ticks"]:
            step = ticks[1] - ticks[0]
            self.assertEqual(step, 1 << step.bit_length() - 1, ticks)
            self.assertTrue(all(tick % step == 0 for tick in ticks), ticks)

    def test_400_half_free_regions_of_a_job_that_runs(self):
        job, pid = self.train("off", 0, BFC_GROWTH="fixed", BFC_GROWTH_SIZE="2M", BFC_GROWTH_MAX="2M")
        self.tell(job, "free")
        run(BFCSTAT, "trim", pid)
        self.tell(job, "holes 3200")
        run(BFCSTAT, "report", pid, "-o", self.page)
        page = self.look(None)
        self.assertRegex(page.words(), r"400 regions, 800 MiB; in use 400 MiB, 50\.0 %; exact, as the job told at [\d.]+ s; 1,600 free pieces, the largest 256 KiB; fragmentation 0\.0 %")
        self.assertEqual((page.drawn("used"), page.drawn("total")), (400 * MIB, 800 * MIB))
        path = os.path.join(self.folder, "run.jsonl")
        run(BFCSTAT, "record", pid, "-o", path, "--duration=0.2", "--interval=0.1")
        run(BFCSTAT, "report", path, "-o", self.page)
        words = self.look(None).words()
        self.assertIn("256 regions, 512 MiB; in use 256 MiB, 50.0 %; 144 more regions of the job are not in the map and not drawn", words)

    def test_what_was_before_the_recording_is_not_drawn_at_its_begin(self):
        job, pid = self.train("off")
        self.tell(job, "fail 3000000000")
        self.tell(job, "free")
        run(BFCSTAT, "trim", "--bytes=64M", pid)
        path = os.path.join(self.folder, "run.jsonl")
        run(BFCSTAT, "record", pid, "-o", path, "--duration=0.6", "--interval=0.1")
        run(BFCSTAT, "report", path, "-o", self.page)
        page = self.look("return {failures: failuresOf(0).map(failure => failure.at), first: firstAt, samples: poolOf(0).samples[0].at};")
        self.assertEqual((page.answer["failures"], page.answer["first"]), ([], page.answer["samples"]))
        self.assertIn("1 before the recording began are not shown", page.words())
        self.assertRegex(page.words(), r"trim \(before the recording\) +[\d.]+ MiB +of 64\.0 MiB requested")


if __name__ == "__main__":
    unittest.main(verbosity=1)
