"""What is told of a job that sleeps: bytes asleep, where the contents are and since when, in every view;
and that memory which is asleep counts nowhere as held on the device.
usage: test_shown.py (LIBCUDA, PRELOAD and BFCSTAT in the environment)"""

import json
import os
import pty
import re
import select
import subprocess
import tempfile
import time
import unittest
import urllib.request

from jobs import BFCSTAT, ON, Job, main

FILLED = "a = allocate(64*MIB); fill(a, 7, 64*MIB); synchronize()"
ASLEEP = 64 << 20
HAS_SERVE = "built without" not in subprocess.run([BFCSTAT, "serve", "--listen=nowhere"], capture_output=True, text=True).stderr


def shown(*arguments, **more):
    return subprocess.run([BFCSTAT, *arguments], capture_output=True, text=True, timeout=60, check=True, **more).stdout


class Shown(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.job = Job(self, {**ON, "BFC_SLEEP_TO": self.folder})
        self.job.do(FILLED)

    def pid(self):
        return str(self.job.pid)

    def row(self):
        return next(line for line in shown().splitlines() if line.split()[0] == self.pid())

    def test_list(self):
        self.assertRegex(self.row(), r"64\.0 MiB +2\.00 MiB +66\.0 MiB +none .*python")
        self.job.fall_asleep()
        self.assertRegex(self.row(), rf"64\.0 MiB +0 B +0 B +none .* asleep for [\d.]+ \w+, 64\.0 MiB in {self.folder}: python")
        self.job.do("read(a, 1)")
        self.assertRegex(self.row(), r"64\.0 MiB +0 B +64\.0 MiB +none .*python")
        self.assertNotIn("asleep", self.row())

    def test_job(self):
        self.job.fall_asleep()
        text = shown(self.pid())
        self.assertRegex(text, rf"sleep +asleep for [\d.]+ \w+: 64\.0 MiB are in {self.folder}, 0 B stay")
        self.assertRegex(text, r"\n +fell asleep 1 time, the last in [\d.]+ \w+\n")
        self.assertRegex(text, r"in use +64\.0 MiB")
        self.assertRegex(text, r"reserved +0 B   \(most 66\.0 MiB\) in 1 region\n +asleep +64\.0 MiB   not on the device\n")
        self.assertRegex(text, r"\n +[\d.]+ \w+  asleep +64\.0 MiB  after [\d.]+ \w+\n")
        self.job.do("read(a, 1)")
        text = shown(self.pid())
        self.assertNotIn("not on the device", text)
        self.assertRegex(text, r"\n +fell asleep 1 time, the last in [\d.]+ \w+; woke 1 time, the last in [\d.]+ \w+\n")
        self.assertRegex(text, r"\n +[\d.]+ \w+  awake +64\.0 MiB  after [\d.]+ \w+\n")

    def test_json(self):
        before = time.time_ns()
        self.job.fall_asleep()
        after = time.time_ns()
        told = self.job.shown()
        sleep, (pool,) = told["sleep"], told["pools"]
        self.assertEqual((sleep["state"], sleep["asleep"], sleep["where"]), ("asleep", ASLEEP, self.folder))
        self.assertTrue(before <= sleep["since_ns"] <= after)
        self.assertEqual((pool["reserved"], pool["pages"]["asleep"], told["totals"]["asleep"]), (ASLEEP, ASLEEP, ASLEEP))

    def check_metrics(self, text):
        mine = {line.partition("{")[0]: line for line in text.splitlines() if f'pid="{self.pid()}"' in line}
        value = {name: float(line.rpartition(" ")[2]) for name, line in mine.items()}
        self.assertEqual((value["bfcpreload_asleep"], value["bfcpreload_asleep_bytes"]), (1, ASLEEP))
        self.assertEqual(value["bfcpreload_reserved_bytes"] - value["bfcpreload_asleep_bytes"], 0)
        self.assertAlmostEqual(value["bfcpreload_asleep_since_seconds"], time.time(), delta=600)
        self.assertIn(f',where="{self.folder}"' + "}", mine["bfcpreload_asleep_contents_bytes"])
        self.assertEqual(value["bfcpreload_asleep_contents_bytes"], ASLEEP)

    def test_metrics(self):
        self.job.fall_asleep()
        self.check_metrics(shown("--prometheus"))
        self.job.do("read(a, 1)")
        lines = [line for line in shown("--prometheus").splitlines() if f'pid="{self.pid()}"' in line]
        self.assertTrue(any(re.fullmatch(r"bfcpreload_asleep_since_seconds{.*} 0", line) for line in lines))
        self.assertFalse(any("asleep_contents" in line for line in lines))

    @unittest.skipUnless(HAS_SERVE, "built without libmicrohttpd")
    def test_served(self):
        self.job.fall_asleep()
        serving = subprocess.Popen([BFCSTAT, "serve", "--listen=localhost:0"], stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (serving.terminate(), serving.wait(), serving.stderr.close()))
        (port,) = re.findall(r":(\d+)/metrics", serving.stderr.readline())
        address = f"http://127.0.0.1:{port}/metrics"
        with urllib.request.urlopen(address, timeout=60) as answer:
            self.check_metrics(answer.read().decode())

    def folder_of_segment(self):
        """A folder with the segment of this job alone, whatever other jobs the machine has."""
        folder = tempfile.TemporaryDirectory(dir="/dev/shm")
        self.addCleanup(folder.cleanup)
        for name in os.listdir("/dev/shm"):
            if name.startswith("bfcpreload.") and name.endswith("." + self.pid()):
                os.link(f"/dev/shm/{name}", f"{folder.name}/{name}")
        return folder.name

    def top(self, columns):
        """What bfcstat top draws first."""
        folder = self.folder_of_segment()
        top, terminal = pty.fork()
        if top == 0:
            os.environ.update(TERM="vt100", COLUMNS=str(columns), LINES="40", LC_ALL="C")
            os.execv(BFCSTAT, [BFCSTAT, "top", f"--directory={folder}"])
        text, until = "", time.monotonic() + 60
        while "q quit" not in text and time.monotonic() < until:
            if select.select([terminal], [], [], 1)[0]:
                text += os.read(terminal, 65536).decode(errors="replace")
        os.write(terminal, b"q")
        os.close(terminal)
        os.waitpid(top, 0)
        return re.sub(r"\x1b\[?[0-9;?]*[A-Za-z()]B?", " ", text)

    def test_top(self):
        self.job.fall_asleep()
        self.assertRegex(self.top(200), rf"{self.pid()} .*64\.0 MiB +0 B +0 B .*asleep for [\d.]+ \w+, 64\.0 MiB in {self.folder}: python")
        narrow = self.top(80)
        self.assertRegex(narrow, rf"{self.pid()} .*asleep: python")
        self.assertRegex(narrow, rf"asleep for [\d.]+ \w+, 64\.0 MiB in {self.folder}")

    def test_report(self):
        self.job.fall_asleep()
        recorded = f"{self.folder}/run.jsonl"
        shown("record", self.pid(), "--duration=0.3", "--interval=0.1", "-o", recorded)
        with open(recorded, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        sample = [line for line in lines if line["type"] == "sample"][-1]
        self.assertEqual((sample["pools"][0]["asleep"], sample["sleep"]["state"], sample["sleep"]["where"]),
                         (ASLEEP, "asleep", self.folder))
        self.assertIn("asleep", [event["kind"] for line in lines if line["type"] == "sample" for event in line["landmarks"]])
        for what in recorded, self.pid():
            shown("report", what, "-o", f"{self.folder}/page.html")
            with open(f"{self.folder}/page.html", encoding="utf-8") as file:
                self.assertIn(f'"where":"{self.folder}"', file.read())

    def test_snapshot(self):
        """The counters of a trace tell what is on the device: nothing at first, and nothing while the job sleeps."""
        self.job.fall_asleep()
        path = f"{self.folder}/counters.json"
        shown("snapshot", "-o", path, self.pid())
        with open(path, encoding="utf-8") as file:
            reserved = [event["args"]["reserved"] for event in json.load(file)["traceEvents"] if event["ph"] == "C"]
        self.assertEqual((reserved[0], max(reserved), reserved[-1]), (0, 66 << 20, 0))

    def test_out_of_memory(self):
        share = {"SIM_SHARE": f"{self.folder}/share", "SIM_MEMORY": "128M"}
        sleeper = Job(self, {**ON, **share})
        sleeper.do(FILLED)
        sleeper.fall_asleep()
        other = Job(self, {**ON, **share})
        other.do("b = allocate(100*MIB)")
        self.assertEqual(other.do("allocate(64*MIB)"), "code 2")
        self.assertRegex(other.said(), rf"process {sleeper.pid} \(.*\): 0 B in use, 0 B cached; 64\.0 MiB asleep for \d+ s, in memory, not on the device\n")
        self.assertEqual(sleeper.do("read(a, 1)"), 2)
        self.assertRegex(sleeper.said(), r"this process 64\.0 MiB reserved, of it 64\.0 MiB asleep, in memory, not on the device: ")


if __name__ == "__main__":
    main()
