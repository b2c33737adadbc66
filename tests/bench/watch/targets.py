#!/usr/bin/env python3
"""A thousand nodes in one process, and what they cost a Prometheus: targets.py BFCSTAT FAKE_JOB PROMETHEUS.

One process answers for TARGETS nodes at different paths with what `bfcstat serve` said of JOBS made-up jobs;
counters rise and gauges move from scrape to scrape. Prints what Prometheus needed for SECONDS of it.
"""

import glob
import http.server
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

TARGETS, JOBS, SECONDS, INTERVAL = (int(os.environ.get(name, default)) for name, default in
                                    (("TARGETS", 1000), ("JOBS", 1), ("SECONDS", 120), ("INTERVAL", 15)))


def real_answer(bfcstat, fake_job):
    with tempfile.TemporaryDirectory(prefix="bfc-targets-", dir="/dev/shm") as folder:
        jobs = [subprocess.Popen([fake_job, folder, "--owner"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                for _ in range(JOBS)]
        for job in jobs:
            job.stdout.readline()
        text = subprocess.run([bfcstat, "--prometheus", f"--directory={folder}"], check=True, capture_output=True,
                              text=True).stdout
        for job in jobs:
            job.stdin.close()
            job.wait()
    return text


class Nodes(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    lines, scrapes, bytes_sent = [], 0, 0

    def do_GET(self):
        Nodes.scrapes += 1
        step = Nodes.scrapes // TARGETS
        text = "".join(name if value is None else f"{name} {value + step * (1 + int(value) % 977)}\n"
                       for name, value in Nodes.lines).encode()
        Nodes.bytes_sent += len(text)
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def handle(self):
        try:
            super().handle()
        except ConnectionError:  # Prometheus ends
            pass

    def log_message(self, *_):
        pass


def take_apart(text):
    for line in text.splitlines(keepends=True):
        name, _, value = line.rpartition(" ")
        yield (line, None) if line.startswith("#") else (name, float(value))


CONFIGURATION = """
global: {{scrape_interval: {interval}s, scrape_timeout: {interval}s}}
scrape_configs:
  - job_name: nodes
    static_configs:
{targets}
    relabel_configs:
      - {{source_labels: [__address__], target_label: __metrics_path__, regex: '.*/(.*)', replacement: '/$1'}}
      - {{source_labels: [__address__], target_label: instance, regex: '.*/(.*)', replacement: 'node$1'}}
      - {{target_label: __address__, replacement: '127.0.0.1:{port}'}}
"""


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def query(port, text):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?query={text}") as answer:
        return float(json.load(answer)["data"]["result"][0]["value"][1])


def own_figure(port, name):
    """Of Prometheus itself, which does not scrape itself here."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.split("{")[0].split(" ")[0] == name)


def bytes_below(folder):
    return sum(os.path.getsize(name) for name in glob.glob(folder + "/**", recursive=True) if os.path.isfile(name))


def report(prometheus, port, folder):
    with open(f"/proc/{prometheus.pid}/status", encoding="utf-8") as file:
        most = int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1)) * 1024
    series = own_figure(port, "prometheus_tsdb_head_series")
    samples = own_figure(port, "prometheus_tsdb_head_samples_appended_total")
    took = query(port, "max(scrape_duration_seconds)")
    up = query(port, "sum(up)")
    busy = processor_seconds(prometheus.pid)
    log = bytes_below(os.path.join(folder, "data", "wal"))
    print(f"targets up: {up:.0f} of {TARGETS}; series: {series:.0f}; samples: {samples:.0f}")
    print(f"slowest scrape: {took:.3f} s (of {INTERVAL} s between two)")
    print(f"Prometheus: {busy:.1f} s of processor time, {busy / samples * 1e6:.2f} us a sample; "
          f"{most / 2**20:.0f} MiB, {most / series:.0f} bytes a series; log {log / samples:.1f} bytes a sample")
    print(f"answers: {Nodes.bytes_sent / Nodes.scrapes:.0f} bytes each, {Nodes.bytes_sent / 2**20:.0f} MiB in all")


def main():
    bfcstat, fake_job, prometheus = sys.argv[1:]
    Nodes.lines = list(take_apart(real_answer(bfcstat, fake_job)))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Nodes)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="bfc-targets-") as folder:
        targets = "\n".join(f"      - targets: ['localhost/{n}']" for n in range(TARGETS))
        path = os.path.join(folder, "prometheus.yml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(interval=INTERVAL, targets=targets, port=server.server_port))
        with open(os.path.join(folder, "log"), "w", encoding="utf-8") as log:
            process = subprocess.Popen(
                [prometheus, f"--config.file={path}", f"--storage.tsdb.path={folder}/data",
                 f"--web.listen-address=127.0.0.1:{server.server_port + 1}"], stdout=log, stderr=log)
            try:
                time.sleep(SECONDS)
                report(process, server.server_port + 1, folder)
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait()


if __name__ == "__main__":
    main()
