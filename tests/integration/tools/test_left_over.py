#!/usr/bin/env python3
"""What jobs leave in /dev/shm when they are killed goes with whoever comes next: the next job, without
statistics too, and bfcstat. What may be another's stays."""

import os
import signal
import socket
import struct
import subprocess
import sys
import time
import unittest

FOLDER = "/dev/shm"
BFCSTAT = os.environ["BFCSTAT"]
LIBRARY = os.path.join(os.environ["BUILD_ROOT"], "interpose", "libbfcpreload.so")
MAKER = 8  # BFC_TABLE_MAKER_OFFSET
SETTLED = 10  # BFC_SOCKET_SETTLED_S

# A job that allocates, exports a block, and dies by the signal that it is given, if any.
JOB = """
import ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, block, handle = ctypes.c_void_p(), ctypes.c_uint64(), (ctypes.c_char * 64)()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(1 << 20)) == 0
if len(sys.argv) > 1:
    assert cuda.cuIpcGetMemHandle(handle, block) == 0
    os.kill(os.getpid(), int(sys.argv[1]))
"""


def namespace(kind):
    return int(os.readlink(f"/proc/self/ns/{kind}").split("[")[1][:-1])


def start_time(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return int(file.read().rsplit(")", 1)[1].split()[19])


def free_pid():
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


class LeftOver(unittest.TestCase):
    def setUp(self):
        self.made = []
        self.other = subprocess.Popen(["sleep", "100"])

    def tearDown(self):
        self.other.kill()
        self.other.wait()
        for path in self.made:
            if os.path.lexists(path):
                os.remove(path)

    def path(self, pid, end="", space=None, user=None):
        space = namespace("pid") if space is None else space
        user = os.getuid() if user is None else user
        number = f"{0x10000000 + len(self.made):016x}"
        self.made.append(f"{FOLDER}/bfcipc.{user}.{space}.{pid}.{number}{end}")
        return self.made[-1]

    def table(self, pid, began=0, **more):
        path = self.path(pid, **more)
        with open(path, "wb") as file:
            file.write(bytes(MAKER) + struct.pack("QQ", began, namespace("time")) + bytes(4096))
        os.chmod(path, 0o600)
        return path

    def socket(self, pid, **more):
        """A socket that no process has."""
        path = self.path(pid, end=".0000000000000001", **more)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as bound:
            bound.bind(path)
        return path

    def living_socket(self, space, listens):
        path = self.path(self.other.pid, end=".0000000000000001", space=space)
        made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(made.close)
        made.bind(path)
        made.setblocking(False)
        if listens:
            made.listen(1)
        return path, made

    def job(self, *arguments, **settings):
        return subprocess.run(
            [sys.executable, "-c", JOB, *arguments],
            env={
                **os.environ,
                "LD_PRELOAD": LIBRARY,
                "LD_LIBRARY_PATH": os.environ["SIM_DIR"],
                "SIM_MEMORY": "1G",
                **settings,
            },
            timeout=60,
            check=False,
        ).returncode

    def sweep(self):
        self.assertEqual(self.job(), 0)

    def left_by_killed(self):
        """Kills an exporting job by each of three signals; what lies there afterwards."""
        before = set(os.listdir(FOLDER))
        for number in (signal.SIGABRT, signal.SIGBUS, signal.SIGKILL):
            self.assertEqual(self.job(str(int(number))), -number)
        after = set(os.listdir(FOLDER)) - before
        return {n for n in after if n.startswith("bfcipc.")}

    def test_next_job(self):
        left = self.left_by_killed()
        self.assertTrue(left)
        self.sweep()
        self.assertFalse(left & set(os.listdir(FOLDER)))

    def test_next_job_without_statistics(self):
        left = self.left_by_killed()
        self.assertEqual(self.job(BFC_STATS="0"), 0)
        self.assertFalse(left & set(os.listdir(FOLDER)))

    def test_bfcstat(self):
        left = self.left_by_killed()
        subprocess.run([BFCSTAT], capture_output=True, timeout=60, check=False)
        self.assertFalse(left & set(os.listdir(FOLDER)))

    def test_of_the_dead(self):
        pid = free_pid()
        gone = [self.table(pid), self.table(pid, began=5), self.socket(pid)]
        self.sweep()
        self.assertEqual([path for path in gone if os.path.lexists(path)], [])

    def test_sockets_of_another_namespace(self):
        """Whether a process has a socket shows whatever its pid means here."""
        elsewhere = namespace("pid") - 1
        gone = [self.socket(self.other.pid, space=elsewhere), self.socket(self.other.pid)]
        heard, listening = self.living_socket(elsewhere, True)
        kept = [heard, self.living_socket(elsewhere, False)[0]]
        time.sleep(SETTLED + 2)
        kept.append(self.socket(self.other.pid, space=elsewhere))
        self.sweep()
        self.assertEqual([path for path in gone if os.path.lexists(path)], [])
        self.assertEqual([path for path in kept if not os.path.lexists(path)], [])
        with self.assertRaises(BlockingIOError):
            listening.accept()

    def test_pid_that_is_used_again(self):
        began = start_time(self.other.pid)
        gone = self.table(self.other.pid, began=began - 1)
        kept = [self.table(self.other.pid, began=began), self.table(self.other.pid), self.socket(self.other.pid)]
        self.sweep()
        self.assertFalse(os.path.lexists(gone))
        self.assertEqual([path for path in kept if not os.path.lexists(path)], [])

    def test_nobody_has_waited_yet(self):
        gone = self.table(self.other.pid, began=start_time(self.other.pid))
        self.other.kill()
        time.sleep(0.1)
        self.sweep()
        self.assertFalse(os.path.lexists(gone))

    def test_what_may_be_anothers(self):
        pid = free_pid()
        kept = [
            self.table(pid, space=namespace("pid") - 1),
            self.table(pid, user=os.getuid() + 1),
            self.path(pid, end="x"),
            self.path(pid),
        ]
        with open(kept[2], "wb"):
            pass
        target = f"{FOLDER}/target-of-{os.getpid()}"
        self.made.append(target)
        with open(target, "wb"):
            pass
        os.symlink(target, kept[3])
        self.sweep()
        self.assertEqual([path for path in [*kept, target] if not os.path.lexists(path)], [])

    def test_many(self):
        pid = free_pid()
        foreign = [self.table(pid, user=os.getuid() + 1) for _ in range(600)]
        gone = [self.table(pid) for _ in range(300)]
        self.sweep()
        self.assertEqual([path for path in gone if os.path.lexists(path)], [])
        self.assertEqual([path for path in foreign if not os.path.lexists(path)], [])


if __name__ == "__main__":
    unittest.main()
