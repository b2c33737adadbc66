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
import hostile_traces  # noqa: E402
import whole_pages  # noqa: E402

BFCREPLAY = os.environ["BFCREPLAY"]
TRACES = os.environ["TRACES"]
RECORDED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../gpu/results/h100-580.159-2026-11-27/gpt.bfctrace")
MIB = 1 << 20
GIB = 1 << 30
PAGE = 2 * MIB
FIT = ("--backing=pages", "--set", "BFC_PAGE=fit")
STEP = ("--backing=pages", "--set", "BFC_PAGE=step")


def replay(path, *options):
    done = subprocess.run([BFCREPLAY, path, "--json", *options], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def without_times(figures):
    return {key: value for key, value in figures.items() if key != "ns_per_pair"}


def just_above(r):
    """Sizes from 1 to 1.5 MiB, each just above a multiple of 64 KiB, so that padding takes nearly 64 KiB of each block."""
    soup = hostile_traces.Soup(r, 2048 * traces.MIB)
    soup.stir(8000, lambda random: traces.MIB + 1 + 65536 * random.randrange(8))


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
        paged = replay(path, *FIT, "--repeat=4")
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

    def test_one_page_for_each_step(self):
        """As little is held where lifetimes have a pattern, for at most 3.5 times the calls of regions and a few more."""
        for name in traces.KINDS:
            with self.subTest(name):
                path = self.make(name)
                paged = replay(path, *STEP, "--repeat=3")
                self.check_held(paged)
                self.assertEqual(paged["pass_calls"][2], 0)
                self.assertLessEqual(paged["pass_calls"][0], 3.5 * replay(path)["device_calls"] + CALLS_MORE)

    def test_pages_that_choose_their_size(self):
        """About as few calls as with one page for each step where lifetimes have a pattern; where they have none, few
        bytes more than with small pages."""
        for name in traces.KINDS:
            with self.subTest(name):
                path = self.make(name)
                paged, step = (replay(path, *way, "--repeat=3") for way in (["--backing=pages"], STEP))
                self.check_held(paged)
                self.assertEqual(paged["pass_calls"][2], 0)
                self.assertLessEqual(paged["pass_calls"][0], 1.5 * step["pass_calls"][0] + CALLS_MORE)
        for name in traces.SOUPS:
            with self.subTest(name):
                path = self.make(name)
                paged, fit = replay(path, "--backing=pages"), replay(path, *FIT)
                self.assertLess(paged["peak_reserved"], 1.035 * fit["peak_reserved"])
                self.assertLess(paged["device_calls"], fit["device_calls"])

    def test_rounding_above_the_slack(self):
        """Where rounding alone takes more than the slack, pages that choose their size hold as little as small ones."""
        path = self.record(just_above)
        paged, fit, step = (replay(path, *way) for way in (["--backing=pages"], FIT, STEP))
        self.assertLessEqual(paged["peak_reserved"], fit["peak_reserved"])
        self.assertLess(paged["device_calls"], 1.5 * step["device_calls"])

    def test_idle_regions_are_merged(self):
        """Without pages: loops of varying sizes hold little, and rest."""
        for name in "transformer", "experts", "image-pipeline", "checkpoints":
            with self.subTest(name):
                held = replay(self.make(name), "--repeat=3")
                self.assertLessEqual(held["peak_reserved"], 1.10 * held["peak_live"])
                self.assertEqual(held["pass_calls"][1:], [0, 0])

    def test_a_recorded_training(self):
        """Texts of varying length: little memory, and no more calls than small pages take."""
        paged, fit = replay(RECORDED, "--backing=pages"), replay(RECORDED, *FIT)
        self.assertLess(paged["peak_reserved"], 1.035 * paged["peak_live"])
        self.assertLess(paged["device_calls"], 1.05 * fit["device_calls"])

    def record(self, make):
        """What make does with a recorder, as a trace."""
        path = os.path.join(self.folder.name, make.__name__ + ".csv")
        recorder = traces.Recorder(make.__name__)
        make(recorder)
        with open(path, "w") as stream:
            recorder.write(stream)
        return path

    def test_large_pages_are_remade(self):
        """Blocks much smaller than those that the pages were made for lose no more than with small pages."""
        for kind in (hostile_traces.probe, hostile_traces.large_to_middle, hostile_traces.large_among_middle):
            with self.subTest(kind.__name__):
                path = self.record(kind)
                paged = replay(path, *FIT)
                self.assertLessEqual(paged["peak_reserved"], 1.05 * paged["peak_live"])
                small = replay(path, *FIT, "--page=2M")
                self.assertLessEqual(paged["device_calls"], 1.05 * small["device_calls"])

    def test_a_huge_block_in_each_period(self):
        """Its pages are remade in the first, and the loop rests."""
        def period(recorder):
            recorder.free(recorder.allocate(4 * GIB))
            for _ in range(3):
                recorder.free(*[recorder.allocate(size * MIB) for size in range(1, 80)])

        paged = replay(self.record(period), *FIT, "--repeat=4")
        self.assertGreater(paged["pass_calls"][0], 3100 + 128, "nothing was remade")
        self.assertEqual(paged["pass_calls"][1:], [0, 0, 0])
        self.assertLessEqual(paged["peak_reserved"], 4 * GIB + PAGE)

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
        for option, accepted in (("--backing=virtual", "expected one of malloc, pages, auto"), ("--repeat=0", "from 1 to 64"),
                                 ("--repeat=65", "from 1 to 64"), ("--slack=2", "from 0 to 1"),
                                 ("--page=0", "above 0")):
            done = subprocess.run([BFCREPLAY, "x", option], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertIn(accepted, done.stderr)
        done = subprocess.run([BFCREPLAY, "x", "--backing=pages", "--events=y"], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("not with --backing=pages", done.stderr)
        for option in ("--slack=0.1", "--page=2M"):
            done = subprocess.run([BFCREPLAY, "x", option], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertIn("is for pages: not without --backing=pages", done.stderr)

    def test_settings_say_the_same_as_options(self):
        """--set takes what the environment takes."""
        path = self.make("batches-ahead")
        for option, setting in (("--backing=pages", "BFC_BACKING=pages"), ("--backing=pages", "BFC_BACKING=auto")):
            self.assertEqual(without_times(replay(path, option)), without_times(replay(path, "--set", setting)))
        wide = [without_times(replay(path, "--backing=pages", *slack))
                for slack in (["--slack=0.5"], ["--set", "BFC_SLACK=0.5"])]
        self.assertEqual(wide[0], wide[1])
        self.assertNotEqual(wide[0], without_times(replay(path, "--backing=pages")))

    def test_blocks_that_are_not_to_be_split_are_with_pages(self):
        """Each would have been handed out whole, as large as all that was free."""
        path = self.make("multigrid")
        plain = without_times(replay(path, "--backing=pages"))
        self.assertEqual(without_times(replay(path, "--backing=pages", "--set", "BFC_MAX_SPLIT=20M", "--memory=80G")), plain)

    def test_compare_names_the_backing(self):
        path = self.make("multigrid")
        for memory in ("--memory=4G", "--memory=100M"):
            done = subprocess.run([BFCREPLAY, path, "--compare", "--backing=pages", "--policy=bfc", memory],
                                  capture_output=True, text=True, timeout=120)
            self.assertRegex(done.stdout, r"BFC_GROWTH=\w+ BFC_BACKING=pages")

    def test_pages_are_as_large_as_in_a_job(self):
        """At most a 512th of the device's memory, unless --page says otherwise."""
        path = os.path.join(self.folder.name, "one.csv")
        with open(path, "w") as stream:
            stream.write(f"id,lower,upper,size\na,0,1,{4 * GIB}\n")
        calls = [replay(path, *FIT, *more)["device_calls"]
                 for more in (["--memory=8G"], ["--memory=8G", "--page=16M"], ["--memory=8G", "--page=1G"])]
        self.assertEqual(calls[0], calls[1])
        self.assertGreater(calls[0], 2 * calls[2])

    def test_what_passes_pages_by_costs_as_without_them(self):
        path = os.path.join(self.folder.name, "large.csv")
        with open(path, "w") as stream:
            stream.write(f"id,lower,upper,size\na,0,1,{4 * MIB}\nb,1,2,{4 * MIB}\n")
        past = replay(path, "--backing=pages", "--set", "BFC_BYPASS_ABOVE=1M", "--device-us=50")
        self.assertEqual((past["device_calls"], past["device_ms"]), (4, 0.2))


# Reserving addresses, once; a growth of a few pages costs two calls more than a region.
CALLS_MORE = 3

if __name__ == "__main__":
    unittest.main()
