"""BFC_RECORD: what is recorded is what was called; a kill or a full disk loses the tail only."""
import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest

ACTOR, PRELOAD, BFCREPLAY, CHILDREN = (os.environ[name] for name in ("ACTOR", "PRELOAD", "BFCREPLAY", "CHILDREN"))


@unittest.skipUnless(BFCREPLAY, "bfcreplay is not built here")
class Record(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.trace = os.path.join(self.folder.name, "trace")

    def environment(self, **settings):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("BFC_", "SIM_"))}
        return {**clean, "LD_PRELOAD": PRELOAD, "SIM_MEMORY": "1G", "BFC_RECORD": self.trace, **settings}

    def run_actor(self, *actions, program=ACTOR, **settings):
        return subprocess.run([program, *map(str, actions)], env=self.environment(**settings), capture_output=True, text=True, timeout=60)

    def replay(self, trace=None):
        result = subprocess.run([BFCREPLAY, trace or self.trace, "--json"], capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout), result.stderr

    def test_what_was_called(self):
        self.assertEqual(self.run_actor("alloc", 10, "alloc", 20, "free", "alloc", 30, "free", "free").returncode, 0)
        figures, said = self.replay()
        self.assertEqual(said, "")
        self.assertEqual((figures["pairs"], figures["peak_live"], figures["failed"]), (3, 40 << 20, 0))

    def test_every_call_of_a_fast_program(self):
        self.assertEqual(self.run_actor("loop", 50000).returncode, 0)
        self.assertEqual(self.replay()[0]["pairs"], 50000)

    def test_past_the_pool_too(self):
        self.run_actor("alloc", 10, "alloc", 20, "free", "free", BFC_BYPASS_ABOVE="16M")
        self.assertEqual(self.replay()[0]["peak_live"], 30 << 20)

    def test_killed(self):
        process = subprocess.Popen([ACTOR, "loop", "50000", "alloc", "8", "sleep", "1200", "wait"], text=True,
                                   env=self.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        while process.stdout.readline().strip() != "ready":
            self.assertIsNone(process.poll())
        process.kill()
        process.communicate()
        self.assertEqual(self.replay()[0]["pairs"], 50001, "what is older than a second is on the disk")

    def test_a_full_disk(self):
        process = subprocess.Popen([ACTOR, "loop", "50000", "sleep", "1200", "wait", "loop", "50000", "alloc", "5"],
                                   text=True, env=self.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        while process.stdout.readline().strip() != "ready":
            self.assertIsNone(process.poll())
        saved = self.trace + ".saved"
        os.rename(self.trace, saved)
        os.symlink("/dev/full", self.trace)
        out, err = process.communicate("\n", timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertIn("alloc 5 0", out)
        self.assertEqual(len(err.splitlines()), 1, err)
        self.assertIn("No space left on device; recording ends here", err)
        self.assertEqual(self.replay(saved)[0]["pairs"], 50000)

    def test_nowhere_to_write(self):
        for path in ("/nowhere/at/all", "/dev/full"):
            result = self.run_actor("alloc", 5, "free", BFC_RECORD=path)
            self.assertEqual((result.returncode, len(result.stderr.splitlines())), (0, 1), result.stderr)
            self.assertIn(f"BFC_RECORD={path}: ", result.stderr)

    def test_forked_children_record_nothing(self):
        self.run_actor(program=CHILDREN)
        self.assertEqual(len(glob.glob(self.trace + "*")), 1)
        self.replay()

    def test_two_processes_and_one_name(self):
        first = subprocess.Popen([ACTOR, "alloc", "5", "wait"], text=True, env=self.environment(),
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        while first.stdout.readline().strip() != "ready":
            self.assertIsNone(first.poll())
        self.run_actor("alloc", 7, "free")
        first.communicate("\n")
        peaks = {self.replay(path)[0]["peak_live"] for path in glob.glob(self.trace + "*")}
        self.assertEqual(peaks, {5 << 20, 7 << 20})

    def test_names_with_the_process_in_them(self):
        self.run_actor("alloc", 5, BFC_RECORD=self.trace + ".%p.bfctrace")
        self.assertEqual(len(glob.glob(self.trace + ".[0-9]*.bfctrace")), 1)


if __name__ == "__main__":
    sys.exit(unittest.main())
