"""BFC_RECORD: what is recorded is what was called; a kill or a full disk loses the tail only."""
import glob
import json
import os
import re
import resource
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
        ready = {k: v for k, v in os.environ.items() if not k.startswith(("BFC_", "SIM_"))}
        return {**ready, "LD_PRELOAD": PRELOAD, "SIM_MEMORY": "1G", "BFC_RECORD": self.trace, **settings}

    def run_actor(self, *actions, program=ACTOR, cwd=None, **settings):
        return subprocess.run([program, *map(str, actions)], env=self.environment(**settings), cwd=cwd,
                              capture_output=True, text=True, timeout=60)

    def start(self, *actions):
        """A process that waits already."""
        process = subprocess.Popen([ACTOR, *actions], text=True, env=self.environment(), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while process.stdout.readline().strip() != "ready":
            self.assertIsNone(process.poll())
        return process

    @staticmethod
    def contents(path):
        if not os.path.exists(path):
            return None
        with open(path, "rb") as file:
            return file.read()

    @staticmethod
    def write(path, contents):
        with open(path, "wb") as file:
            file.write(contents)

    def replay(self, trace=None, *options):
        """The figures, and what was said beside with which settings the replay starts."""
        trace = trace or self.trace
        result = subprocess.run([BFCREPLAY, trace, "--json", *options], capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        begins = f"bfcreplay: {trace}: starts from the recorded settings"
        self.starts_from = [line[len(begins):] for line in result.stderr.splitlines() if line.startswith(begins)]
        said = [line for line in result.stderr.splitlines(True) if not line.startswith(begins)]
        return json.loads(result.stdout), "".join(said)

    def test_a_replay_starts_from_the_recorded_settings(self):
        self.run_actor("alloc", 10, "alloc", 20, "free", "free", BFC_FREE="lazy", BFC_LIMIT="512M", BFC_LOG="off")
        self.assertEqual(self.replay()[0]["free"], "lazy")
        self.assertEqual(self.starts_from, [": BFC_LIMIT=512M BFC_FREE=lazy, on 1.0 GiB"])
        self.assertEqual(self.replay(None, "--set", "BFC_LIMIT=15M")[0]["failed"], 1)
        self.assertEqual(self.starts_from, [" and those given: BFC_LIMIT=15M BFC_FREE=lazy, on 1.0 GiB"])
        self.assertEqual(self.replay(None, "--memory", "15M")[0]["failed"], 1)
        for options, mode in (("--free=sync",), "sync"), (("--set", "BFC_MODE=fast"), "ordered"):
            self.assertEqual(self.replay(None, *options)[0]["free"], mode)
        self.assertEqual(self.replay(None, "--report", os.path.join(self.folder.name, "page.html"))[0]["free"], "lazy")

    def test_a_trace_beside_starts_from_its_own_settings(self):
        other, page = (os.path.join(self.folder.name, name) for name in ("other.bfctrace", "page.html"))
        for trace, limit in (other, "256M"), (self.trace, "512M"):
            self.run_actor("alloc", 10, "free", BFC_RECORD=trace, BFC_LIMIT=limit)
        said = self.replay(None, "--report", page, "--beside", other)[1]
        self.assertIn(f"{other}: starts from the recorded settings: BFC_LIMIT=256M, on 1.0 GiB", said)
        with open(page, encoding="utf-8") as file:
            self.assertEqual(re.findall(r"BFC_LIMIT=(\w+)", file.read()), ["512M", "256M"])

    def test_a_comparison_starts_from_them_and_says_what_to_type(self):
        self.run_actor("alloc", 10, "alloc", 20, "free", "free", BFC_FREE="lazy", BFC_LIMIT="512M")
        table = subprocess.run([BFCREPLAY, self.trace, "--compare"], capture_output=True, text=True, timeout=60).stdout
        self.assertNotIn("preallocate", table)
        self.assertRegex(table, r"\n  type: BFC_POLICY=\w+ BFC_GROWTH=\w+ BFC_LIMIT=512M BFC_FREE=lazy bfcrun PROGRAM\n$")

    def test_what_was_called(self):
        self.assertEqual(self.run_actor("alloc", 10, "alloc", 20, "free", "alloc", 30, "free", "free").returncode, 0)
        figures, said = self.replay()
        self.assertEqual(said, "")
        self.assertEqual((figures["pairs"], figures["peak_live"], figures["failed"]), (3, 40 << 20, 0))

    def test_a_plot_is_of_one_device(self):
        """The second device's regions have the same numbers as the first one's."""
        picture, one = (os.path.join(self.folder.name, name) for name in ("several.svg", "one.svg"))
        self.run_actor("alloc", 10, "device", 1, "alloc", 300, "device", 0, "free", SIM_DEVICES="2")
        self.replay(None, "--plot", picture)
        self.run_actor("alloc", 10, "free", SIM_DEVICES="2")
        self.replay(None, "--plot", one)
        with open(picture, encoding="utf-8") as several, open(one, encoding="utf-8") as file:
            shown, alone = (re.search(r"([0-9]+ regions?, [0-9.]+ MiB).*", text.read())[0] for text in (several, file))
        self.assertEqual(shown, alone)

    def test_every_call_of_a_fast_program(self):
        self.assertEqual(self.run_actor("loop", 50000).returncode, 0)
        self.assertEqual(self.replay()[0]["pairs"], 50000)

    def test_past_the_pool_too(self):
        self.run_actor("alloc", 10, "alloc", 20, "free", "free", BFC_BYPASS_ABOVE="16M")
        self.assertEqual(self.replay()[0]["peak_live"], 30 << 20)

    def test_spilled_blocks_are_told_apart(self):
        """What was host memory is shown, and replayed as what the program asked the device for."""
        self.run_actor("alloc", 40, "alloc", 50, "free", "alloc", 30, "alloc", 20, SIM_MEMORY="64M", BFC_SPILL="1G",
                       BFC_GROWTH="exact")
        figures, said = self.replay()
        self.assertEqual(said, "")
        self.assertEqual((figures["peak_live"], figures["failed"]), (90 << 20, 0))
        self.assertEqual((figures["spilled_blocks"], figures["peak_spilled"]), (2, 50 << 20))
        text = subprocess.run([BFCREPLAY, self.trace], capture_output=True, text=True, timeout=60).stdout
        self.assertRegex(text, r"(?m)^  spilled +50\.0 MiB  at most, 2 blocks of host memory")

    def test_traces_of_earlier_versions_are_read(self):
        self.run_actor("alloc", 10, "free")
        recorded = bytearray(self.contents(self.trace))
        self.assertEqual(int.from_bytes(recorded[8:12], sys.byteorder), 4)
        for version, status in ((1, 0), (2, 0), (3, 0), (5, 1)):
            recorded[8:12] = version.to_bytes(4, sys.byteorder)
            self.write(self.trace, bytes(recorded))
            done = subprocess.run([BFCREPLAY, self.trace, "--json"], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, status, done.stderr)
        self.assertIn("version 5, only versions 1 to 4 are accepted", done.stderr)

    def test_killed(self):
        process = subprocess.Popen([ACTOR, "loop", "50000", "alloc", "8", "sleep", "1200", "wait"], text=True,
                                   env=self.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        while process.stdout.readline().strip() != "ready":
            self.assertIsNone(process.poll())
        process.kill()
        process.communicate()
        self.assertEqual(self.replay()[0]["pairs"], 50001, "what is older than a second is on the disk")

    def test_a_full_disk(self):
        process = self.start("loop", "50000", "sleep", "1200", "wait", "loop", "50000", "alloc", "5")
        size = os.path.getsize(self.trace) + 100
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, size))
        out, err = process.communicate("\n", timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertIn("alloc 5 0", out)
        self.assertEqual(len(err.splitlines()), 1, err)
        self.assertIn("File too large; recording ends here", err)
        self.assertEqual(self.replay()[0]["pairs"], 50000)

    def test_a_limit_from_the_start(self):
        for size in 0, 100, 300000:  # the segment's is larger: there is none, either
            process = self.start("wait", "loop", "200000", "alloc", "5")
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, size))
            out, err = process.communicate("\n", timeout=60)
            self.assertEqual(process.returncode, 0)
            self.assertIn("alloc 5 0", out)
            self.assertEqual(len(err.splitlines()), 1, err)
            self.assertIn("File too large; " + ("recording ends here" if size > 100 else "nothing is recorded"), err)
            os.unlink(self.trace)

    def test_another_folder(self):
        there = os.path.join(self.folder.name, "there")
        os.mkdir(there)
        foreign = os.path.join(there, "run.bfctrace")
        for contents in None, b"the program's own":
            if contents:
                self.write(foreign, contents)
            result = self.run_actor("alloc", 5, "folder", there, "alloc", 7, "free", "free", cwd=self.folder.name,
                                    BFC_RECORD="run.bfctrace")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertEqual(self.replay(os.path.join(self.folder.name, "run.bfctrace"))[0]["pairs"], 2)
            self.assertEqual(self.contents(foreign), contents)

    def test_a_file_that_is_no_trace(self):
        self.write(self.trace, b"the program's own")
        result = self.run_actor("alloc", 5, "free")
        self.assertEqual(self.contents(self.trace), b"the program's own")
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertIn("a file that is no trace lies there, and stays", result.stderr)

    def test_an_older_trace_is_written_over(self):
        self.run_actor("alloc", 5, "alloc", 6, "free")
        self.run_actor("alloc", 7, "free")
        self.assertEqual(self.replay()[0]["peak_live"], 7 << 20)

    def test_another_file_in_its_place(self):
        process = self.start("alloc", "5", "wait", "alloc", "6")
        os.rename(self.trace, self.trace + ".saved")
        self.write(self.trace, b"the program's own")
        out, err = process.communicate("\n", timeout=60)
        self.assertIn("alloc 6 0", out)
        self.assertEqual(len(err.splitlines()), 1, err)
        self.assertIn("another file lies there now; recording ends here", err)
        self.assertEqual(self.contents(self.trace), b"the program's own")

    def test_a_pipe_holds_nobody_up(self):
        os.mkfifo(self.trace)
        result = self.run_actor("alloc", 5, "free")
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertIn("this is no plain file", result.stderr)

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
