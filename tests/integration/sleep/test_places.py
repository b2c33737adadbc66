"""Where contents go: disks that are full, hosts without memory, and that nobody else gets at them.
usage: test_places.py (LIBCUDA, PRELOAD and BFCSTAT in the environment)"""

import os
import stat
import subprocess
import tempfile
import unittest

from jobs import ON, PRELOAD, Job, main

FILLED = "a = allocate(64*MIB); fill(a, 7, 64*MIB); b = allocate(1000); fill(b, 9, 1000); synchronize()"
INTACT = "is_filled(a, 7, 64*MIB) and is_filled(b, 9, 1000)"
# Mounts in a namespace of the job's own need root, here or in a user namespace of one's own.
UNSHARE = ["unshare", "-m"] if os.getuid() == 0 else ["unshare", "-rm"]


def in_namespace(script):
    """A wrapper that runs the script, then the job, among mounts of its own; the job's pid stays."""
    return [*UNSHARE, "sh", "-c", script + ' && exec "$@"', "job"]


def may_mount():
    try:
        return subprocess.run([*in_namespace("mount -t tmpfs none /mnt"), "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


class Places(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def filled(self, wrapper=(), **settings):
        job = Job(self, {**ON, **settings}, wrapper)
        job.do(FILLED)
        return job

    def check_awake(self, job, why):
        asked = job.stat("sleep")
        self.assertEqual((asked.returncode, job.sleep()["state"]), (1, "awake"))
        self.assertRegex(asked.stderr, why)
        self.assertRegex(job.stat().stdout.replace("\n", " "), why)
        self.assertTrue(job.do(INTACT))

    def check_sleeps(self, job):
        job.fall_asleep()
        self.assertTrue(job.is_asleep())
        self.assertTrue(job.do(INTACT))

    @unittest.skipUnless(may_mount(), "mounts in a namespace are not permitted")
    def test_full_disk(self):
        """Nothing of the attempt stays on the disk; with room, the next one succeeds, and leaves nothing either."""
        job = self.filled(in_namespace(f"mount -t tmpfs -o size=8M none {self.folder}"), BFC_SLEEP_TO=self.folder)
        free = f"os.statvfs({self.folder!r}).f_bfree"
        before = job.do(free)
        for _ in range(3):
            self.check_awake(job, f"could not be kept in {self.folder}: No space left")
            self.assertEqual(job.do(free), before)
        job.do(f"os.system('mount -o remount,size=100M {self.folder}')")
        before = job.do(free)
        self.check_sleeps(job)
        self.assertEqual((job.do(free), job.do(f"os.listdir({self.folder!r})")), (before, []))

    def test_disk_is_full_only_when_bytes_reach_it(self):
        job = self.filled(BFC_SLEEP_TO=self.folder, LD_PRELOAD=f"{os.environ['LATE_DISK']}:{PRELOAD}")
        self.check_awake(job, f"could not be kept in {self.folder}: No space left")

    @unittest.skipUnless(may_mount(), "mounts in a namespace are not permitted")
    def test_host_has_little_memory(self):
        with open(f"{self.folder}/meminfo", "w", encoding="ascii") as file:
            file.write("MemTotal:       1000000 kB\nMemFree:          10000 kB\nMemAvailable:      50000 kB\n")
        job = self.filled(in_namespace(f"mount --bind {self.folder}/meminfo /proc/meminfo"))
        self.check_awake(job, r"the host has 48\.8 MiB of memory left for 6\d\.. MiB")
        job.do("os.system('umount /proc/meminfo')")
        self.check_sleeps(job)

    def test_process_gets_no_memory(self):
        """Not even for a thread that would answer."""
        job = self.filled()
        job.do("import resource")
        size = "int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()"
        job.do(f"resource.setrlimit(resource.RLIMIT_AS, ({size}, resource.RLIM_INFINITY))")
        asked = job.stat("sleep")
        job.do("resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))")
        self.assertEqual(asked.returncode, 1, asked.stdout)
        self.assertRegex(asked.stderr, "no thread|no memory|refused")
        self.assertTrue(job.do(INTACT))
        self.check_sleeps(job)

    def test_no_files(self):
        """A process that may open no more files."""
        job = self.filled()
        job.do("import resource; files = resource.getrlimit(resource.RLIMIT_NOFILE)")
        job.do("resource.setrlimit(resource.RLIMIT_NOFILE, (3, files[1]))")
        self.check_awake(job, "Too many open files")
        job.do("resource.setrlimit(resource.RLIMIT_NOFILE, files)")
        self.check_sleeps(job)

    def stores(self, job):
        """The open files of the job that have contents in them."""
        fds = f"/proc/{job.pid}/fd"
        return [path for path in (f"{fds}/{number}" for number in os.listdir(fds)) if os.path.exists(path)
                and stat.S_ISREG(os.stat(path).st_mode) and os.stat(path).st_size >= 64 << 20]

    def test_private_to_the_job(self):
        for place in "memory", self.folder:
            with self.subTest(place):
                job = self.filled(BFC_SLEEP_TO=place)
                before = self.stores(job)
                job.fall_asleep()
                (store,) = [path for path in self.stores(job) if path not in before]
                self.assertEqual(os.stat(store).st_nlink, 0)
                if place == self.folder:
                    self.assertEqual(stat.S_IMODE(os.stat(store).st_mode), 0o600)
                self.assertEqual(job.do(f"__import__('subprocess').run(['ls', '/proc/self/fd'], close_fds=False, "
                                        f"stdout=-1).stdout.split().count(b'{os.path.basename(store)}')"), 0)
                self.assertEqual(os.listdir(self.folder), [])
                job.process.kill()
                job.process.wait()
                self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    main()
