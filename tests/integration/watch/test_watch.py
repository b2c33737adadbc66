#!/usr/bin/env python3
"""Real jobs over the stand-in GPU, watched: the picture, trim, record, report, top, ranks.

Needs BFCSTAT, LIBRARY, TRAIN (tests/integration/demo's program) and SIM_DIR in the environment. Parts whose tool
is missing (tmux, chromium, mpirun) are left out.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

BFCSTAT, LIBRARY, TRAIN, SIM_DIR = (os.environ[n] for n in "BFCSTAT LIBRARY TRAIN SIM_DIR".split())
PREFIX = f"bfcpreload.{os.getuid()}."


def bfcstat(*arguments, **more):
    return subprocess.run([BFCSTAT, *arguments], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, **more)


class Job:
    """A preloaded training loop that pauses when warm, or one that goes on."""

    def __init__(self, *arguments, **variables):
        environment = dict(os.environ, LD_PRELOAD=LIBRARY, LD_LIBRARY_PATH=SIM_DIR, SIM_MEMORY="4G",
                           **variables)
        self.process = subprocess.Popen([TRAIN, *arguments], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=environment)
        self.pid = self.process.pid
        self.first_line = self.process.stdout.readline()  # printed when warm

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Watch(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="bfc watch ")
        self.addCleanup(shutil.rmtree, self.folder)

    def start(self, *arguments, **variables):
        job = Job(*arguments, **variables)
        self.addCleanup(job.stop)
        return job

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_what_an_idle_job_freed_is_ready(self):
        """Its work is over, and only who asks looks at the fences."""
        for mode in "lazy", "ordered":
            job = self.start("20", "10", "pause", BFC_FREE=mode)
            (pool,) = json.loads(bfcstat("--json", str(job.pid)).stdout)["pools"]
            self.assertEqual((pool["pending"], pool["ready"] > 0), (0, True), mode)

    def test_picture_and_trim(self):
        job = self.start("20", "10", "pause")
        shown = json.loads(bfcstat("--json", str(job.pid)).stdout)
        (pool,) = shown["pools"]
        self.assertGreater(pool["cached"], 0)
        self.assertIsNotNone(pool["fragmentation"])  # the job looked when it was asked
        self.assertEqual(sum(bin["count"] for bin in pool["sizes"]), pool["allocations"])
        self.assertGreater(pool["allocate_latency"]["timed"], 0)
        rows = shown["map"]["rows"]
        self.assertEqual(sum(row["size"] for row in rows), pool["reserved"])
        self.assertEqual(len(rows), pool["regions"])
        kinds = [event["kind"] for event in shown["events"]]
        self.assertEqual(kinds.count("allocate"), pool["allocations"])
        self.assertEqual(kinds.count("free"), pool["frees"])
        self.assertEqual([e["kind"] for e in shown["landmarks"]].count("grow"), pool["regions"])

        said = bfcstat("trim", str(job.pid))
        self.assertRegex(said.stdout, rf"^{job.pid} gave back \d[0-9.]* [KMG]iB\n$")
        after = json.loads(bfcstat("--json", str(job.pid)).stdout)
        self.assertLess(after["pools"][0]["reserved"], pool["reserved"])
        self.assertEqual(after["pools"][0]["in_use"], pool["in_use"])
        self.assertEqual(after["landmarks"][-1]["kind"], "trim")

    def record(self, job, *arguments):
        return bfcstat("record", str(job.pid), "-o", self.path("run.jsonl"), "--interval=0.05",
                       *arguments)

    def lines(self):
        with open(self.path("run.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def test_record_and_report(self):
        job = self.start("1000000", "10", BFC_FREE="lazy")
        bfcstat("trim", str(job.pid))
        said = self.record(job, "--duration=1")
        self.assertEqual(said.returncode, 0, said.stderr)
        lines = self.lines()
        self.assertEqual((lines[0]["type"], lines[-1]["reason"]), ("start", "duration"))
        self.assertGreater(len([l for l in lines if l["type"] == "sample"]), 3)
        self.assertTrue(any(l["type"] == "map" for l in lines))
        (pool,) = [l for l in lines if l["type"] == "sample"][-1]["pools"]
        self.assertLessEqual(pool["in_use"], pool["peak_in_use"])
        self.assertLessEqual(pool["reserved"], pool["peak_reserved"])
        self.assertEqual(pool["host_waits"], 0)  # in lazy; those for fences are in "waits"
        page = self.path("report.html")
        with open(self.path("run.jsonl"), "a", encoding="utf-8") as file:
            file.write('{"type":"x","evil":"</script><b>"}\n{"type":"sam')
        said = bfcstat("report", self.path("run.jsonl"), "-o", page)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("1 incomplete lines were left out", said.stderr)
        with open(page, encoding="utf-8") as file:
            text = file.read()
        self.assertNotIn("</script><b>", text)
        self.assertNotRegex(text, r"(src|href)=")  # nothing from elsewhere
        self.look_at(page)
        self.assertEqual(bfcstat("report", self.path("run.jsonl"), "-o", "-").stdout, text)

    def test_report_of_a_job_as_it_is(self):
        job = self.start("20", "10", "pause")
        said = bfcstat("report", str(job.pid), "-o", "-")
        self.assertEqual(said.returncode, 0, said.stderr)
        lines = said.stdout.partition('class="recording">\n')[2].partition("</script>")[0].splitlines()
        kinds = [json.loads(line)["type"] for line in lines if line]
        self.assertEqual((kinds[0], kinds[-1], kinds.count("sample"), kinds.count("calls")), ("start", "end", 1, 1))
        (calls,) = (json.loads(line)["calls"] for line in lines if '"type":"calls"' in line)
        (pool,) = json.loads(bfcstat("--json", str(job.pid)).stdout)["pools"]
        self.assertEqual([c[0] for c in calls].count("a"), pool["allocations"])
        self.assertEqual(bfcstat("report", "999999999", "-o", "-").returncode, 1)

    def look_at(self, page):
        browser = shutil.which("chromium") or shutil.which("chromium-browser")
        if not browser:
            return
        shown = subprocess.run(
            [browser, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.folder}/c",
             "--virtual-time-budget=3000", "--dump-dom", f"file://{page}"],
            capture_output=True, text=True, timeout=120)
        drawn = shown.stdout[:shown.stdout.find('<script type="text/plain"')]
        for heading in ("Memory over time", "Fragmentation", "Address space at the moment",
                        "Requested sizes", "Configuration in force"):
            self.assertIn(f"<h2>{heading}</h2>", drawn)
        self.assertNotIn("Infinity", drawn)
        self.assertNotIn("NaN", drawn)
        self.assertIn('<td class="t">all requested</td>', drawn)  # the trim, whose address is none

    def test_record_ends_well(self):
        job = self.start("1000000", "10", BFC_FREE="lazy")
        recorder = subprocess.Popen(
            [BFCSTAT, "record", str(job.pid), "-o", self.path("run.jsonl"), "--interval=0.05"],
            stdout=subprocess.PIPE, text=True)
        time.sleep(0.5)
        recorder.send_signal(signal.SIGINT)
        self.assertIn("(interrupted)", recorder.communicate(timeout=20)[0])
        self.assertEqual(recorder.returncode, 0)
        self.assertEqual(self.lines()[-1]["reason"], "interrupted")
        recorder = subprocess.Popen(
            [BFCSTAT, "record", str(job.pid), "-o", self.path("run.jsonl"), "--interval=0.05"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        time.sleep(0.3)
        job.process.kill()
        self.assertIn("(ended)", recorder.communicate(timeout=20)[0])

    def test_report_refuses_what_is_no_recording(self):
        with open(self.path("other"), "w", encoding="utf-8") as file:
            file.write("<html>\n")
        said = bfcstat("report", self.path("other"), "-o", self.path("page"))
        self.assertEqual(said.returncode, 1)
        self.assertIn("not a recording", said.stderr)
        self.assertFalse(os.path.exists(self.path("page")))
        self.assertIn("No such file", bfcstat("report", "/none", "-o", self.path("page")).stderr)

    @unittest.skipUnless(shutil.which("tmux"), "tmux is not installed")
    def test_top(self):
        job = self.start("1000000", "10", RANK="3", LOCAL_RANK="1")

        def screen():
            return subprocess.run([*tmux, "capture-pane", "-p"], capture_output=True, text=True).stdout

        def press(key, words):
            if key:
                subprocess.run([*tmux, "send-keys", key], check=True)
            for _ in range(100):
                if re.search(words, screen()):
                    return
                time.sleep(0.1)
            self.fail(f"{words} does not appear:\n{screen()}")

        for colour in ("", "1"):
            # A server that is about to end refuses new sessions: each has a server of its own.
            tmux = ["tmux", "-S", self.path("socket" + colour), "-f", "/dev/null"]
            environment = dict(os.environ, NO_COLOR=colour, LANG="C.UTF-8", TERM="xterm-256color")
            subprocess.run([*tmux, "new-session", "-d", "-x", "80", "-y", "24",
                            f"'{BFCSTAT}' top --interval=0.2"], check=True, env=environment)
            self.addCleanup(subprocess.run, [*tmux, "kill-server"], stderr=subprocess.DEVNULL)
            press("", rf"{job.pid} +0 .*rank 3:")
            press("", r"[0-9.]+ MiB [#+~.]{20}")
            self.assertTrue(all(len(line) <= 80 for line in screen().splitlines()))
            press("h", r"to allocate: half within .*\n +[0-9.]+ [KM]iB +[0-9,]+ \*")
            press("t", r"have [0-9]+ give back what it caches, [0-9.]+ [KMG]?i?B\? y: yes")
            press("n", "[?] help")  # nothing was trimmed
            press("?", "select a job")
            press("?", "to allocate")
            press("Space", r"\(paused\)")
            subprocess.run([*tmux, "resize-window", "-x", "50", "-y", "8"], check=True)
            press("Space", "bfcstat top")
            subprocess.run([*tmux, "send-keys", "q"], check=True)
            for _ in range(50):
                if subprocess.run([*tmux, "has-session"], capture_output=True).returncode:
                    break
                time.sleep(0.1)
            else:
                self.fail("q does not end it")

    @unittest.skipUnless(shutil.which("mpirun"), "Open MPI is not installed")
    def test_ranks_of_open_mpi(self):
        # Paused when warm, by a fifo that nobody writes to: four loops that run keep a small machine
        # from doing anything else.
        os.mkfifo(self.path("fifo"))
        script = ('export CUDA_VISIBLE_DEVICES=$((OMPI_COMM_WORLD_RANK % 2)); '
                  f'exec "$0" 20 5 pause <>"{self.path("fifo")}"')
        flags = ["--allow-run-as-root", "--oversubscribe", "-np", "4", "--mca", "btl", "self",
                 "-x", f"LD_PRELOAD={LIBRARY}", "-x", f"LD_LIBRARY_PATH={SIM_DIR}",
                 "-x", "SIM_DEVICES=2", "-x", "BFC_NOT=bash:sh"]
        job = subprocess.Popen(["mpirun", *flags, "bash", "-c", script, TRAIN], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               start_new_session=True)
        self.addCleanup(lambda: (job.terminate(), job.wait()))
        ranks = {}
        for _ in range(200):
            listing = json.loads(bfcstat("--json").stdout)
            ranks = {j["rank"]: j for j in listing["jobs"] if j["ranks"] == 4 and j["pools"]}
            if len(ranks) == 4:
                break
            time.sleep(0.1)
        self.assertEqual(sorted(ranks), [0, 1, 2, 3])
        for rank, shown in ranks.items():
            self.assertEqual(shown["local_rank"], rank)
            self.assertIn(f"rank {rank} of 4: ", bfcstat().stdout)
            self.assertRegex(bfcstat(str(shown["pid"])).stdout, rf"rank +{rank} of 4, {rank} on")
        self.assertEqual(len({j["job"] for j in ranks.values()}), 1)
        self.assertIn('rank="3"', bfcstat("--prometheus").stdout)
        uuids = [ranks[r]["pools"][0]["device_uuid"] for r in range(4)]
        self.assertEqual((uuids[0], uuids[1]), (uuids[2], uuids[3]))


if __name__ == "__main__":
    unittest.main(verbosity=1)
