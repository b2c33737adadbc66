#!/usr/bin/env python3
"""bfcstat serve: requests good and bad, many at once, and Prometheus itself where it is installed."""

import concurrent.futures
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

BFCSTAT, FAKE_JOB, CROWDED_JOBS, HOSTILE_JOBS = (
    os.environ[name] for name in ("BFCSTAT", "FAKE_JOB", "CROWDED_JOBS", "HOSTILE_JOBS"))
PACKAGING = os.path.join(os.environ["BUILD_ROOT"], "packaging")
UNIT, DASHBOARD = (os.path.join(PACKAGING, name) for name in ("bfcstat.service", "dashboard.json"))
ALERTS = os.path.join(os.environ["SOURCE_ROOT"], "packaging", "alerts.yml")
OPEN_METRICS = "application/openmetrics-text"
HELP = subprocess.run([BFCSTAT, "serve", "--listen=nowhere"], capture_output=True, text=True)


class Exporter:
    """A running exporter on a port of its own."""

    def __init__(self, folder, listen="localhost:0", *wrapper):
        self.process = subprocess.Popen([*wrapper, BFCSTAT, "serve", f"--listen={listen}", f"--directory={folder}"],
                                        stderr=subprocess.PIPE, text=True)
        said = self.process.stderr.readline()
        self.port = int(re.search(r":(\d+)/metrics", said).group(1))

    def stop(self):
        self.process.terminate()
        self.process.wait(10)
        self.process.stderr.close()

    def raw(self, request):
        """What is answered to the bytes of a request, which need not be taken to their end."""
        answer = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            try:
                connection.sendall(request)
                while part := connection.recv(65536):
                    answer += part
            except ConnectionError:
                pass
        return answer

    def get(self, path="/metrics", **headers):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.headers["Content-Type"], answer.read().decode()


def others_may_run(program):
    return os.getuid() == 0 and shutil.which("setpriv") and subprocess.run(
        ["setpriv", "--reuid=5001", "--regid=5001", "--clear-groups", "test", "-x", program]).returncode == 0


def samples(text):
    """Series and their values."""
    lines = [line for line in text.splitlines() if line and line[0] != "#"]
    return {line.rpartition(" ")[0]: line.rpartition(" ")[2] for line in lines}


@unittest.skipIf("built without" in HELP.stderr, "built without libmicrohttpd")
class Serve(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="bfcstat-serve-")
        self.addCleanup(shutil.rmtree, self.folder)

    def job(self, **more):
        job = subprocess.Popen([FAKE_JOB, self.folder, "--owner"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True, **more)
        job.stdout.readline()
        self.addCleanup(lambda: (job.stdin.close(), job.wait(), job.stdout.close()))
        return job

    def exporter(self, *arguments):
        exporter = Exporter(self.folder, *arguments)
        self.addCleanup(exporter.stop)
        return exporter

    def test_formats(self):
        self.job()
        exporter = self.exporter()
        kind, text = exporter.get()
        self.assertTrue(kind.startswith("text/plain; version=0.0.4"), kind)
        self.assertEqual(samples(text)["bfcpreload_jobs"], "1")
        self.assertIn("# TYPE bfcpreload_hits_total counter\n", text)
        self.assertNotIn("made-up --job", text)
        kind, text = exporter.get(Accept=f"{OPEN_METRICS};version=1.0.0,text/plain;q=0.5")
        self.assertTrue(kind.startswith(OPEN_METRICS), kind)
        self.assertIn("# TYPE bfcpreload_hits counter\n", text)
        self.assertTrue(text.endswith("\n# EOF\n"))

    def test_openmetrics_by_its_reference_parser(self):
        try:
            from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
        except ImportError:
            self.skipTest("prometheus_client is not installed")
        self.job()
        families = {family.name: family for family in parse(self.exporter().get(Accept=OPEN_METRICS)[1])}
        self.assertEqual(families["bfcpreload_free_seconds"].type, "histogram")

    def test_labels_and_histograms(self):
        job = self.job()
        found = samples(self.exporter().get()[1])
        series = [name for name in found if name.startswith("bfcpreload_in_use_bytes{")]
        self.assertEqual(len(series), 1)
        for label in (f'pid="{job.pid}"', 'comm="fake_job"', 'gpu="0"', 'UUID="GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"',
                      'rank="3"', 'job_name="made-up.1"'):
            self.assertIn(label, series[0])
        for name in ("allocation_seconds", "free_seconds", "host_wait_duration_seconds"):
            buckets = [int(value) for series, value in found.items() if f"{name}_bucket" in series]
            self.assertEqual(buckets, sorted(buckets))
            count, = (value for series, value in found.items() if f"{name}_count" in series)
            self.assertEqual(buckets[-1], int(count))

    def test_jobs_that_cannot_be_read_are_counted(self):
        self.job()
        path = os.path.join(self.folder, f"bfcpreload.{os.getuid()}.7.{os.getpid()}")
        with open(path, "wb") as file:
            file.write(b"x" * 5000)
        os.chmod(path, 0o600)
        found = samples(self.exporter().get()[1])
        self.assertEqual((found["bfcpreload_jobs"], found["bfcpreload_unreadable_jobs"]), ("1", "1"))

    def test_many_segments_of_one_user(self):
        """A bound on the jobs of a user, which is said, and no other's job is lost."""
        for number in range(400):
            with open(os.path.join(self.folder, f"bfcpreload.{os.getuid()}.7.{number + 1}"), "wb"):
                pass
        found = samples(self.exporter().get()[1])
        self.assertEqual(found["bfcpreload_left_out_jobs"], "144")
        self.assertEqual(found["bfcpreload_unreadable_jobs"], "256")

    def crowd(self, uid, users, jobs, pools, contexts):
        subprocess.run([CROWDED_JOBS, self.folder, *map(str, (uid, users, jobs, pools, contexts))], check=True)

    def test_many_pools_of_one_user(self):
        """An answer of 256 jobs with 32 pools each would be 700,000 series."""
        self.crowd(os.getuid(), 1, 20, 32, 32)
        found = samples(self.exporter().get()[1])
        shown = [name for name in found if name.startswith("bfcpreload_in_use_bytes{")]
        self.assertEqual((len(shown), found["bfcpreload_left_out_pools"]), (512, "128"))

    def test_each_series_once(self):
        """Whatever a segment says: of pools with the same labels the first is shown."""
        self.crowd(os.getuid(), 1, 1, 32, 3)
        lines = [line.rpartition(" ")[0] for line in self.exporter().get()[1].splitlines() if line[0] != "#"]
        self.assertEqual(len(lines), len(set(lines)))
        self.assertEqual(len([line for line in lines if line.startswith("bfcpreload_in_use_bytes{")]), 3)

    @unittest.skipUnless(os.getuid() == 0, "needs root, to make files of other users")
    def test_a_user_with_subordinate_ids(self):
        """65,536 of them, with a job each: others' jobs are still shown."""
        victim = self.job()  # first: folders list what is new before
        self.crowd(100000, 65536, 1300, 1, 1)
        found = samples(self.exporter().get()[1])
        shown = [name for name in found if name.startswith(f'bfcpreload_in_use_bytes{{pid="{victim.pid}",')]
        self.assertEqual(len(shown), 1)
        self.assertEqual(found["bfcpreload_left_out_jobs"], "900")

    def test_no_false_zero(self):
        gone = os.path.join(self.folder, "gone")
        os.mkdir(gone)
        exporter = Exporter(gone)
        self.addCleanup(exporter.stop)
        os.rmdir(gone)
        answer = exporter.raw(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertNotIn(b"bfcpreload_jobs 0", answer)
        self.assertTrue(answer.startswith(b"HTTP/1.1 500 "), answer)
        self.assertIn(gone.encode(), answer)

    def test_bad_requests(self):
        exporter = self.exporter()
        for request, status in ((b"GET /none HTTP/1.1\r\nHost: x\r\n\r\n", b"404"),
                                (b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", b"405"),
                                (b"DELETE / HTTP/1.1\r\nHost: x\r\n\r\n", b"405"),
                                (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"200"),
                                (b"HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n", b"200"),
                                (b"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", b"200"),
                                (b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", b"4"),
                                (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 40000 + b"\r\n\r\n", b"4")):
            answer = exporter.raw(request)
            self.assertTrue(answer.startswith(b"HTTP/1.1 " + status), (request[:60], answer[:60]))
        for rubbish in (b"\0" * 20000, b"\xff\xfe\r\n\r\n", b"GET\r\n\r\n", b"GET /" + b"\r\n" * 20000):
            with socket.create_connection(("127.0.0.1", exporter.port)) as connection:
                connection.sendall(rubbish)
        self.assertEqual(samples(exporter.get()[1])["bfcpreload_jobs"], "0")

    def test_slow_and_many(self):
        self.job()
        exporter = self.exporter()
        idle = [socket.create_connection(("127.0.0.1", exporter.port)) for _ in range(30)]
        for connection in idle:
            connection.sendall(b"GET /met")
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(lambda _: exporter.get()[1], range(300)))
        self.assertEqual({samples(text)["bfcpreload_jobs"] for text in answers}, {"1"})
        for connection in idle:
            connection.close()
        self.assertLess(len(os.listdir(f"/proc/{exporter.process.pid}/fd")), 100)

    def test_who_asks_nothing_makes_room(self):
        """More connections than are taken, from anybody on this machine, keep nobody out."""
        exporter = self.exporter()
        idle = [socket.create_connection(("127.0.0.1", exporter.port)) for _ in range(700)]
        for connection in idle:
            self.addCleanup(connection.close)
            connection.setblocking(False)
            with contextlib.suppress(OSError):  # it is turned out already
                connection.send(b"GET /met")
        self.assertEqual(samples(exporter.get()[1])["bfcpreload_jobs"], "0")

    def test_few_files(self):
        """Where a process may open few files: more are asked for, or it says so."""
        few = ["prlimit", "--nofile=32:"]
        exporter = self.exporter("localhost:0", *few)
        with open(f"/proc/{exporter.process.pid}/limits", encoding="utf-8") as file:
            self.assertGreater(int(re.search(r"Max open files +(\d+)", file.read())[1]), 1536)
        refused = subprocess.run(["prlimit", "--nofile=32:32", BFCSTAT, "serve", "--listen=localhost:0"],
                                 capture_output=True, text=True, timeout=60)
        self.assertEqual((refused.returncode, refused.stderr),
                         (1, "bfcstat: serve needs 1600 open files; the limit (ulimit -Hn) is 32\n"))

    def test_who_takes_no_answer_makes_room(self):
        """Answers that nobody takes are kept up to a bound. (On a slow machine there are fewer of them.)"""
        self.crowd(os.getuid(), 1, 16, 32, 32)
        exporter = self.exporter()
        guests = []
        for _ in range(16):
            guest = socket.socket()
            self.addCleanup(guest.close)
            guest.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            guest.connect(("127.0.0.1", exporter.port))
            guest.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            guests.append(guest)
            for each in guests:
                self.take(each, 700_000)  # some: who takes nothing is turned out for being idle
            time.sleep(1.1)  # an answer is good for a second
        with open(f"/proc/{exporter.process.pid}/status", encoding="utf-8") as file:
            most = int(re.search(r"VmHWM:\s+(\d+) kB", file.read())[1])
        self.assertLess(most, 220_000)
        self.assertEqual(samples(exporter.get()[1])["bfcpreload_jobs"], "16")

    def take(self, guest, most):
        with contextlib.suppress(ConnectionError):
            while most > 0 and (part := guest.recv(most)):
                most -= len(part)

    def test_ends_when_told(self):
        exporter = Exporter(self.folder)
        exporter.process.send_signal(signal.SIGTERM)
        self.assertEqual(exporter.process.wait(30), 0)
        exporter.process.stderr.close()

    def test_where_it_listens(self):
        exporter = self.exporter("127.0.0.1:0")
        for listen in ("nowhere", "localhost", "localhost:x", "::1:9420", "localhost:99999999"):
            refused = subprocess.run([BFCSTAT, "serve", f"--listen={listen}"], capture_output=True, text=True)
            self.assertEqual(refused.returncode, 2, refused)
            self.assertIn("expected ADDRESS:PORT", refused.stderr)
        taken = subprocess.run([BFCSTAT, "serve", f"--listen=127.0.0.1:{exporter.port}"], capture_output=True,
                               text=True)
        self.assertEqual(taken.returncode, 1, taken)
        self.assertIn("in use", taken.stderr)

    def test_all_addresses(self):
        exporter = self.exporter(":0")
        taken = subprocess.run([BFCSTAT, "serve", f"--listen=:{exporter.port}"], capture_output=True, text=True)
        self.assertIn("in use", taken.stderr)
        socket.create_connection(("127.0.0.1", exporter.port), timeout=60).close()
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError as error:
            self.skipTest(f"no IPv6 here: {error}")
        socket.create_connection(("::1", exporter.port), timeout=60).close()

    @unittest.skipUnless(os.getuid() == 0 and shutil.which("setpriv"), "needs root, to be another user")
    def test_other_users(self):
        """Without rights it says so; with one capability it reads all."""
        self.job()
        os.chmod(self.folder, 0o755)
        someone = ["setpriv", "--reuid=1234", "--regid=1234", "--clear-groups"]
        plain = self.exporter("localhost:0", *someone)
        found = samples(plain.get()[1])
        self.assertEqual((found["bfcpreload_jobs"], found["bfcpreload_unreadable_jobs"]), ("0", "1"))
        capable = self.exporter("localhost:0", *someone, "--inh-caps=-all,+dac_read_search",
                                "--ambient-caps=-all,+dac_read_search")
        found = samples(capable.get()[1])
        self.assertEqual((found["bfcpreload_jobs"], found["bfcpreload_unreadable_jobs"]), ("1", "0"))

    @unittest.skipUnless(others_may_run(HOSTILE_JOBS), "needs root, setpriv, and a build folder for all to read")
    def test_a_hostile_user(self):
        """His files neither hide nor change another's job, nor take its name, nor stop the exporter."""
        os.chmod(self.folder, 0o1777)
        attack = subprocess.Popen([HOSTILE_JOBS, self.folder, "5002", str(os.getpid())], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True, user=5001, group=5001)
        attack.stdout.readline()
        self.addCleanup(lambda: (attack.stdin.close(), attack.wait(), attack.stdout.close()))
        victim = self.job(user=5002, group=5002)
        capable = self.exporter("localhost:0", "setpriv", "--reuid=5003", "--regid=5003", "--clear-groups",
                                "--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search",
                                "--bounding-set=-all,+dac_read_search")
        with open("/proc/self/comm", encoding="utf-8") as file:
            own_name = file.read().strip()
        for _ in range(3):
            found = samples(capable.get()[1])
            mine = [v for name, v in found.items() if name.startswith(f'bfcpreload_in_use_bytes{{pid="{victim.pid}",')]
            self.assertEqual(mine, ["62914560"])
            self.assertEqual(found["bfcpreload_impostor_segments"], "2000")
            self.assertGreater(int(found["bfcpreload_left_out_jobs"]), 100)
            self.assertFalse([name for name in found if 'user="5001"' in name and f'comm="{own_name}"' in name])
            time.sleep(1.1)  # an answer is good for a second
        self.assertLess(len(os.listdir(f"/proc/{capable.process.pid}/fd")), 30 + 256)  # so many files of a user are kept open

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed")
    def test_promtool(self):
        self.job()
        checked = subprocess.run(["promtool", "check", "metrics"], input=self.exporter().get()[1], text=True,
                                 capture_output=True)
        self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed")
    def test_alert_rules(self):
        checked = subprocess.run(["promtool", "check", "rules", ALERTS], capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd is not installed")
    def test_unit(self):
        unit = os.path.join(self.folder, "bfcstat.service")
        with open(UNIT, encoding="utf-8") as file, open(unit, "w", encoding="utf-8") as copy:
            copy.write(re.sub(r"ExecStart=\S+", f"ExecStart={BFCSTAT}", file.read()))
        checked = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
        self.assertNotIn(unit, checked.stderr)
        rated = subprocess.run(["systemd-analyze", "security", "--offline=yes", unit], capture_output=True, text=True)
        if "Overall exposure level" in rated.stdout:  # older ones cannot rate a file
            self.assertIn(" OK ", rated.stdout.splitlines()[-1])

    def queries(self):
        """All of the dashboard's, its variables replaced."""
        with open(DASHBOARD, encoding="utf-8") as file:
            for panel in json.load(file)["panels"]:
                for target in panel["targets"]:
                    yield re.sub(r"\$(instance|user|UUID)", ".*", target["expr"]).replace("$__rate_interval", "1m")

    def test_dashboard_asks_for_what_there_is(self):
        """Every metric, and every label that a query chooses or sums by, or a legend names."""
        self.job()
        text = self.exporter().get()[1]
        labels = {name: {"instance", "job"} for name in re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)}
        for series in samples(text):
            labels.setdefault(series.partition("{")[0], {"instance", "job"}).update(re.findall(r'(\w+)="', series))
        with open(DASHBOARD, encoding="utf-8") as file:
            dashboard = json.load(file)
        variables = {variable["name"]: variable["query"] for variable in dashboard["templating"]["list"]}
        for name, query in variables.items():
            if name != "source":
                metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", query).groups()
                self.assertIn(label, labels[metric], query)
        places = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in dashboard["panels"]]
        self.assertEqual(len(places), len(set(places)))
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                query, legend = target["expr"], target["legendFormat"]
                self.assertLessEqual(set(re.findall(r"\$(\w+)", query + panel["title"])), {*variables, "__rate_interval"})
                asked = re.findall(r"(bfcpreload_\w+)(?:\{([^}]*)\})?", query)
                self.assertTrue(asked, query)
                summed = re.search(r"\bby \(([^)]*)\)", query)
                left = set(re.findall(r"\w+", summed[1])) - {"le"} if summed else set() if "sum(" in query else None
                for metric, chosen in asked:
                    there = labels[metric]
                    self.assertLessEqual({*re.findall(r"(\w+)=", chosen), *(left or ())}, there, query)
                    self.assertLessEqual(set(re.findall(r"{{(\w+)}}", legend)), there if left is None else left, query)

    def test_ended_jobs_are_counted(self):
        """By user and device, also where a job lived between two scrapes; not those from before the exporter."""
        self.job()
        exporter = self.exporter()
        names = [f"bfcpreload_user_{name}_total" for name in ("jobs_ended", "allocations", "misses", "out_of_memory")]

        def counts():
            found = samples(exporter.get()[1])
            series = {name.partition("{")[0]: int(value) for name, value in found.items() if name.startswith("bfcpreload_user_")}
            return [series[name] for name in names]

        self.assertEqual(counts(), [0, 0, 0, 0])
        for _ in range(3):
            job = self.job()
            segment, = (name for name in os.listdir(self.folder) if name.endswith(f".{job.pid}"))
            os.unlink(os.path.join(self.folder, segment))
            job.stdin.close()
            job.wait()
        time.sleep(1.1)  # an answer is good for a second
        self.assertEqual(counts(), [3, 6000, 3, 3])
        text = exporter.get()[1]
        self.assertRegex(text, r'bfcpreload_user_jobs_ended_total\{UUID="GPU-00010203-0405-0607-0809-0a0b0c0d0e0f",'
                               r'pci_bus_id="0000:3B:00.0",user="[^"]+"\} 3\n')

    def test_a_folder_that_is_made_anew(self):
        exporter = self.exporter()
        os.rmdir(self.folder)
        os.mkdir(self.folder)
        exporter.get()
        self.job()
        time.sleep(1.1)  # an answer is good for a second
        found = samples(exporter.get()[1])
        self.assertEqual([value for name, value in found.items() if "user_allocations_total" in name], ["2000"])

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed")
    def test_the_alert_for_out_of_memory(self):
        """Fires when a count rises, and when a series begins above 0, for five minutes; not for what was before."""
        labels = '{user="a",UUID="GPU-0",pci_bus_id="0000:3B:00.0"}'
        name = "bfcpreload_user_out_of_memory_total"
        alert = {"exp_labels": {"severity": "warning", "user": "a", "UUID": "GPU-0", "pci_bus_id": "0000:3B:00.0"},
                 "exp_annotations": {"summary": "a job of a ran out of memory on GPU-0 (0000:3B:00.0)"}}
        moments = (("0x9 1x30", "9m", []), ("0x9 1x30", "11m", [alert]), ("0x9 1x30", "20m", []),
                   ("_x9 1x30", "11m", [alert]), ("_x9 1x30", "20m", []), ("_x9 0x30", "11m", []))
        with open(os.path.join(self.folder, "rules.yml"), "w", encoding="utf-8") as file:
            json.dump({"rule_files": [ALERTS], "tests": [
                {"interval": "1m", "input_series": [{"series": name + labels, "values": values}],
                 "alert_rule_test": [{"eval_time": at, "alertname": "BfcpreloadOutOfMemory", "exp_alerts": alerts}]}
                for values, at, alerts in moments]}, file)
        tested = subprocess.run(["promtool", "test", "rules", file.name], capture_output=True, text=True)
        self.assertEqual(tested.returncode, 0, tested.stdout + tested.stderr)

    @unittest.skipUnless(shutil.which("prometheus"), "prometheus is not installed")
    def test_prometheus_scrapes_it(self):
        self.job()
        exporter = self.exporter()
        config = os.path.join(self.folder, "prometheus.yml")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"global": {"scrape_interval": "1s"}, "rule_files": [ALERTS], "scrape_configs": [
                {"job_name": "bfcpreload", "static_configs": [{"targets": [f"127.0.0.1:{exporter.port}"]}]}]}, file)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        prometheus = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={self.folder}/data",
             f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: (prometheus.kill(), prometheus.wait()))

        def fetch(path):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{path}", timeout=10) as answer:
                return json.load(answer)["data"]

        def ask(query):
            return fetch("query?query=" + urllib.parse.quote(query))["result"]

        result = []
        while not result and prometheus.poll() is None:
            time.sleep(0.2)
            try:
                result = ask("bfcpreload_in_use_bytes")
            except OSError:
                pass  # it is starting
        self.assertEqual([series["value"][1] for series in result], ["62914560"])
        alerts = [rule["query"] for group in fetch("rules")["groups"] for rule in group["rules"]]
        for query in [*self.queries(), *alerts]:
            answer = ask(query)  # an error would be raised
            self.assertTrue(answer or query in alerts or "rate(" in query or "increase(" in query, query)
        for metric in sorted(set(re.findall(r"\b(?:bfcpreload_\w+|up)\b", " ".join([*self.queries(), *alerts])))):
            self.assertTrue(ask(metric), metric)


if __name__ == "__main__":
    unittest.main(verbosity=1)
