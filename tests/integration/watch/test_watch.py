#!/usr/bin/env python3
"""Real jobs over the stand-in GPU, watched: the picture, trim, record, report, top, ranks.

Needs BFCSTAT, LIBRARY, TRAIN (tests/integration/demo's program), CROWDED_JOBS (tests/integration/tools) and SIM_DIR
in the environment. Parts whose tool is missing (tmux, chromium, mpirun) are left out.
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
import urllib.request

BFCSTAT, LIBRARY, TRAIN, SIM_DIR, CROWDED_JOBS = (
    os.environ[n] for n in "BFCSTAT LIBRARY TRAIN SIM_DIR CROWDED_JOBS".split())
PREFIX = f"bfcpreload.{os.getuid()}."


def bfcstat(*arguments, **more):
    return subprocess.run([BFCSTAT, *arguments], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, **more)


class Job:
    """A preloaded training loop that pauses when warm, or one that goes on."""

    def __init__(self, *arguments, **variables):
        environment = {**os.environ, "LD_PRELOAD": LIBRARY, "LD_LIBRARY_PATH": SIM_DIR, "SIM_MEMORY": "4G", **variables}
        self.process = subprocess.Popen([TRAIN, *arguments], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=environment)
        self.pid = self.process.pid
        self.first_line = self.process.stdout.readline()  # printed when warm

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Terminal:
    """bfcstat in a terminal, with a tmux server of its own: one that is about to end refuses new sessions."""

    def __init__(self, socket):
        self.command = ["tmux", "-S", socket, "-f", "/dev/null"]

    def tmux(self, *arguments):
        return subprocess.run([*self.command, *arguments], capture_output=True, text=True, check=True).stdout

    def start(self, columns, lines, arguments, variables):
        subprocess.run([*self.command, "new-session", "-d", "-x", str(columns), "-y", str(lines),
                        " ".join([f"'{BFCSTAT}'", *arguments])], check=True, env={**os.environ, **variables})

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def lines(self):
        return self.screen().splitlines()

    def wait_for(self, words):
        for _ in range(100):
            if re.search(words, self.screen()):
                return
            time.sleep(0.1)
        raise AssertionError(f"{words} does not appear:\n{self.screen()}")

    def press(self, key, words):
        self.tmux("send-keys", key)
        self.wait_for(words)

    def select(self, pid):
        """Moves down to the row of this job, past those of other tests."""
        for _ in range(50):
            if f"{pid}, which calls it device" in self.screen():
                return
            self.tmux("send-keys", "Down")
            time.sleep(0.3)
        raise AssertionError(f"{pid} cannot be selected:\n{self.screen()}")

    def wait_for_end(self):
        for _ in range(50):
            if subprocess.run([*self.command, "has-session"], capture_output=True).returncode:
                return
            time.sleep(0.1)
        raise AssertionError("it does not end")

    def end(self):
        subprocess.run([*self.command, "kill-server"], stderr=subprocess.DEVNULL)


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
        landmarks = [event["kind"] for event in shown["landmarks"]]
        self.assertEqual(landmarks.count("grow") - landmarks.count("release"), pool["regions"])

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

    def bfcstat_on_terminal(self, *arguments, columns=80, lines=24, **variables):
        """bfcstat in a terminal of its own, until the test ends."""
        terminal = Terminal(self.path(f"socket {len(os.listdir(self.folder))}"))
        self.addCleanup(terminal.end)
        terminal.start(columns, lines, arguments, dict(variables, LANG="C.UTF-8", TERM="xterm-256color"))
        return terminal

    @unittest.skipUnless(shutil.which("tmux"), "tmux is not installed")
    def test_top(self):
        job = self.start("1000000", "10", RANK="3", LOCAL_RANK="1")
        for colour in ("", "1"):
            terminal = self.bfcstat_on_terminal("top", "--interval=0.2", NO_COLOR=colour)
            terminal.wait_for(rf"{job.pid} 01:00\.0 .*rank 3:")
            terminal.select(job.pid)
            terminal.wait_for(r"[0-9.]+ MiB [#+~.]{20}")
            self.assertTrue(all(len(line) <= 80 for line in terminal.lines()))
            terminal.press("h", r"to allocate: half within .*\n +[0-9.]+ [KM]iB +[0-9,]+ \*")
            terminal.press("t", r"have [0-9]+ give back what it caches, [0-9.]+ [KMG]?i?B\? y: yes")
            terminal.press("n", "[?] help")  # nothing was trimmed
            terminal.press("?", "(?s)select a job.*x others  blank: free\n.*[?] help .* q quit")
            terminal.press("?", "to allocate")
            terminal.press("Space", r"\(paused\)")
            terminal.tmux("resize-window", "-x", "50", "-y", "8")
            terminal.press("Space", "bfcstat top")
            terminal.tmux("send-keys", "q")
            terminal.wait_for_end()

    def start_on_two_devices(self):
        """Each job sees one of two devices, and calls it 0."""
        machine = {"SIM_DEVICES": "2", "SIM_SHARE": self.path("share")}
        return machine, [self.start("20", "10", "pause", CUDA_VISIBLE_DEVICES=str(i), **machine) for i in range(2)]

    def test_devices_have_the_machine_s_names(self):
        _, jobs = self.start_on_two_devices()
        pools = [json.loads(bfcstat("--json", str(job.pid)).stdout)["pools"][0] for job in jobs]
        self.assertEqual([pool["device"] for pool in pools], [0, 0])
        self.assertEqual([pool["device_bus_id"] for pool in pools], ["0000:01:00.0", "0000:02:00.0"])
        for i, job in enumerate(jobs):
            uuid = pools[i]["device_uuid"][4:12]
            self.assertRegex(bfcstat().stdout, rf"(?m)^ *{job.pid}  0{i + 1}:00\.0  {uuid} ")
        self.assertNotEqual(pools[0]["device_uuid"][:12], pools[1]["device_uuid"][:12])

    @unittest.skipUnless(shutil.which("tmux"), "tmux is not installed")
    def test_a_line_for_each_device(self):
        """What the management library tells of it, and what of that the jobs have; the rest is others'."""
        machine, jobs = self.start_on_two_devices()
        hidden = self.start("20", "10", "pause", CUDA_VISIBLE_DEVICES="1", BFC_STATS="0", **machine)
        bytes_text = r"[0-9.]+ [KMG]?i?B"
        terminal = self.bfcstat_on_terminal("top", LD_LIBRARY_PATH=SIM_DIR, SIM_MEMORY="4G", **machine)
        for i in range(2):
            others = "0 B" if i == 0 else r"[1-9][0-9.]* MiB"
            terminal.wait_for(rf"\n  {i} 0{i + 1}:00\.0 \w{{8}} 4\.00 GiB +{bytes_text} +{bytes_text} +{bytes_text} "
                              rf"+{others} +{bytes_text}\n")
            terminal.wait_for(rf"{jobs[i].pid} 0{i + 1}:00\.0 ")
        self.assertNotIn(str(hidden.pid), "".join(terminal.lines()))
        without = self.bfcstat_on_terminal("top", LD_LIBRARY_PATH="")  # as the jobs' driver said last
        without.wait_for(r"\n  - 02:00\.0 \w{8} 4\.00 GiB ")

    def scrape(self, port):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            return answer.read().decode()

    @unittest.skipIf("built without" in bfcstat("serve", "--listen=nowhere").stderr, "built without libmicrohttpd")
    def test_exporter_knows_devices_and_jobs_that_ended(self):
        """Of two jobs one runs, and one has died of an out of memory before it was looked at."""
        machine = {"SIM_DEVICES": "2", "SIM_SHARE": self.path("share")}
        exporter = subprocess.Popen(
            [BFCSTAT, "serve", "--listen=127.0.0.1:0"], stderr=subprocess.PIPE, text=True,
            env={**os.environ, "LD_LIBRARY_PATH": SIM_DIR, "SIM_MEMORY": "4G", **machine})
        self.addCleanup(lambda: (exporter.terminate(), exporter.wait(), exporter.stderr.close()))
        port = int(re.search(r":(\d+)/metrics", exporter.stderr.readline()).group(1))
        job = self.start("20", "10", "pause", CUDA_VISIBLE_DEVICES="0", **machine)
        died = self.start("20", "10", CUDA_VISIBLE_DEVICES="1", SIM_MEMORY="64M", **machine)
        died.process.wait(60)
        pool = json.loads(bfcstat("--json", str(job.pid)).stdout)["pools"][0]
        text = self.scrape(port)
        device = rf'UUID="{pool["device_uuid"]}",pci_bus_id="0000:01:00.0"'
        for figure, value in (("total", 4 << 30), ("used", pool["reserved"]), ("in_use", pool["in_use"]),
                              ("cached", pool["cached"]), ("others", 0)):
            self.assertIn(f"bfcpreload_gpu_memory_{figure}_bytes{{{device}}} {value}\n", text)
        self.assertRegex(text, r'bfcpreload_user_jobs_ended_total\{UUID="[^"]+",pci_bus_id="0000:02:00.0",user="[^"]+"\} 1\n')
        self.assertRegex(text, r'bfcpreload_user_out_of_memory_total\{UUID="[^"]+",pci_bus_id="0000:02:00.0",user="[^"]+"\} [1-9]')

    @unittest.skipUnless(shutil.which("tmux"), "tmux is not installed")
    def test_more_rows_than_lines(self):
        folder = self.path("crowd")
        os.mkdir(folder)
        subprocess.run([CROWDED_JOBS, folder, str(os.getuid()), "1", "40", "1", "1"], check=True)
        terminal = self.bfcstat_on_terminal("top", f"'--directory={folder}'")
        terminal.wait_for(r"\n +\.\.\. 0 above, 3\d below\n(.*\n)*waits for 3\.20 GiB for .*, position 2\n")
        terminal.press("Up", r"\n +\.\.\. 0 above")
        for _ in range(39):
            terminal.tmux("send-keys", "Down")
        terminal.wait_for(r"\n +\.\.\. 3\d above, 0 below\n")

    @unittest.skipUnless(shutil.which("tmux"), "tmux is not installed")
    def test_table_fits_a_terminal(self):
        job = self.start("20", "10", "pause")
        terminal = self.bfcstat_on_terminal(";", "sleep", "600")
        terminal.wait_for(rf"(?m)^ *PID  BUS ID .* COMMAND\n(.*\n)* *{job.pid}  01:00\.0 .* train 20 10 pause$")
        terminal = self.bfcstat_on_terminal(str(job.pid), ";", "sleep", "600", lines=100)
        terminal.wait_for(r"(?m)^  0x\w+ +\S+ MiB  [#+~.]{20,44}$")
        terminal.wait_for(r"settings other than the defaults .*\n  none\n")

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
        self.assertNotEqual(uuids[0], uuids[1])


if __name__ == "__main__":
    unittest.main(verbosity=1)
