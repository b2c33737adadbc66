"""bfcreplay from outside: its figures against its events file, its files, its messages."""
import csv
import json
import os
import pickle
import pickletools
import random
import subprocess
import sys
import tempfile
import unittest

BFCREPLAY = os.environ["BFCREPLAY"]
TRACES = os.environ["TRACES"]
POLICIES = ("bfc", "tf", "pytorch")
GROWTHS = ("double", "fixed", "exact", "preallocate")
KEYS = {"policy", "growth", "peak_live", "peak_reserved", "waste", "device_calls", "ns_per_pair", "failed"}


def run(*arguments, stdin=None):
    return subprocess.run([BFCREPLAY, *map(str, arguments)], capture_output=True, text=True, input=stdin, timeout=120)


def make_trace(path, seed, rows=400, most=1 << 26):
    generator = random.Random(seed)
    with open(path, "w", newline="") as file:
        file.write("id,lower,upper,size\n")
        for row in range(rows):
            lower = generator.randrange(1000)
            size = generator.randrange(1, 1 << generator.randrange(1, most.bit_length()))
            file.write(f"b{row},{lower},{lower + generator.randrange(1, 200)},{size}\n")


class Checker:
    """Replays an events file by its rules alone."""

    def __init__(self, events):
        self.regions, self.blocks = {}, {}
        self.live = self.peak_live = self.reserved = self.peak_reserved = self.failed = self.calls = 0
        with open(events, newline="") as file:
            for row in csv.DictReader(file):
                getattr(self, "on_" + row["op"])(row)

    def on_reserve(self, row):
        start, size = int(row["address"]), int(row["bytes"])
        assert all(start + size <= s or s + n <= start for s, n in self.regions.values()), "regions overlap"
        self.regions[row["region"]] = (start, size)
        self.calls += 1
        self.reserved += size
        self.peak_reserved = max(self.peak_reserved, self.reserved)

    def on_release(self, row):
        start, size = self.regions.pop(row["region"])
        assert (start, size) == (int(row["address"]), int(row["bytes"])), "released otherwise than reserved"
        assert all(s >= start + size or s + n <= start for s, n in self.blocks.values()), "released in use"
        self.calls += 1
        self.reserved -= size

    def on_allocate(self, row):
        start, size = int(row["address"]), int(row["bytes"])
        region, length = self.regions[row["region"]]
        assert region <= start and start + size <= region + length, "outside of its region"
        assert all(start + size <= s or s + n <= start for s, n in self.blocks.values()), "blocks overlap"
        self.blocks[row["id"]] = (start, size)
        self.live += size
        self.peak_live = max(self.peak_live, self.live)

    def on_free(self, row):
        start, size = self.blocks.pop(row["id"])
        assert start == int(row["address"])
        self.live -= size

    def on_fail(self, row):
        self.failed += 1


class Figures(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "trace.csv")
        self.events = os.path.join(self.folder.name, "events.csv")

    def check(self, trace, *arguments):
        result = run(trace, "--json", "--events", self.events, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        figures = json.loads(result.stdout)
        self.assertLessEqual(KEYS, figures.keys())
        checker = Checker(self.events)
        self.assertEqual(figures["peak_live"], checker.peak_live)
        self.assertEqual(figures["peak_reserved"], checker.peak_reserved)
        self.assertEqual(figures["failed"], checker.failed)
        self.assertGreaterEqual(figures["device_calls"], checker.calls)
        self.assertAlmostEqual(figures["waste"], 1 - checker.peak_live / checker.peak_reserved, places=5)
        return figures

    def test_all_policies_growths_and_modes(self):
        for seed, policy in enumerate(POLICIES):
            make_trace(self.path, seed)
            for growth in GROWTHS:
                for mode in ("sync", "lazy", "ordered"):
                    with self.subTest(policy=policy, growth=growth, free=mode):
                        figures = self.check(self.path, "--policy", policy, "--growth", growth, "--free", mode,
                                             "--set", "BFC_PREALLOCATE=64M")
                        self.assertEqual((figures["policy"], figures["growth"]), (policy, growth))
                        self.assertEqual(figures["failed"], 0)

    def test_regions_that_a_training_outgrows_go_back(self):
        """PyTorch's calls on an H100, for texts of varying length: 1.93 times its live bytes without that, 1.30 times
        where none are merged."""
        trace = os.path.join(os.path.dirname(__file__), "../../gpu/results/h100-580.159-2026-11-27/gpt.bfctrace")
        figures = self.check(trace)
        self.assertLess(figures["peak_reserved"] / figures["peak_live"], 1.15)
        self.assertLess(figures["device_calls"], 150)

    def test_settings(self):
        make_trace(self.path, 9)
        plain = self.check(self.path)
        for setting in ("BFC_ROUNDUP=4", "BFC_MAX_SPLIT=20M", "BFC_BYPASS_ABOVE=8M", "BFC_SPLIT_RATIO=2",
                        "BFC_SPLIT_SLACK=1M", "BFC_GC_THRESHOLD=32M", "BFC_GROWTH_SIZE=16M", "BFC_LIMIT=256M"):
            with self.subTest(setting=setting):
                figures = self.check(self.path, "--set", setting)
                if setting == "BFC_BYPASS_ABOVE=8M":
                    self.assertGreater(figures["device_calls"], plain["device_calls"])
                if setting == "BFC_LIMIT=256M":
                    self.assertLessEqual(figures["peak_reserved"], 256 << 20)

    def test_settings_that_do_not_matter(self):
        make_trace(self.path, 9)
        for setting in ("BFC_PLAN=auto", "BFC_SPILL=1G", "BFC_TRIM_IDLE=5"):
            self.assertEqual(run(self.path, "--set", setting).stderr,
                             f"bfcreplay: --set {setting.split('=')[0]}: a replay does not depend on it\n")
        self.assertEqual(run(self.path, "--set", "BFC_LIMIT=1G").stderr, "")

    def test_a_full_device(self):
        make_trace(self.path, 5)
        live = self.check(self.path)["peak_live"]
        for policy in POLICIES:
            with self.subTest(policy=policy):
                figures = self.check(self.path, "--memory", live // 2, "--policy", policy)
                self.assertGreater(figures["failed"], 0)
                self.assertLessEqual(figures["peak_reserved"], live // 2)

    def test_at_equal_times_frees_come_first(self):
        with open(self.path, "w") as file:
            file.write("id,lower,upper,size\nb,5,9,1000000\na,0,5,1000000\n")
        figures = self.check(self.path, "--growth", "exact")
        self.assertEqual(figures["peak_live"], 1000000)
        self.assertEqual(figures["device_calls"], 1)

    def test_real_traces(self):
        if not os.path.isdir(TRACES):
            self.skipTest("no traces here")
        for name in sorted(os.listdir(TRACES)):
            if name.endswith(".csv"):
                for policy in POLICIES:
                    with self.subTest(trace=name, policy=policy):
                        self.assertEqual(self.check(os.path.join(TRACES, name), "--policy", policy)["failed"], 0)

    def test_snapshot_and_chrome_trace(self):
        """What PyTorch's viewers count on: blocks without a gap, names of actions; figures as elsewhere."""
        make_trace(self.path, 7)
        with open(self.path, "a") as file:
            file.write("kept,990,100000,5000000\n")
        snapshot, chrome = (os.path.join(self.folder.name, name) for name in ("s.pickle", "c.json"))
        checked = self.check(self.path, "--memory=100M", "--growth=exact", "--snapshot", snapshot, "--chrome-trace", chrome)
        with open(snapshot, "rb") as file:
            data = file.read()
        shown = pickle.loads(data)
        # Of the codes the web viewer's reader knows these, among others.
        self.assertLessEqual({code.name for code, _, _ in pickletools.genops(data)},
                             {"PROTO", "EMPTY_DICT", "EMPTY_LIST", "MARK", "SETITEMS", "APPENDS", "SHORT_BINUNICODE",
                              "MEMOIZE", "BINGET", "BININT", "BININT1", "BININT2", "LONG1", "TUPLE2", "NEWFALSE", "STOP"})
        for segment in shown["segments"]:
            self.assertEqual(sum(block["size"] for block in segment["blocks"]), segment["total_size"])
            at = segment["address"]
            for block in segment["blocks"]:
                self.assertEqual(block["address"], at)
                at += block["size"]
            active = [block for block in segment["blocks"] if block["state"] == "active_allocated"]
            self.assertEqual(sum(block["requested_size"] for block in active), segment["requested_size"])
        actions = [entry["action"] for entry in shown["device_traces"][0]]
        live = peak = 0
        for entry in shown["device_traces"][0]:
            live += {"alloc": 1, "free_completed": -1}.get(entry["action"], 0) * entry["size"]
            peak = max(peak, live)
        self.assertEqual((peak, actions.count("oom")), (checked["peak_live"], checked["failed"]))
        self.assertEqual(live, sum(segment["requested_size"] for segment in shown["segments"]))
        with open(chrome) as file:
            events = json.load(file)["traceEvents"]
        counters = [event["args"] for event in events if event["ph"] == "C"]
        self.assertEqual(max(c["live"] for c in counters), checked["peak_live"])
        self.assertEqual(max(c["reserved"] for c in counters), checked["peak_reserved"])

    def test_compare_recommends_nothing_that_fails(self):
        with open(self.path, "w") as file:
            file.write("id,lower,upper,size\na,0,10,50000000\nb,1,9,60000000\n")
        table = run(self.path, "--compare", "--memory=100M").stdout
        self.assertNotIn("best:", table)
        self.assertRegex(table, r"\nnone to recommend: .* \(1 of 2\); it needs a larger --memory or limit\n$")

    def test_compare_of_nothing_recommends_nothing(self):
        with open(self.path, "w") as file:
            file.write("id,lower,upper,size\n")
        self.assertTrue(run(self.path, "--compare").stdout.endswith("\nnone to recommend: there is no allocation\n"))

    def test_version(self):
        self.assertRegex(run("--version").stdout, r"^bfcreplay \d+\.\d+\.\d+ \(trace layout \d+\)\n$")

    def test_compare_names_the_best(self):
        make_trace(self.path, 3)
        lines = run(self.path, "--compare", "--json").stdout.splitlines()
        self.assertEqual([(r["policy"], r["growth"]) for r in map(json.loads, lines)],
                         [(p, g) for p in POLICIES for g in GROWTHS if g != "preallocate"])
        results = [json.loads(line) for line in lines]
        best = min(results, key=lambda r: (r["failed"], r["peak_reserved"], r["device_calls"]))
        table = run(self.path, "--compare").stdout
        self.assertIn(f"best: policy {best['policy']}, growth {best['growth']}", table)
        self.assertIn(f"\n  type: BFC_POLICY={best['policy']} BFC_GROWTH={best['growth']} bfcrun PROGRAM\n", table)
        self.assertEqual(len(table.splitlines()), 12)
        table = run(self.path, "--compare", "--growth=preallocate").stdout
        self.assertEqual(table.count(" preallocate "), 3)

    def test_plot(self):
        make_trace(self.path, 4)
        picture = os.path.join(self.folder.name, "out.svg")
        self.assertEqual(run(self.path, "--plot", picture).returncode, 0)
        with open(picture) as file:
            text = file.read()
        self.assertTrue(text.startswith("<svg") and text.endswith("</svg>\n"))
        self.assertRegex(text, r"\d MiB, those given back included; grey")


class Mistakes(unittest.TestCase):
    def refused(self, status, *arguments, stdin=None):
        result = run(*arguments, stdin=stdin)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertEqual(result.stdout, "")
        return result.stderr

    def test_usage(self):
        self.assertIn("no TRACE", self.refused(2))
        self.assertIn("expected one of bfc, tf, pytorch", self.refused(2, "x", "--policy", "best"))
        self.assertIn("expected one of double, fixed, exact, preallocate", self.refused(2, "x", "--growth=huge"))
        self.assertIn("expected one of sync, lazy, ordered", self.refused(2, "x", "--free", "0"))
        self.assertIn("BFC_MAX_SPLIT=1K is not accepted: expected none or a size from 20M",
                      self.refused(2, "x", "--set", "BFC_MAX_SPLIT=1K"))
        self.assertIn("no variable BFC_NONE", self.refused(2, "x", "--set", "BFC_NONE=1"))
        self.assertIn("expected BFC_NAME=VALUE", self.refused(2, "x", "--set", "BFC_LIMIT"))
        self.assertIn("needs a value", self.refused(2, "x", "--memory"))
        self.assertIn("not with --compare", self.refused(2, "x", "--compare", "--plot", "y"))
        self.assertIn("unknown option", self.refused(2, "x", "--fast"))

    def test_input(self):
        self.assertIn("cannot be read", self.refused(1, "/nowhere/at/all.csv"))
        for text in ("", "id,lower,upper\na,0,1\n", "id,lower,upper,size\na,0,1,-5\n",
                     "id,lower,upper,size\na,3,2,5\n", "id,lower,upper,size\na,0,1,5\na,1,2,5\n",
                     "id,lower,upper,size\na,0,1\n", "BFCTRAC\0 and no more"):
            with self.subTest(text=text):
                self.refused(1, "-", stdin=text)

    def test_output(self):
        text = "id,lower,upper,size\na,0,1,5\n"
        self.assertIn("cannot be written", self.refused(1, "-", "--events", "/nowhere/e.csv", stdin=text))


if __name__ == "__main__":
    sys.exit(unittest.main())
