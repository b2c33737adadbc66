"""Runs commands within a time budget, and leaves no process of theirs behind."""

import collections
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

SHORTEST = 3  # seconds: with less time left no command is started
MOST_OUTPUT = 1 << 20

CUT_OFF = 124
# `status` is as in a shell: CUT_OFF, 127 cannot be started, 128 + N ended by signal N.
Done = collections.namedtuple("Done", "status out error seconds")


class OutOfTime(Exception):
    pass


class Clock:
    """The time that is left of the whole budget, and of the current part."""

    def __init__(self, seconds):
        self.end = self.part_end = time.monotonic() + seconds

    def begin_part(self, weight, later, most):
        """A part may take its share, by weight, of what it and the later ones still have, but no more than
        `most` seconds."""
        now = time.monotonic()
        share = (self.end - now) * weight / (weight + later)
        self.part_end = min(self.end, now + max(min(share, most), SHORTEST))

    def left_of_all(self):
        return self.end - time.monotonic()

    def left(self):
        return min(self.end, self.part_end) - time.monotonic()


class Runner:
    """Safe to use from several threads. `guard`: a child that is not to be ended. It reads which process groups there
    are, `+ID` and `-ID`, and ends them when we are gone, however that came."""

    def __init__(self, clock, folder, variables, guard=None):
        adopt_orphans()
        self.guard = guard
        self.clock = clock
        self.folder = folder
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("BFC_") and name != "LD_PRELOAD"}
        self.environment.update(variables)
        for name in "LD_LIBRARY_PATH", "PYTHONPATH":  # relative paths in these are of our folder, not of `folder`
            if self.environment.get(name):
                self.environment[name] = os.pathsep.join(
                    map(os.path.abspath, self.environment[name].split(os.pathsep)))
        self.lock = threading.RLock()  # a signal's handler stops us, whatever it interrupts
        self.running = set()  # under the lock
        self.stopped = False  # under the lock

    def run(self, command, limit, **variables):
        """Runs it in a process group of its own and ends that group afterwards, with a debugger's program
        and a profiler's helpers. Output goes to files, since such processes may keep pipes open. A variable that
        is None is left out of the environment."""
        own_limit, limit = limit, min(limit, self.clock.left())
        if limit < SHORTEST:
            raise OutOfTime
        begin = time.monotonic()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
            try:
                process = self.start(command, out, error, variables)
            except OSError as problem:
                return Done(127, "", str(problem), 0)
            try:
                status = process.wait(limit)
                status = 128 - status if status < 0 else status
                complaint = ""
            except subprocess.TimeoutExpired:
                status, complaint = CUT_OFF, f"\ncut off after {limit:.0f} s"
            complaint += self.end(process)
            if self.stopped or status == CUT_OFF and limit < own_limit:
                raise OutOfTime  # ours or the part's, so it is no fault of the program's
            seconds = time.monotonic() - begin
            return Done(status, read(out), read(error) + complaint, seconds)

    def start(self, command, out, error, variables):
        group = {"process_group": 0} if sys.version_info >= (3, 11) else {"start_new_session": True}
        environment = {name: value for name, value in {**self.environment, **variables}.items() if value is not None}
        with self.lock:
            if self.stopped:
                raise OutOfTime
            process = subprocess.Popen(
                command, env=environment, cwd=self.folder,
                stdin=subprocess.DEVNULL, stdout=out, stderr=error, **group)
            self.running.add(process)
            self.tell_guard(f"+{process.pid}")
        return process

    def tell_guard(self, line):
        """Under the lock."""
        if self.guard:
            with contextlib.suppress(OSError):  # it is gone
                self.guard.stdin.write(line + "\n")
                self.guard.stdin.flush()

    def end(self, process):
        """Ends its process group; returns a complaint if the process does not die."""
        complaint = ""
        kill_group(process)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            complaint = f"\nprocess {process.pid} does not die"
        with self.lock:
            self.running.discard(process)
            self.tell_guard(f"-{process.pid}")
        return complaint

    def end_orphans(self):
        """To be called while no command runs. Ends processes that earlier commands left outside their
        groups, which would still hold device memory."""
        for _ in range(100):
            orphans = [pid for pid in children() if not self.guard or pid != self.guard.pid]
            if not orphans:
                return
            for pid in orphans:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, os.WNOHANG)
            time.sleep(0.05)

    def stop(self):
        """Ends all running commands, and prevents further ones."""
        with self.lock:
            self.stopped = True
            left = list(self.running)
        for process in left:
            kill_group(process)


def kill_group(process):
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)


def adopt_orphans():
    """Processes that our commands leave behind become our children, not those of init."""
    pr_set_child_subreaper = 36
    ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)


def children():
    """Of this process: ids, of dead ones too."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    if int(file.read().rsplit(")", 1)[1].split()[1]) == os.getpid():
                        found.append(int(name))
    return found


def read(file):
    """The end of it."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - MOST_OUTPUT))
    return file.read().decode(errors="replace")
