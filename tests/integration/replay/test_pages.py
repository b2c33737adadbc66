"""Pages behind the pool, in bfcreplay: what is held, and how often the device is asked."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import traces  # noqa: E402
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
import whole_pages  # noqa: E402

BFCREPLAY = os.environ["BFCREPLAY"]
TRACES = os.environ["TRACES"]
MIB = 1 << 20
GIB = 1 << 30
PAGE = 2 * MIB


def replay(path, *options):
    done = subprocess.run([BFCREPLAY, path, "--json", *options], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Pages(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def make(self, name):
        path = os.path.join(self.folder.name, name + ".csv")
        with open(path, "w") as stream:
            traces.make(name, stream)
        return path

    def check_held(self, paged):
        live, held = paged["peak_live"], paged["peak_reserved"]
        if live >= GIB:
            self.assertLessEqual(held, 1.03 * live)
        elif live >= 100 * MIB:
            self.assertLessEqual(held, 1.10 * live)
        else:
            self.assertLessEqual(held, 2 * PAGE)

    def check(self, path):
        paged = replay(path, "--backing=pages", "--repeat=4")
        self.assertEqual(paged["failed"], 0)
        self.check_held(paged)
        return replay(path), paged

    def check_calls(self, regions, paged):
        """Two for each page of the least size; beyond that, three times those of a pool of regions."""
        self.assertEqual(paged["pass_calls"][2:], [0, 0], "the device was asked in a steady state")
        most = 2 * paged["pass_bytes"] / PAGE + 3 * regions["device_calls"] + CALLS_MORE
        self.assertLessEqual(paged["pass_calls"][0], most)

    def test_made_up_traces(self):
        for name in traces.KINDS:
            with self.subTest(name):
                self.check_calls(*self.check(self.make(name)))

    def test_real_traces(self):
        if not os.path.isdir(TRACES):
            self.skipTest("there are no traces beside the sources")
        for name in sorted(os.listdir(TRACES)):
            if name.endswith(".csv"):
                with self.subTest(name):
                    self.check_calls(*self.check(os.path.join(TRACES, name)))

    def test_lifetimes_without_a_pattern(self):
        """They need not come to rest, but hold no more than others."""
        for name in traces.SOUPS:
            with self.subTest(name):
                self.check(self.make(name))

    def test_no_loss_at_a_limit(self):
        """With single pages, what is live and its last pages suffice."""
        path = self.make("image-workers")
        live = replay(path)["peak_live"]
        memory = f"--memory={int(live * 1.10) // PAGE * PAGE}"
        self.assertGreater(replay(path, memory)["failed"], 0)
        paged = replay(path, memory, "--backing=pages", "--page=2M")
        self.assertEqual(paged["failed"], 0)
        self.assertGreater(paged["moved"], 0)

    def test_what_whole_pages_could_serve(self):
        with open(self.make("plan-cache")) as stream:
            live, misses, calls, joined, served = whole_pages.replay(whole_pages.read(stream))
        self.assertEqual((misses, calls), (1, 2))
        self.assertLess(joined, live // 10)
        self.assertEqual(served[2 * MIB], [1, 1])
        self.assertEqual(served[128 * MIB], [0, 0])
        with open(self.make("multigrid")) as stream:
            self.assertEqual(whole_pages.replay(whole_pages.read(stream))[1:3], (0, 0))

    def test_passes(self):
        figures = replay(self.make("multigrid"), "--repeat=3")
        self.assertEqual(len(figures["pass_calls"]), 3)
        self.assertEqual(sum(figures["pass_calls"]), figures["device_calls"])
        self.assertEqual(figures["backing"], "malloc")

    def test_what_is_refused(self):
        for option, accepted in (("--backing=virtual", "neither malloc nor pages"), ("--repeat=0", "from 1 to 64"),
                                 ("--repeat=65", "from 1 to 64"), ("--slack=2", "from 0 to 1"),
                                 ("--page=0", "above 0")):
            done = subprocess.run([BFCREPLAY, "x", option], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertIn(accepted, done.stderr)
        done = subprocess.run([BFCREPLAY, "x", "--backing=pages", "--events=y"], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("not with --backing=pages", done.stderr)


# Reserving addresses, once; a growth of a few pages costs two calls more than a region.
CALLS_MORE = 3

if __name__ == "__main__":
    unittest.main()
