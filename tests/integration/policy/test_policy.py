"""Settings and neighbours: preloaded processes on the stand-in device, alone and together."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ACTOR, PRELOAD = os.environ["ACTOR"], os.environ["PRELOAD"]


class Policy(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.running = []

    def tearDown(self):
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def environment(self, settings):
        ready = {k: v for k, v in os.environ.items() if not k.startswith(("BFC_", "SIM_"))}
        return {**ready, "LD_PRELOAD": PRELOAD, "SIM_MEMORY": "256M",
                "SIM_STATS": os.path.join(self.folder.name, "stats"), **settings}

    def run_actor(self, *actions, **settings):
        result = subprocess.run([ACTOR, *map(str, actions)], env=self.environment(settings), capture_output=True,
                                text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(os.path.join(self.folder.name, "stats")) as file:
            self.calls = json.loads(file.readlines()[-1])
        return [line.split() for line in result.stdout.splitlines()]

    def start(self, *actions, **settings):
        process = subprocess.Popen([ACTOR, *map(str, actions)], text=True, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE,
                                   env=self.environment({"SIM_SHARE": os.path.join(self.folder.name, "share"),
                                                         **settings}))
        self.running.append(process)
        while process.stdout.readline().strip() != "ready":
            self.assertIsNone(process.poll())
        return process

    def run_beside(self, *actions, **settings):
        return self.run_actor(*actions, SIM_SHARE=os.path.join(self.folder.name, "share"), **settings)

    # ---- alone ----

    def test_every_policy_and_growth(self):
        for policy in ("bfc", "tf", "pytorch"):
            for growth in ("double", "fixed", "exact", "preallocate"):
                with self.subTest(policy=policy, growth=growth):
                    said = self.run_actor("alloc", 1, "alloc", 30, "free", "alloc", 20, "free", "free",
                                          BFC_POLICY=policy, BFC_GROWTH=growth)
                    self.assertEqual([line[2] for line in said], ["0", "0", "0"])

    def test_preallocate_takes_all_at_once(self):
        self.run_actor("alloc", 1, "alloc", 60, "alloc", 60, BFC_GROWTH="preallocate", BFC_PREALLOCATE="0.75")
        self.assertEqual(self.calls["cuMemAlloc"], 1)

    def test_two_halves(self):
        for policy in ("bfc", "tf", "pytorch"):
            with self.subTest(policy=policy):
                said = self.run_actor("alloc", 140, "alloc", 140, "free", "alloc", 150, BFC_POLICY=policy)
                self.assertEqual([line[2] for line in said], ["0", "2", "0"])

    def test_two_blocks_that_take_nearly_all(self):
        said = self.run_actor("alloc", 2, "alloc", 120, "alloc", 130)
        self.assertEqual([line[2] for line in said], ["0", "0", "0"])

    def test_limit_and_reserve_in_memory_info(self):
        said = self.run_actor("alloc", 1, "mib", "alloc", 150, BFC_LIMIT="0.5", BFC_GROWTH="exact")
        self.assertEqual(said[1][1:], ["127", "of", "128"])
        self.assertEqual(said[2][2], "2")
        said = self.run_actor("alloc", 1, "mib", "alloc", 190, "alloc", 150, BFC_RESERVE="100M", BFC_GROWTH="exact")
        self.assertLessEqual(int(said[1][1]), 156)
        self.assertEqual([said[2][2], said[3][2]], ["2", "0"])

    def test_bypass(self):
        self.run_actor("alloc", 32, "free", "alloc", 32, "free", BFC_BYPASS_ABOVE="16M")
        self.assertEqual(self.calls["cuMemAlloc"], 2)
        said = self.run_actor("alloc", 12, "free", "alloc", 12, "free", "alloc", 250, BFC_BYPASS_ABOVE="16M")
        self.assertEqual(said[2][2], "0", "what the pool caches is given back first")

    def test_gc_threshold(self):
        actions = []
        for mib in (40, 44, 48, 52):
            actions += ["alloc", mib, "free"]
        self.run_actor(*actions, BFC_GROWTH="exact", BFC_GC_THRESHOLD="0.3")
        self.assertGreater(self.calls["cuMemFree"], 0)
        self.run_actor(*actions, BFC_GROWTH="exact")
        self.assertEqual(self.calls["cuMemFree"], 0)

    def test_max_split(self):
        said = self.run_actor("alloc", 40, "free", "alloc", 1, BFC_MAX_SPLIT="20M", BFC_GROWTH="exact")
        self.assertEqual(said[1][2], "0")
        self.assertEqual(self.calls["cuMemAlloc"], 2, "a small request does not break a large block")

    def test_idle_regions_go_back(self):
        said = self.run_actor("alloc", 64, "free", "sleep", 400, BFC_TRIM_IDLE="0.05")
        self.assertEqual(said[0][2], "0")
        self.assertEqual(self.calls["cuMemFree"], 1)

    # ---- together ----

    def test_a_neighbour_gives_back(self):
        self.start("alloc", 160, "free", "wait")
        said = self.run_beside("try", 200)
        self.assertIn("0", [line[2] for line in said])

    def test_only_as_much_as_is_asked(self):
        # Two idle regions of 80 MiB: one is enough.
        other = self.start("alloc", 80, "alloc", 80, "free", "free", "wait", "alloc", 80, "alloc", 80, BFC_GROWTH="exact")
        said = self.run_beside("try", 150, "mib", BFC_GROWTH="exact")
        self.assertIn("0", [line[2] for line in said])
        self.assertLess(int(said[-1][1]), 40)
        other.communicate("\n", timeout=30)

    def test_what_is_left_to_others_is_asked_for_too(self):
        # 136 MiB are free; 150 and the 40 that stay free lack 54: three of the six idle regions of 20 MiB.
        other = self.start(*["alloc", 20] * 6, *["free"] * 6, "wait", BFC_GROWTH="exact")
        said = self.run_beside("try", 150, "mib", BFC_RESERVE="40M", BFC_GROWTH="exact")
        self.assertIn("0", [line[2] for line in said[:-1]])
        self.assertLess(int(said[-1][1]), 30, "the other job gave back more than was lacking")
        other.communicate("\n", timeout=30)

    def test_no_yield(self):
        self.start("alloc", 160, "free", "wait", BFC_YIELD="0")
        self.assertEqual(self.run_beside("alloc", 200)[0][2], "2")

    def test_what_is_in_use_stays(self):
        self.start("alloc", 160, "wait")
        self.assertEqual(self.run_beside("alloc", 200)[0][2], "2")

    def test_a_stopped_neighbour_holds_nobody_up(self):
        stopped = self.start("alloc", 100, "free", "wait", BFC_GROWTH="exact")
        self.start("alloc", 90, "free", "wait", BFC_GROWTH="exact")
        stopped.send_signal(signal.SIGSTOP)
        time.sleep(0.05)
        said = self.run_beside("try", 140)
        self.assertIn("0", [line[2] for line in said])
        stopped.send_signal(signal.SIGCONT)

    def test_a_killed_neighbour_is_no_harm(self):
        killed = self.start("alloc", 100, "free", "wait")
        killed.kill()
        killed.wait()
        self.assertIn("0", [line[2] for line in self.run_beside("try", 200)])


if __name__ == "__main__":
    sys.exit(unittest.main())
