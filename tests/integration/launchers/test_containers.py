#!/usr/bin/env python3
"""Containers without containers: users, pid and IPC namespaces and /dev/shm as Kubernetes lays them out.

Needs root for the namespaces. The manifests and the Containerfile are checked where kubernetes-validate and
hadolint are installed, in the Python that LAUNCHERS_PYTHON names or in the PATH.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT, LIBRARY, BFCSTAT, SIM, TRAIN = (os.environ[name] for name in
                                      ("SOURCE_ROOT", "LIBRARY", "BFCSTAT", "SIM_DIR", "TRAIN"))
TOOLS = os.pathsep.join([os.path.dirname(os.environ.get("LAUNCHERS_PYTHON", "")), os.environ["PATH"]])
NAMESPACES = ["unshare", "--mount", "--pid", "--ipc", "--fork", "--mount-proc", "--kill-child"]


def as_user(user, *capabilities):
    kept = "-all" + "".join(",+" + name for name in capabilities)
    words = [f"--{kind}={kept}" for kind in ("inh-caps", "ambient-caps", "bounding-set")]
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *words]


def works(*command):
    return subprocess.run(command, capture_output=True).returncode == 0


def may_try():
    """As root, with the right to make namespaces, and a build folder that other users may read."""
    return (os.getuid() == 0 and shutil.which("setpriv") and shutil.which("nsenter") and
            works(*NAMESPACES, "mount", "-t", "tmpfs", "none", "/dev/shm") and works(*as_user(5001), "test", "-x", TRAIN))


def bfcstat(*arguments, wrapper=()):
    return subprocess.run([*wrapper, BFCSTAT, *arguments], capture_output=True, text=True, timeout=60)


def samples(text, name):
    return [line for line in text.splitlines() if line.startswith(f"bfcpreload_{name}")]


class Job:
    """A container: namespaces of its own, a user, and what `mount` puts at /dev/shm."""

    def __init__(self, user, mount):
        script = f'{mount} && exec {" ".join(as_user(user))} "$0" 20 10 pause'
        environment = dict(os.environ, LD_PRELOAD=LIBRARY, LD_LIBRARY_PATH=SIM, SIM_MEMORY="4G",
                           BFC_NOT="sh:dash:bash:mount:setpriv:unshare")
        self.process = subprocess.Popen([*NAMESPACES, "sh", "-c", script, TRAIN], env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdout.readline()  # printed when warm
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="utf-8") as file:
            self.pid = int(file.read().split()[0])

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@unittest.skipUnless(may_try(), "needs root, setpriv, nsenter, namespaces, and a build folder for all to read")
class Containers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="bfc-containers-", dir="/dev/shm")
        os.chmod(self.folder, 0o1777)
        self.addCleanup(shutil.rmtree, self.folder)

    def job(self, user, mount=None):
        job = Job(user, mount or f"mount --bind {self.folder} /dev/shm")
        self.addCleanup(job.stop)
        return job

    def test_two_users_and_the_nodes_folder(self):
        """As exporter.yaml: one /dev/shm, and an exporter with one capability."""
        self.job(5001)
        self.job(5002)
        here = f"--directory={self.folder}"
        text = bfcstat("--prometheus", here, wrapper=as_user(5003, "dac_read_search")).stdout
        series = samples(text, "in_use_bytes{")
        self.assertEqual(sorted(re.search(r'user="(\d+)"', line).group(1) for line in series), ["5001", "5002"])
        self.assertEqual(len({re.search(r'pid_namespace="(\d+)"', line).group(1) for line in series}), 2)
        self.assertTrue(all('comm="train"' in line for line in series), series)  # the processes were found
        mine = json.loads(bfcstat("--json", here, wrapper=as_user(5001)).stdout)
        self.assertEqual([job["uid"] for job in mine["jobs"]], [5001])
        self.assertEqual(bfcstat("--prometheus", here, wrapper=as_user(5003)).returncode, 1)

    def test_nobody_trims_anothers(self):
        job, here = self.job(5002), f"--directory={self.folder}"
        (name,) = os.listdir(self.folder)
        before = json.loads(bfcstat("--json", here, name).stdout)["pools"][0]["reserved"]
        for other in (as_user(5001), as_user(5003, "dac_read_search")):
            self.assertEqual(bfcstat("trim", here, name, wrapper=other).returncode, 1)
        self.assertEqual(json.loads(bfcstat("--json", here, name).stdout)["pools"][0]["reserved"], before)
        self.assertIsNone(job.process.poll())

    def test_a_pods_own_folder(self):
        """As job.yaml: a tmpfs that nobody else sees, but a sidecar in the pod's namespaces."""
        job = self.job(5001, "mount -t tmpfs -o mode=1777 none /dev/shm")
        self.assertEqual(os.listdir(self.folder), [])
        inside = f"--directory=/proc/{job.pid}/root/dev/shm"
        self.assertEqual(len(json.loads(bfcstat("--json", inside).stdout)["jobs"]), 1)
        sidecar = ["nsenter", f"--target={job.pid}", "--mount", "--pid", "--ipc", "--", *as_user(5001)]
        text = bfcstat("--prometheus", wrapper=sidecar).stdout
        self.assertEqual(samples(text, "jobs "), ["bfcpreload_jobs 1"])
        self.assertIn('comm="train"', samples(text, "in_use_bytes{")[0])
        other = sidecar[:-len(as_user(5001))] + as_user(5002)
        self.assertEqual(samples(bfcstat("--prometheus", wrapper=other).stdout, "unreadable"),
                         ["bfcpreload_unreadable_jobs 1"])


class Files(unittest.TestCase):
    @unittest.skipUnless(shutil.which("kubernetes-validate", path=TOOLS), "kubernetes-validate is not installed")
    def test_manifests(self):
        files = glob.glob(os.path.join(ROOT, "packaging", "kubernetes", "*.yaml"))
        self.assertEqual(len(files), 2)
        said = subprocess.run([shutil.which("kubernetes-validate", path=TOOLS), "--strict", *files], capture_output=True,
                              text=True)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)

    @unittest.skipUnless(shutil.which("hadolint", path=TOOLS), "hadolint is not installed")
    def test_containerfile(self):
        file = os.path.join(ROOT, "packaging", "container", "Containerfile")
        said = subprocess.run([shutil.which("hadolint", path=TOOLS), file], capture_output=True, text=True)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)


if __name__ == "__main__":
    unittest.main()
