#!/usr/bin/env python3
"""What `bfcstat serve` costs: scrape.py BFCSTAT FAKE_JOB [JOBS...].

For each number of jobs (1, 64 and 1000 unless given), made up and of four users where this is root: series
and bytes of an answer, processor time of a scrape once the jobs are known, and the most memory.
"""

import gzip
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request

SCRAPES = 5


def start_jobs(fake_job, folder, number):
    users = [5001, 5002, 5003, 5004] if os.getuid() == 0 else [os.getuid()]
    jobs = [subprocess.Popen([fake_job, folder, "--owner"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             user=users[i % len(users)]) for i in range(number)]
    for job in jobs:
        job.stdout.readline()
    return jobs


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def most_memory(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1)) // 1024


def measure(bfcstat, folder):
    exporter = subprocess.Popen([bfcstat, "serve", "--listen=localhost:0", f"--directory={folder}"],
                                stderr=subprocess.PIPE, text=True)
    address = re.search(r"http\S+", exporter.stderr.readline()).group(0).replace("localhost", "127.0.0.1")
    begun = time.monotonic()
    answer = urllib.request.urlopen(address).read()
    good_for = max(1.1, 5 * (time.monotonic() - begun))  # an answer is good for a second, or 4 times what it took
    before = processor_seconds(exporter.pid)
    for _ in range(SCRAPES):
        time.sleep(good_for)
        answer = urllib.request.urlopen(address).read()
    each = (processor_seconds(exporter.pid) - before) / SCRAPES
    series = sum(not line.startswith(b"#") for line in answer.splitlines())
    found = [series, len(answer), len(gzip.compress(answer)), f"{each * 1000:.0f} ms", f"{most_memory(exporter.pid)} MiB"]
    exporter.terminate()
    exporter.communicate()
    return found


def main():
    bfcstat, fake_job, *numbers = sys.argv[1:]
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    print("jobs: series, bytes, compressed, processor time of a scrape, most memory")
    for number in map(int, numbers or (1, 64, 1000)):
        with tempfile.TemporaryDirectory(prefix="bfc-scrape-", dir="/dev/shm") as folder:
            os.chmod(folder, 0o1777)
            jobs = start_jobs(fake_job, folder, number)
            print(f"{number}:", *measure(bfcstat, folder))
            for job in jobs:
                job.stdin.close()
            for job in jobs:
                job.wait()


if __name__ == "__main__":
    main()
