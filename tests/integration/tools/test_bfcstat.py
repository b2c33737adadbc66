#!/usr/bin/env python3
"""bfcstat beside made-up jobs: tables, pictures, JSON, refusals, the dead, a job that never rests."""

import json
import mmap
import os
import pty
import pwd
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BFCSTAT = os.environ["BFCSTAT"]
FAKE_JOB = os.environ["FAKE_JOB"]
PID_NAMESPACE = 40  # where layout/segment.h has it


class Job:
    """A fake job with its segment in `folder`."""

    def __init__(self, folder, *flags):
        self.process = subprocess.Popen(
            [FAKE_JOB, folder, *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = int(self.process.stdout.readline())

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.wait()

    def wait(self):
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Bfcstat(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="bfcstat ")
        self.jobs = []

    def tearDown(self):
        for job in self.jobs:
            if job.process.poll() is None:
                job.kill()
        shutil.rmtree(self.folder)

    def start(self, *flags):
        self.jobs.append(Job(self.folder, *flags))
        return self.jobs[-1]

    def segment(self, job):
        (name,) = [n for n in os.listdir(self.folder) if n.endswith(f".{job.pid}")]
        return os.path.join(self.folder, name)

    def bfcstat(self, *arguments, **more):
        return subprocess.run(
            [BFCSTAT, f"--directory={self.folder}", *arguments],
            **more,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=20,
        )

    def shown(self, *arguments):
        result = self.bfcstat(*arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def refusal(self, *arguments, status=1):
        result = self.bfcstat(*arguments)
        self.assertEqual((result.returncode, result.stdout), (status, ""))
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertTrue(lines[0].startswith("bfcstat: "))
        return lines[0]

    def test_no_jobs(self):
        self.assertEqual(self.shown(), "no jobs\n")
        self.assertEqual(
            json.loads(self.shown("--json")), {"format": 2, "jobs": [], "refused": [], "swept": []}
        )

    def test_table(self):
        first, second = self.start(), self.start("--owner")
        lines = self.shown().splitlines()
        self.assertEqual(
            lines[0].split(),
            "PID BUS ID UUID IN USE CACHED RESERVED LIMIT HIT RATE WAITS OOM COMMAND".split(),
        )
        self.assertEqual({int(line.split()[0]) for line in lines[1:]}, {first.pid, second.pid})
        for line in lines[1:]:
            self.assertRegex(
                line, r"\d+ +3B:00\.0 +00010203 +60\.0 MiB +40\.0 MiB +100 MiB +none +>99\.9 % +1,000 +1  waits .*: rank 3 of 4: made-up"
            )

    def test_picture(self):
        text = self.shown(str(self.start().pid))
        for words in (
            "made-up --job",
            "running",
            r"device 0 \(3B:00\.0 00010203\)  Made-up GPU, 16.0 GiB",
            r"in use +60\.0 MiB",
            r"requested +59\.0 MiB",
            r"cached +40\.0 MiB +ready 30\.0 MiB, pending 8\.00 MiB\n +deferred 2\.00 MiB, freed during a capture\n",
            r"reserved +100 MiB .* in 3 regions",
            r"largest free +30\.0 MiB\n +fragmentation +50\.0 % +of ready cannot serve 8\.00 MiB, asked for lately\n",
            r"hit rate +>99\.9 % +1,999 hits, 1 miss\n",
            r"host waits +1,000 .* 2\.50 ms",
            r"4 to reserve \(1 refused\), 0 to release",
            r"pooled +2,010 allocations, 1,998 frees",
            r"forwarded, foreign +0 allocations, 5 frees",
            r"bypassed, managed +2 calls, 3\.00 MiB",
            r"\n\nsettings other than the defaults \(--json lists all\)\n  BFC_FREE=lazy\n  BFC_TO_COME=1\n$",
        ):
            self.assertRegex(text, words)
        self.assertEqual([line for line in text.splitlines() if len(line) > 80 and "0x" not in line], [])

    def test_json_of_one_job(self):
        job = self.start("--owner")
        shown = json.loads(self.shown("--json", str(job.pid)))
        self.assertEqual(shown["format"], 2)
        self.assertEqual((shown["pid"], shown["state"]), (job.pid, "running"))
        self.assertEqual(shown["command"], "made-up --job")
        self.assertEqual(shown["configuration"], {"BFC_FREE": "lazy", "BFC_LIMIT": "none", "BFC_TO_COME": "1"})
        self.assertEqual(shown["coverage"]["forwarded_frees"]["foreign"], 5)
        self.assertEqual(shown["coverage"]["bypassed_bytes"]["managed"], 3 << 20)
        (pool,) = shown["pools"]
        self.assertEqual(pool["device_uuid"], "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f")
        self.assertEqual(pool["device_bus_id"], "0000:3B:00.0")
        self.assertEqual((pool["fragmentation"], pool["hit_rate"]), (0.5, 0.9995))
        self.assertEqual((pool["largest_request"], pool["too_small"]), (8 << 20, 15 << 20))
        self.assertEqual(pool["cached"], pool["ready"] + pool["pending"] + pool["deferred"])
        self.assertTrue(pool["consistent"])
        self.assertEqual(json.loads(self.shown("--json"))["jobs"][0]["pid"], job.pid)

    def test_segment_by_name(self):
        job = self.start()
        name = os.path.basename(self.segment(job))
        self.assertEqual(json.loads(self.shown("--json", name))["segment"], name)

    def test_every_documented_key_is_there_and_every_key_is_documented(self):
        page = os.path.join(os.environ["SOURCE_ROOT"], "docs", "bfcstat.md")
        with open(page, encoding="utf-8") as file:
            cells = re.findall(r"^- ((?:`[a-z0-9_]+`(?:, )?)+): ", file.read(), re.MULTILINE)
        documented = {key for cell in cells for key in re.findall(r"`([a-z0-9_]+)`", cell)}
        job = self.start()
        found = set()

        def collect(value):
            if isinstance(value, dict):
                found.update(value)
                for member in value.values():
                    collect(member)
            elif isinstance(value, list):
                for member in value:
                    collect(member)

        listing = json.loads(self.shown("--json"))
        listing["jobs"].append(json.loads(self.shown("--json", str(job.pid))))
        for shown in listing["jobs"]:
            shown["configuration"] = {}
        collect(listing)
        self.assertEqual(found | {"segment", "reason"}, documented)

    def damage(self, job, offset, data):
        with open(self.segment(job), "r+b") as file:
            file.seek(offset)
            file.write(data)

    def test_prometheus(self):
        self.start(), self.start("--owner")
        text = self.shown("--prometheus")
        self.assertIn("bfcpreload_jobs 2\n", text)
        self.assertRegex(text, r'bfcpreload_in_use_bytes\{pid="\d+",pid_namespace="\d+",comm="fake_job",user="[^"]+",'
                         r'[^}]*rank="3",job_name="made-up.1",gpu="0",UUID="GPU-00010203-'
                         r'0405-0607-0809-0a0b0c0d0e0f",pci_bus_id="0000:3B:00.0",context="7"\} 62914560\n')
        self.assertNotIn("--job", text, "arguments are no labels")
        self.assertIn('bfcpreload_host_wait_seconds_total{', text)
        self.assertRegex(text, r'bfcpreload_fragmentation_ratio\{.*gpu="0",.*context="7"\} 0\.5\n')
        if not shutil.which("promtool"):
            self.skipTest("promtool is not installed")
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                                 capture_output=True)
        self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))

    def test_prometheus_tells_pid_namespaces_apart(self):
        """Containers that share /dev/shm have the same process ids: a series may be there once only."""
        job = self.start("--owner")
        with open(self.segment(job), "rb") as file:
            segment = bytearray(file.read())
        segment[PID_NAMESPACE:PID_NAMESPACE + 8] = (7).to_bytes(8, sys.byteorder)
        place, name = os.path.split(self.segment(job))
        prefix, user, _, pid = name.split(".")
        other = os.path.join(place, f"{prefix}.{user}.7.{pid}")
        with open(other, "wb") as file:
            file.write(segment)
        os.chmod(other, 0o600)
        text = self.shown("--prometheus")
        self.assertIn("bfcpreload_jobs 2\n", text)
        series = [line.rpartition(" ")[0] for line in text.splitlines() if line[0] != "#"]
        self.assertEqual(len(series), len(set(series)))

    @unittest.skipUnless(os.getuid() == 0 and shutil.which("setpriv"), "needs root, to be another user")
    def test_an_administrator_s_copy(self):
        """With one capability it reads all users' segments, and nothing else."""
        job = self.start("--owner")
        os.chmod(self.folder, 0o755)
        secret = os.path.join(self.folder, "recording")
        self.assertEqual(self.bfcstat("record", str(job.pid), "-o", secret, "--duration=0.1").returncode, 0)
        os.chmod(secret, 0o600)

        def someone(*arguments, capabilities="-all"):
            return subprocess.run(["setpriv", "--reuid=1234", "--regid=1234", "--clear-groups",
                                   f"--inh-caps={capabilities}", f"--ambient-caps={capabilities}", BFCSTAT,
                                   f"--directory={self.folder}", *arguments], capture_output=True, text=True, timeout=20)

        administrator = {"capabilities": "-all,+dac_read_search"}
        owner = pwd.getpwuid(os.getuid()).pw_name
        plain = someone()
        self.assertEqual((plain.returncode, plain.stdout), (1, "no jobs that could be read\n"))
        self.assertEqual(plain.stderr, "bfcstat: other users' jobs that cannot be read: 1 (docs/watching.md)\n")
        self.assertRegex(someone(**administrator).stdout, rf"{job.pid} .* {owner}: waits for .*made-up")
        self.assertIn("made-up --job", someone(str(job.pid), **administrator).stdout)
        refused = someone("report", secret, "-o", "-", **administrator)
        self.assertEqual((refused.returncode, refused.stdout), (1, ""))
        self.assertIn("Permission denied", refused.stderr)

    def test_charts(self):
        text = self.shown(str(self.start().pid))
        for words in (
            r"rank +3 of 4, 1 on this machine, job made-up.1",
            r"0x40000000 +64.0 MiB  #{32}~{32}\n",
            r"64.0 KiB +1,999 \*{32}\n",
            r"64.0 MiB +1 \*\n",
            r"to allocate +half within 48 ns, 99 % within 96 ns",
            r"1\.00 ms  out_of_memory +4\.00 GiB\n",
            r"2\.00 ms  waited +64\.0 MiB  after 7\.00 ms\n",
            r"free by driver +11\.7 GiB",
            r"it waits for 3\.20 GiB for [0-9.]+ \w+, position 2\n",
            r"this pool gave +1   of 7 attempts, 1\.00 ms in all\n"
            r" *contexts gave +1   of 6 attempts, 2\.00 ms in all\n"
            r" *other jobs gave +3   of 5 attempts, 7\.00 ms in all\n"
            r" *waited +2   of 4 attempts, 9\.00 s in all\n"
            r" *spilled +2   of 2 attempts, 8\.00 ms in all\n",
        ):
            self.assertRegex(text, words)

    def test_last_resorts_and_waiting(self):
        job = self.start()
        self.assertRegex(self.shown(), r" waits for 3\.20 GiB for [0-9.]+ \w+, position 2: rank 3 of 4: ")
        (pool,) = json.loads(self.shown("--json", str(job.pid)))["pools"]
        rungs = {"pool": (7, 1, 1000000), "contexts": (6, 1, 2000000), "jobs": (5, 3, 7000000),
                 "sleep": (0, 0, 0), "wait": (4, 2, 9000000000), "spill": (2, 2, 8000000)}
        self.assertEqual(pool["last_resorts"],
                         {rung: {"tried": tried, "saved": saved, "ns": ns} for rung, (tried, saved, ns) in rungs.items()})
        self.assertEqual(list(pool["last_resorts"]), list(rungs))
        landmarks = json.loads(self.shown("--json", str(job.pid)))["landmarks"]
        self.assertEqual([(e["kind"], e["address"], e["bytes"]) for e in landmarks[2:]],
                         [(kind, 7000000 + i, 64 << 20)
                          for i, kind in enumerate(("waited", "saved_contexts", "saved_jobs", "spilled"))])
        self.assertEqual((pool["waiting"]["bytes"], pool["waiting"]["position"]), (3277 << 20, 2))
        self.assertGreaterEqual(pool["waiting"]["waited_ns"], 12 * 10**9)
        text = self.shown("--prometheus")
        for rung, (tried, saved, ns) in ((rung, counts) for rung, counts in rungs.items() if counts[0]):
            self.assertRegex(text, rf'bfcpreload_last_resorts_total\{{.*rung="{rung}"\}} {tried}\n')
            self.assertRegex(text, rf'bfcpreload_last_resorts_saved_total\{{.*rung="{rung}"\}} {saved}\n')
            (seconds,) = re.findall(rf'bfcpreload_last_resort_seconds_total\{{.*rung="{rung}"\}} (\S+)\n', text)
            self.assertEqual(float(seconds), ns / 1e9)
        self.assertRegex(text, r"bfcpreload_waiting_bytes\{.*\} 3436183552\n")

    def test_jobs_that_cannot_be_read_are_never_no_jobs(self):
        """As another user's are: with status 0 the answer 0 would be false."""
        job = self.start()
        hidden = f"bfcpreload.{os.getuid() + 1}.7.{job.pid}"
        os.rename(self.segment(job), os.path.join(self.folder, hidden))
        listing, metrics = self.bfcstat(), self.bfcstat("--prometheus")
        for result in (listing, metrics):
            self.assertEqual(result.returncode, 1)
            self.assertIn(hidden, result.stderr)
        self.assertEqual(listing.stdout, "no jobs that could be read\n")
        self.assertIn("bfcpreload_jobs 0\n", metrics.stdout)
        self.assertIn("bfcpreload_unreadable_jobs 1\n", metrics.stdout)
        self.start()
        metrics = self.bfcstat("--prometheus")
        self.assertEqual(metrics.returncode, 0)  # what is shown is true
        self.assertIn("bfcpreload_unreadable_jobs 1\n", metrics.stdout)

    def test_top_without_a_terminal_says_so(self):
        result = self.bfcstat("top")  # with nothing to read, and nowhere to draw
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("needs a terminal", result.stderr)

    def test_top_ends_with_its_terminal(self):
        self.start()
        top, terminal = pty.fork()
        if top == 0:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            os.environ["TERM"] = "vt100"
            os.execv(BFCSTAT, [BFCSTAT, "top", f"--directory={self.folder}"])
        os.read(terminal, 1)
        os.close(terminal)
        until = time.monotonic() + 60
        while (ended := os.waitpid(top, os.WNOHANG)[0]) == 0 and time.monotonic() < until:
            time.sleep(0.02)
        if not ended:
            os.kill(top, signal.SIGKILL)
            os.waitpid(top, 0)
        self.assertEqual(ended, top)

    def test_trim_of_a_job_that_does_not_answer(self):
        job = self.start()
        self.assertIn("does not answer", self.refusal("trim", str(job.pid)))
        for arguments in (["trim"], ["trim", "--bytes=x", "1"], ["--prometheus", "1"], ["top", "1"]):
            self.assertEqual(self.bfcstat(*arguments).returncode, 2, arguments)

    def test_refuses_other_version(self):
        job = self.start()
        self.damage(job, 8, b"\x63\0\0\0")
        self.assertIn("layout version 99", self.refusal(str(job.pid)))
        listing = self.bfcstat("--json")
        self.assertEqual(listing.returncode, 1)  # no job is shown, yet there is one
        (refused,) = json.loads(listing.stdout)["refused"]
        self.assertIn("layout version 99", refused["reason"])
        self.assertEqual(refused["segment"], os.path.basename(self.segment(job)))
        self.assertIn("layout version 99", listing.stderr)

    def test_refuses_truncated(self):
        job = self.start()
        os.truncate(self.segment(job), 5000)
        self.assertIn("truncated: 5000 bytes", self.refusal(str(job.pid)))

    def test_refuses_foreign(self):
        job = self.start()
        self.damage(job, 0, b"ELFELFEL")
        self.assertIn("not a segment of bfcpreload", self.refusal(str(job.pid)))

    def test_many_foreign_files_are_counted(self):
        self.start()
        for number in range(40):  # of another pid namespace, so that they are not known to be dead
            with open(os.path.join(self.folder, f"bfcpreload.{os.getuid()}.1.{1000 + number}"), "wb") as file:
                file.write(b"ELFELFEL" * 512)
        listing = self.bfcstat()
        self.assertEqual(len(listing.stderr.splitlines()), 17, listing.stderr)
        self.assertIn("24 more could not be read", listing.stderr)
        self.assertEqual(len(json.loads(self.bfcstat("--json").stdout)["refused"]), 40)

    def test_many_empty_files(self):
        """As Slurm's epilog may find them: 20 ms for each would be more than bfcstat() waits, room for each too much."""
        for number in range(2000):
            open(os.path.join(self.folder, f"bfcpreload.{os.getuid()}.7.{number + 1}"), "wb").close()
        job = self.start()
        little = (lambda: resource.setrlimit(resource.RLIMIT_AS, (700 << 20, 700 << 20)))
        self.assertIn(str(job.pid), self.bfcstat(preexec_fn=little).stdout)

    def test_damaged_segments_of_the_living_stay(self):
        job = self.start()
        self.damage(job, 0, b"ELFELFEL")
        self.bfcstat()
        self.assertTrue(os.path.exists(self.segment(job)))

    def test_escape_sequences_do_not_reach_the_terminal(self):
        job = self.start()
        with open(self.segment(job), "rb") as file:
            offset = file.read().index(b"made-up --job")
        self.damage(job, offset, b"\x1b[2J\xff")
        self.assertIn("?[2J?up --job", self.shown())
        self.assertNotIn("\x1b", self.shown(str(job.pid)))
        self.assertEqual(
            json.loads(self.shown("--json", str(job.pid)))["command"], "\x1b[2J\ufffdup --job"
        )

    def test_names_unknown_and_unpreloaded_processes(self):
        self.assertIn("no process 2147483647", self.refusal("2147483647"))
        self.assertIn("without bfcpreload", self.refusal(str(os.getpid())))

    def test_names_reasons_for_no_segment(self):
        with tempfile.TemporaryDirectory() as folder, open(os.path.join(folder, "libbfcpreload.so"), "w+b") as file:
            file.write(b"made up")
            file.flush()
            with mmap.mmap(file.fileno(), 0):
                told = self.refusal(str(os.getpid()))
        for reason in "no CUDA allocation yet", "BFC_DISABLE", "BFC_STATS=0", "is full":
            self.assertIn(reason, told)

    def test_usage(self):
        for arguments in (["xyz"], ["0"], ["-5"], ["1", "2"], ["--nonsense"],
                          ["who", "-o", "x", "--diff=1", "1"]):
            self.assertEqual(self.bfcstat(*arguments).returncode, 2, arguments)
        for option, arguments in (("--json", ["trim", "1"]), ("--json", ["plan", "-o", "x", "1"]),
                                  ("--events", ["who", "1"]), ("--device=1", ["1"]), ("--bytes=1", []),
                                  ("--interval=1", ["serve"]), ("-o", ["x", "top"])):
            answer = self.bfcstat(option, *arguments)
            self.assertEqual((answer.returncode, answer.stdout), (2, ""))
            self.assertIn(f"takes no {option.split('=')[0]};", answer.stderr)
        for command in ("who", "plan", "record", "snapshot"):
            self.assertIn("only report writes to standard output", self.bfcstat(command, "-o", "-", "1").stderr)
        for arguments in ["statt"], ["statt", "1"]:
            self.assertEqual(self.bfcstat(*arguments).stderr,
                             "bfcstat: statt: neither a command (top, trim, sleep, wake, who, plan, "
                             "record, snapshot, report, serve) nor a process id\n")
        self.assertIn("usage: bfcstat", self.shown("--help"))
        self.assertRegex(self.shown("--version"), r"^bfcstat \d+\.\d+\.\d+ \(segment layout \d+\)\n$")

    def test_missing_directory(self):
        self.folder = os.path.join(self.folder, "none")
        self.assertIn("No such file", self.refusal())
        self.folder = os.path.dirname(self.folder)

    def check_sweep(self, *flags):
        job = self.start(*flags)
        path = self.segment(job)
        job.kill()
        result = self.bfcstat()
        self.assertEqual((result.returncode, result.stdout), (0, "no jobs\n"))
        self.assertIn(f"removed: process {job.pid} is dead", result.stderr)
        self.assertFalse(os.path.exists(path))

    def test_sweeps_the_dead(self):
        self.check_sweep()

    def test_sweeps_the_dead_by_the_robust_futex(self):
        self.check_sweep("--owner")

    def test_sees_death_before_the_parent_does(self):
        for flags in ([], ["--owner"]):
            job = self.start(*flags)
            job.process.send_signal(signal.SIGKILL)
            os.waitid(os.P_PID, job.pid, os.WEXITED | os.WNOWAIT)  # still a zombie
            self.assertIn(f"process {job.pid} is dead", self.bfcstat().stderr)
            job.wait()

    def test_last_picture_of_the_dead(self):
        job = self.start("--owner", "--spin")
        job.kill()
        result = self.bfcstat("--json", str(job.pid))
        self.assertEqual(result.returncode, 3)
        self.assertEqual(json.loads(result.stdout)["state"], "ended")
        self.assertIn("is dead", result.stderr)
        self.assertIn(f"no process {job.pid}", self.refusal(str(job.pid)))

    def test_job_that_never_rests(self):
        job = self.start("--spin")
        consistent = last = 0
        for _ in range(50):
            (pool,) = json.loads(self.shown("--json", str(job.pid)))["pools"]
            self.assertGreaterEqual(pool["allocations"], last)
            last = pool["allocations"]
            if pool["consistent"]:
                consistent += 1
                self.assertEqual(pool["in_use"] + pool["cached"], pool["reserved"])
                self.assertEqual(pool["hits"] + pool["misses"], pool["allocations"])
        self.assertGreater(consistent, 0)

    def test_does_not_wait_for_a_stopped_job(self):
        job = self.start("--spin", "--owner")
        job.process.send_signal(signal.SIGSTOP)
        begin = time.monotonic()
        self.shown("--json", str(job.pid))
        self.assertLess(time.monotonic() - begin, 10)
        job.process.send_signal(signal.SIGCONT)


if __name__ == "__main__":
    unittest.main(verbosity=1)
