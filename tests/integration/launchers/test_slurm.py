#!/usr/bin/env python3
"""Slurm's daemons on this machine, with the recipe of packaging/slurm: ranks, steps, what is left of a kill.

Needs root, and slurmctld, slurmd and munged, which it starts with files and ports of its own.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ROOT, LIBRARY, BFCSTAT, SIM, TRAIN = (os.environ[name] for name in
                                      ("SOURCE_ROOT", "LIBRARY", "BFCSTAT", "SIM_DIR", "TRAIN"))
CONFIGURATION = """
ClusterName=trial
SlurmctldHost={host}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
SlurmctldPort={controller}
SlurmdPort={node}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
SchedulerParameters=sched_interval=1
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
KillWait=1
TaskProlog={root}/packaging/slurm/task-prolog
Epilog={root}/packaging/slurm/epilog
NodeName={host} NodeAddr=127.0.0.1 CPUs={processors} State=UNKNOWN
PartitionName=trial Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Cluster:
    def __init__(self, folder):
        self.folder, self.daemons = folder, []
        for name in ("state", "spool", "munge", "bin"):
            os.mkdir(os.path.join(folder, name))
        os.symlink(BFCSTAT, os.path.join(folder, "bin", "bfcstat"))
        self.path = os.path.join(folder, "slurm.conf")
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(folder=folder, root=ROOT, host=socket.gethostname().split(".")[0],
                                            controller=free_port(), node=free_port(),
                                            processors=os.cpu_count()))
        self.environment = dict(os.environ, SLURM_CONF=self.path, LD_LIBRARY_PATH=SIM, BFC_LIBRARY=LIBRARY,
                                SIM_MEMORY="4G")

    def start(self, *command):
        log = open(os.path.join(self.folder, "log"), "ab")
        self.daemons.append(subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log,
                                             stderr=log))
        log.close()

    def start_all(self):
        munge = os.path.join(self.folder, "munge")
        with open(f"{munge}/key", "wb") as file:
            file.write(os.urandom(128))
        os.chmod(f"{munge}/key", 0o400)
        os.chmod(munge, 0o755)
        self.start("munged", "--foreground", "--force", f"--key-file={munge}/key", f"--socket={munge}/socket",
                   f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed")
        self.until(lambda: os.path.exists(f"{munge}/socket"), "munged")
        self.start("slurmctld", "-D", "-f", self.path)
        self.start("slurmd", "-D", "-f", self.path)
        self.until(lambda: "idle" in self.run("sinfo", "-h", "-o", "%T"), "the node")

    def until(self, is_so, what):
        for _ in range(2000):
            if is_so():
                return
            time.sleep(0.1)
        logs = [open(os.path.join(self.folder, name), errors="replace").read()[-2000:]
                for name in ("log", "slurmctld.log", "slurmd.log") if os.path.exists(f"{self.folder}/{name}")]
        sys.exit(f"{what}: not within minutes\n" + "\n".join(logs))

    def run(self, *command):
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60).stdout

    def stop(self):
        for daemon in reversed(self.daemons):
            daemon.terminate()
            daemon.wait()


def jobs(*arguments):
    shown = subprocess.run([BFCSTAT, "--json", *arguments], capture_output=True, text=True)
    return json.loads(shown.stdout)["jobs"] if shown.stdout else []


def check(cluster):
    script = f"#!/bin/sh\nsrun --overlap -n 2 {TRAIN} 1000000 5 &\nsrun --overlap -n 1 {TRAIN} 1000000 5 &\nwait\n"
    path = os.path.join(cluster.folder, "job.sh")
    with open(path, "w", encoding="utf-8") as file:
        file.write(script)
    job = cluster.run("sbatch", "--parsable", "-n", "2", "--overcommit", "-o", f"{cluster.folder}/output", path).strip()
    cluster.until(lambda: len([j for j in jobs(f"--slurm-job={job}") if j["pools"]]) == 3, "three tasks in bfcstat")
    found = jobs(f"--slurm-job={job}")
    assert sorted(j["rank"] for j in found) == [0, 0, 1], found
    assert {j["job"] for j in found} == {job}, found
    steps = [len(jobs(f"--slurm-job={job}.{step}")) for step in (0, 1)]
    assert sorted(steps) == [1, 2], steps
    assert subprocess.run([BFCSTAT, "--slurm-job=999999"], capture_output=True).returncode == 1
    metrics = subprocess.run([BFCSTAT, "--prometheus", f"--slurm-job={job}"], capture_output=True, text=True).stdout
    assert f'slurm_job="{job}",slurm_step="0"' in metrics and 'rank="1"' in metrics, metrics[-3000:]
    print(subprocess.run([BFCSTAT, f"--slurm-job={job}"], capture_output=True, text=True).stdout)
    segments = [j["segment"] for j in found]
    cluster.run("scancel", "--signal=KILL", "--full", job)
    cluster.until(lambda: not cluster.run("squeue", "-h", "-j", job).strip(), "the end of the job")
    cluster.until(lambda: not any(os.path.exists("/dev/shm/" + name) for name in segments), "the epilog")
    print(f"job {job}: killed, and its {len(segments)} segments are gone")


def main():
    missing = [name for name in ("slurmctld", "slurmd", "srun", "munged", "setpriv") if not shutil.which(name)]
    if missing or os.getuid() != 0:
        print("needs root, and " + ", ".join(missing) if missing else "needs root")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="bfc-slurm-") as folder:
        os.chmod(folder, 0o755)
        cluster = Cluster(folder)
        try:
            cluster.start_all()
            check(cluster)
        finally:
            cluster.stop()


if __name__ == "__main__":
    main()
