#!/usr/bin/env python3
"""Two users' jobs on one device: neither sees, asks, wakes or holds up the other's; what one gives back to the driver
serves the other. And a user who leaves things in the segments' folder that look like the other's.

Needs what jobs.py needs in the environment, and root, to become other users.
"""
import os
import subprocess
import sys
import unittest

from jobs import BFCSTAT, PRELOAD, SEGMENTS, ACTOR, Job, JobsTest

OTHER, HOSTILE = 65534, 65533
NAMESPACE = os.stat("/proc/self/ns/pid").st_ino


def can_become(user):
    """And the other user can read and run what is tested."""
    try:
        return subprocess.run(
            ["/bin/sh", "-c", f"test -r '{PRELOAD}' && test -x '{ACTOR}' && test -w {SEGMENTS}"],
            user=user, group=user, extra_groups=[], check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def segment_path(user, pid):
    return f"{SEGMENTS}/bfcpreload.{user}.{NAMESPACE}.{pid}"


class Users(JobsTest):
    def setUp(self):
        if os.getuid() != 0 or not can_become(OTHER) or not can_become(HOSTILE):
            self.skipTest("needs root, and users who can run what was built")
        super().setUp()
        with open(self.share, "wb"):
            os.chmod(self.share, 0o666)
        for user in (0, OTHER, HOSTILE):  # removes what the killed ones left
            self.addCleanup(self.run_as, user, BFCSTAT, check=False)

    def run_as(self, user, *command, check=True, **more):
        subprocess.run(command, check=check, user=user, group=user, extra_groups=[], capture_output=True, **more)

    def start_as(self, user, *actions, **settings):
        job = Job(self, actions, settings, user=user, group=user, extra_groups=[])
        job.user = user
        return job

    def holder_as(self, user, mib, **settings):
        job = self.start_as(user, "alloc", mib, "wait", "free", "wait", **settings)
        self.assertEqual(job.until_ready(), ["0"])
        return job

    def each_way(self):
        """Who has it, and who wants it."""
        for holder, wanting in ((OTHER, 0), (0, OTHER), (OTHER, HOSTILE)):
            with self.subTest(holder=holder, wanting=wanting):
                yield holder, wanting

    def test_neither_asks_for_what_the_other_one_caches(self):
        for user, wanting in self.each_way():
            holder = self.holder_as(user, 160, BFC_WAIT="90")
            holder.go_on()
            holder.until_ready()
            job = self.start_as(wanting, "alloc", 200, "wait", BFC_WAIT="0.3")
            self.assertEqual(job.until_ready(), ["2"])
            self.assertNotIn(f"process {holder.pid}", job.said())
            self.assertRegex(job.said(), r"  others +160 MiB by the driver's count")
            self.assertEqual(holder.pool()["reserved"], 160 << 20)
            job.end()
            holder.end()

    def test_who_waits_is_served_by_what_the_other_one_gives_back(self):
        """By its own trim, and by its end."""
        for user, wanting in self.each_way():
            for give in (lambda holder: self.run_as(holder.user, BFCSTAT, "trim", str(holder.pid)),
                         Job.end):
                holder = self.holder_as(user, 160)
                job = self.start_as(wanting, "alloc", 200, BFC_WAIT="90")
                job.until_waiting(1)
                holder.go_on()
                holder.until_ready()
                give(holder)
                self.assertEqual(job.results(), ["0"])
                holder.process.kill()

    def test_who_waits_does_not_hold_up_the_other_one(self):
        """Each is the first of its own queue, and takes what is free although the other one waits for it."""
        for user, wanting in self.each_way():
            holder = self.holder_as(user, 160, BFC_WAIT="90")
            waiter = self.start_as(user, "alloc", 200, BFC_WAIT="90")
            waiter.until_waiting(1)
            second = self.start_as(wanting, "alloc", 210, BFC_WAIT="90")
            second.until_waiting(1)
            waiter.until_waiting(1)
            small = self.start_as(wanting, "alloc", 60, "wait", BFC_WAIT="90")
            self.assertEqual(small.until_ready(), ["0"])
            for job in (small, second, waiter, holder):
                job.end()

    # ---- hostile ----

    def forge(self, name, content):
        self.run_as(HOSTILE, "/bin/sh", "-c", f"cat > {SEGMENTS}/{name}", input=content)
        self.addCleanup(os.unlink, f"{SEGMENTS}/{name}")

    def test_a_forged_segment_is_no_job(self):
        """A copy of a segment in which somebody waits, and has waited for longest, with the victim's name."""
        holder = self.holder_as(HOSTILE, 160)
        earlier = self.start_as(HOSTILE, "alloc", 200, BFC_WAIT="90")
        earlier.until_waiting(1)
        with open(segment_path(HOSTILE, earlier.pid), "rb") as segment:
            content = bytearray(segment.read())
        content[36:40] = OTHER.to_bytes(4, sys.byteorder)  # struct bfc_segment_header: uid
        self.forge(os.path.basename(segment_path(OTHER, earlier.pid)), content)
        victim = self.start_as(OTHER, "alloc", 200, "wait", BFC_WAIT="90")
        victim.until_waiting(1)
        earlier.end()
        holder.end()
        self.assertEqual(victim.until_ready(), ["0"])
        self.assertNotIn("process", victim.said())

    def test_links_and_pipes_in_place_of_segments(self):
        """To the victim's own segment, and one that would block whoever opens it."""
        holder = self.holder_as(HOSTILE, 160)
        idle = self.holder_as(OTHER, 10)
        for pid, make in ((holder.pid, ["ln", "-s", segment_path(OTHER, idle.pid)]), (1, ["mkfifo"])):
            path = segment_path(OTHER, pid)
            self.run_as(HOSTILE, *make, path)
            self.addCleanup(os.unlink, path)
        victim = self.start_as(OTHER, "alloc", 200, "wait", BFC_WAIT="90")
        victim.until_waiting(1)
        holder.end()
        self.assertEqual(victim.until_ready(), ["0"])

    def test_a_name_that_is_taken(self):
        """The victim has no segment then, and says what that means for BFC_WAIT; all else works."""
        self.holder_as(HOSTILE, 160)
        taken = segment_path(OTHER, "$$")
        script = (f"echo mine > {taken} && chown {HOSTILE} {taken} && "
                  f"exec setpriv --reuid {OTHER} --regid {OTHER} --clear-groups \"$0\" \"$@\"")
        victim = Job(self, ["-c", script, ACTOR, "alloc", 60, "alloc", 200, "wait"],
                     {"BFC_WAIT": "90"}, "/bin/sh")
        self.addCleanup(os.unlink, segment_path(OTHER, victim.pid))
        self.assertEqual(victim.until_ready(), ["0", "2"])
        self.assertIn(f"  waited       not at all: BFC_WAIT needs a segment in {SEGMENTS}, and this process has none\n",
                      victim.said())
        with open(segment_path(OTHER, victim.pid), encoding="ascii") as still:
            self.assertEqual(still.read(), "mine\n")


if __name__ == "__main__":
    sys.exit(unittest.main())
