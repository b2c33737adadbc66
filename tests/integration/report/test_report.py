#!/usr/bin/env python3
"""The report's page in a browser: its numbers are the trace's, the recording's, the job's.

Needs BFCREPLAY, BFCSTAT, LIBRARY and SIM_DIR in the environment. Without chromium the page is made and not
looked at."""

import csv
import json
import os
import random
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
MIB = 1 << 20


class Report(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="bfc report ")
        self.addCleanup(shutil.rmtree, self.folder)
        self.trace, self.page = (os.path.join(self.folder, name) for name in ("trace.csv", "page.html"))

    def write(self, rows):
        with open(self.trace, "w", encoding="utf-8") as file:
            file.write("id,lower,upper,size\n" + "".join(f"r{i},{a},{b},{n}\n" for i, (a, b, n) in enumerate(rows)))

    def replay(self, *arguments):
        return json.loads(run(BFCREPLAY, self.trace, "--json", "--report", self.page, *arguments))

    def look(self, moment=None):
        if not BROWSER:
            self.skipTest("chromium is not installed: the page is not looked at")
        page = Page(self.folder, self.page, "" if moment is None else f"#at={moment}")
        for trouble in ("NaN", "Infinity", "undefined"):
            self.assertNotIn(trouble, page.words())
        return page

    def test_numbers_are_the_trace_s(self):
        draw = random.Random(4)
        self.write([(at := draw.randrange(2000), at + draw.randrange(1, 300), draw.randrange(1, 1 << draw.randrange(10, 25)))
                    for _ in range(500)])
        events = os.path.join(self.folder, "events.csv")
        figures = self.replay("--memory=80M", "--growth=exact", "--events", events)
        self.assertGreater(figures["failed"], 0)
        page = self.look()
        self.assertEqual(page.figure("most live"), figures["peak_live"])
        self.assertEqual(page.figure("most reserved"), figures["peak_reserved"])
        self.assertEqual(page.figure("allocations"), figures["pairs"])
        self.assertEqual(page.figure("out of memory"), figures["failed"])
        self.assertIn(f"({figures['peak_live']:,} bytes) asked for by live blocks at call", page.words())
        with open(events, newline="", encoding="utf-8") as file:
            lost = next(row for row in csv.DictReader(file) if row["op"] == "fail")
        self.assertIn(f"out of memory row {lost['id'][1:]}", page.words())

    def test_a_full_disk_is_named(self):
        self.write([(i, i + 30, 16 * MIB) for i in range(400)])
        done = subprocess.run([BFCREPLAY, self.trace, "--report", "/dev/full"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("bfcreplay: /dev/full: cannot be written: No space left on device\n", done.stderr)

    def test_fill_is_true_and_nothing_is_left_out(self):
        """400 regions, each half free in holes of 256 KiB."""
        blocks = 400 * 8
        self.write([(i, 10000 + i if i % 2 else 5000 + i, 256 << 10) for i in range(blocks)])
        figures = self.replay("--growth=fixed", "--set", "BFC_GROWTH_SIZE=2M", "--set", "BFC_GROWTH_MAX=2M")
        self.assertEqual(figures["peak_reserved"], 800 * MIB)
        half_freed = blocks + blocks // 2
        page = self.look(half_freed - 1)
        self.assertEqual((page.drawn("used"), page.drawn("total")), (400 * MIB, 800 * MIB))
        self.assertRegex(page.words(), r"400 regions, 800 MiB; in use 400 MiB, 50\.0 %; 1,600 free pieces, the largest 256 KiB; fragmentation 0\.0 %")

    def test_each_column_of_pixels_has_the_most_of_its_calls(self):
        """300 times up to 400 MiB and down again, twelve calls to a pixel: every peak is seen."""
        self.write([(40 * n + i, 40 * n + 39 - i, 20 * MIB) for n in range(300) for i in range(20)])
        self.replay()
        if not BROWSER:
            self.skipTest("chromium is not installed: the page is not looked at")
        page = Page(self.folder, self.page, "", """
            const chart = chartOf("memory over time"), {left, top, width, height} = chart.bbox, {min, max} = chart.scales.y;
            const {data} = chart.ctx.getImageData(left, top, width, height), isLive = i => data[i + 2] - data[i] > 50;
            const topOf = column => { for (let y = 0; y < height; y++) if (isLive(4 * (y * width + column))) return max - (max - min) * y / height; return 0; };
            const legend = chart.root.querySelector(".u-legend"), box = chart.over.getBoundingClientRect();
            for (const kind of ["mouseenter", "mousemove"]) chart.over.dispatchEvent(new MouseEvent(kind, {clientX: box.left + 300, clientY: box.top + 50}));
            return {tops: Array.from({length: width}, (_, column) => topOf(column)), pixel: (max - min) / height, legend: legend.textContent};""")
        tops, pixel = page.answer["tops"][8:-8], page.answer["pixel"]  # less the line of the moment
        for first in range(len(tops) - 4):
            self.assertAlmostEqual(max(tops[first:first + 5]), 400 * MIB, delta=pixel)
        self.assertRegex(page.answer["legend"], r"asked for by live blocks[0-9.]+ (MiB|B) to \d+ MiB")

    def test_words_under_the_mouse_stay_in_the_window(self):
        self.write([(i, i + 30, 16 * MIB) for i in range(400)])
        self.replay()
        if not BROWSER:
            self.skipTest("chromium is not installed: the page is not looked at")
        page = Page(self.folder, self.page, "", """
            const frame = document.createElement("iframe");
            frame.style = "width:360px;height:640px";
            frame.srcdoc = pageOf(document.querySelector(".recording"));
            document.body.append(frame);
            await waitFor(() => frame.contentWindow.eval("typeof view === 'object' && view.charts.length"));
            const phone = frame.contentWindow, {over: field} = phone.eval("view.charts[1]"), wide = phone.document.documentElement.clientWidth;
            field.scrollIntoView({block: "end"});
            const box = field.getBoundingClientRect(), tip = field.closest(".chart").querySelector(".tip");
            for (const kind of ["mouseenter", "mousemove"]) field.dispatchEvent(new phone.MouseEvent(kind, {clientX: box.right - 20, clientY: box.bottom - 8}));
            const place = tip.getBoundingClientRect(), controls = [...phone.document.querySelectorAll("button, select")];
            return {words: tip.textContent, inside: place.left >= 0 && place.top >= 0 && place.right <= wide && place.bottom <= phone.innerHeight,
                    page: phone.document.body.scrollWidth <= wide, tables: [...phone.document.querySelectorAll("table, .scroll")].every(one => one.scrollWidth <= wide), charts: phone.eval("view.charts.every(chart => chart.root.offsetWidth <= innerWidth)"),
                    plain: controls.filter(control => phone.getComputedStyle(control).appearance !== "none").length, titles: phone.document.querySelectorAll("body [title]").length};""")
        self.assertIn("16.0 MiB", page.answer.pop("words"))
        self.assertEqual(page.answer, {"inside": True, "page": True, "tables": True, "charts": True, "plain": 0, "titles": 0})

    def test_two_stand_side_by_side_on_the_same_scales(self):
        self.write([(0, 50, 64 * MIB), (10, 20, 32 * MIB)])
        other = os.path.join(self.folder, "other.csv")
        shutil.move(self.trace, other)
        self.write([(i, i + 30, 16 * MIB) for i in range(400)])
        figures = self.replay("--beside", other)
        if not BROWSER:
            self.skipTest("chromium is not installed: the page is not looked at")
        page = Page(self.folder, self.page, "", """
            await pause(100);
            const halves = [...document.querySelectorAll("iframe")].map(frame => frame.contentWindow);
            await waitFor(() => halves.every(half => half.eval("typeof view === 'object' && view.charts.length")));
            const scales = () => halves.map(half => half.eval("view.charts.map(c => [c.scales.x.min, c.scales.x.max, c.scales.y.max])"));
            const titles = halves.map(half => half.document.getElementById("title").textContent), alike = end => new Set(scales().map(([[, last]]) => last).concat(end)).size === 1;
            await waitFor(() => alike(800));
            const whole = scales();
            halves[1].eval("showTime(100, 200)");
            await waitFor(() => alike(200));
            return {titles, whole, zoomed: scales(), tiles: halves.map(half => half.document.querySelector("[data-key='most live']").dataset.value)};""")
        answer = page.answer
        self.assertEqual(answer["titles"], [self.trace, other])
        self.assertEqual(answer["tiles"], [str(figures["peak_live"]), str(96 * MIB)])
        for scales in answer["whole"], answer["zoomed"]:
            self.assertEqual(scales[0], scales[1])
        self.assertEqual(answer["whole"][0][0][:2], [0, 800])
        self.assertEqual(answer["zoomed"][0][0][:2], [100, 200])

    def test_the_page_stands_alone(self):
        os.mkdir(os.path.join(self.folder, "ends<"))
        self.trace = os.path.join(self.folder, "ends<", "script><script>.csv")
        self.write([(0, 5, 1000), (1, 3, 2000)])
        self.replay()
        with open(self.page, encoding="utf-8") as file:
            text = file.read()
        self.assertNotRegex(text, r"(src|href)=|@import|url\(")
        self.assertNotIn("ends<", text)
        self.assertEqual(run(BFCREPLAY, self.trace, "--report", "-"), text)

    @staticmethod
    def samples(path):
        if not os.path.exists(path):
            return 0
        with open(path, encoding="utf-8") as file:
            return file.read().count('"type":"sample"')

    def wait_for_samples(self, path, wanted):
        while self.samples(path) < wanted:
            time.sleep(0.05)

    def start_job(self, **variables):
        environment = dict(os.environ, LD_PRELOAD=LIBRARY, LD_LIBRARY_PATH=SIM_DIR, SIM_MEMORY="1G", BFC_LOG="off",
                           BFC_YIELD="0",  # jobs beside it, of other tests, would be asked again and again
                           **variables)
        job = subprocess.Popen([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "job.py")],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.addCleanup(job.communicate)
        self.assertEqual(job.stdout.readline(), "ready\n")
        return job

    def record_failure(self):
        """The lines of a recording, at intervals of 0.25 s, of a job one of whose allocations fails."""
        job = self.start_job(BFC_RECORD=os.path.join(self.folder, "job.trace"))
        path = os.path.join(self.folder, "run.jsonl")
        recorder = subprocess.Popen([BFCSTAT, "record", str(job.pid), "-o", path], stdout=subprocess.DEVNULL)
        self.wait_for_samples(path, 2)
        job.stdin.write("fail\n")
        job.stdin.flush()
        size = int(job.stdout.readline())
        self.wait_for_samples(path, self.samples(path) + 2)
        recorder.send_signal(signal.SIGINT)
        self.assertEqual(recorder.wait(), 0)
        run(BFCSTAT, "report", path, "-o", self.page)
        job.communicate()
        with open(path, encoding="utf-8") as file:
            return size, [json.loads(line) for line in file]

    def test_addresses_that_no_page_has_reached_are_not_drawn(self):
        """A pool with pages has many times the addresses that it has used: the picture ends where bfcstat's map does."""
        job = self.start_job(BFC_BACKING="pages")
        run(BFCSTAT, "report", str(job.pid), "-o", self.page)
        self.assertRegex(self.look().words(), r"1 region, 3\d\d MiB; in use 300 MiB, 9\d\.\d %; exact")

    def test_calls_before_a_failure_in_the_middle_of_a_recording(self):
        size, lines = self.record_failure()
        (failure,) = (line for line in lines if line["type"] == "events")
        *calls, last = failure["events"]
        (landmark,) = failure["of"]
        self.assertEqual((failure["missed"], last["kind"], last["bytes"]), (False, "out_of_memory", 900 * MIB))
        self.assertEqual((landmark["us"], landmark["bytes"]), (last["us"], last["bytes"]))
        self.assertEqual(len(calls), 256)
        own = [e for e in calls if e["kind"] in ("allocate", "free")]
        self.assertEqual([e["bytes"] for e in own if e["kind"] == "allocate"][-100:], list(range(size - 99, size + 1)))
        samples = [line for line in lines if line["type"] == "sample"]
        self.assertLess(samples[0]["us"], last["us"])  # one clock
        self.assertLess(last["us"], samples[-1]["us"])
        traced = run(BFCREPLAY, os.path.join(self.folder, "job.trace"), "--report", "-")
        self.assertEqual([int(n) for n in re.findall(r'\["O",\d+,0,0,(\d+)\]', traced)], [900 * MIB])
        page = self.look()
        peak = samples[-1]["pools"][0]["peak_in_use"]
        self.assertEqual((page.figure("most in use"), page.figure("out of memory")), (peak, 1))
        self.assertIn(f"{last['us'] / 1e6:.6f} s: 900 MiB asked for", page.words())
        self.assertIn("The 256 calls before it, the last first:", page.words())
        self.assertNotIn("(before the recording) 900 MiB", page.words())


if __name__ == "__main__":
    unittest.main(verbosity=1)
