"""Calls past the pool after large frees: they get what is natively free, whatever the policy."""
import os
import subprocess
import unittest

PAST_POOL, PRELOAD = os.environ["PAST_POOL"], os.environ["PRELOAD"]
SETTINGS = [{"BFC_POLICY": policy, "BFC_GROWTH": growth}
            for policy in ("bfc", "tf", "pytorch") for growth in ("double", "fixed", "exact", "preallocate")]


class PastPool(unittest.TestCase):
    def run_program(self, *arguments, memory="3G", **settings):
        ready = {k: v for k, v in os.environ.items() if not k.startswith(("BFC_", "SIM_"))}
        result = subprocess.run([PAST_POOL, *arguments], env={**ready, "SIM_MEMORY": memory, **settings},
                                capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, "%s %s: %s" % (arguments, settings, result.stdout + result.stderr))

    def test_natively(self):
        self.run_program("session")
        self.run_program("kept", memory="4G")
        for seed in range(4):
            self.run_program("random", str(seed))

    def test_with_every_policy_and_growth(self):
        for settings in SETTINGS:
            small = {"BFC_PREALLOCATE": "64M", **settings}
            # By its own rule tf takes all of 4 GiB, and cannot grow.
            doubles = settings == {"BFC_POLICY": "tf", "BFC_GROWTH": "double"}
            for scene, memory in (("session", "3G"), ("kept", "6G" if doubles else "4G")):
                with self.subTest(scene=scene, **settings):
                    self.run_program(scene, memory=memory, LD_PRELOAD=PRELOAD, **small)

    def test_random_rounds(self):
        seeds = int(os.environ.get("BFC_TEST_PROGRAMS", 3))
        # In `lazy` and `ordered` tf's doubled regions fill the device, so that the pool cannot grow.
        for policy, mode in (("bfc", "sync"), ("tf", "sync"), ("pytorch", "sync"), ("bfc", "lazy"), ("pytorch", "lazy"),
                             ("bfc", "ordered"), ("pytorch", "ordered")):
            settings = {"BFC_POLICY": policy}
            with self.subTest(mode=mode, **settings):
                for seed in range(seeds):
                    self.run_program("random", str(seed), LD_PRELOAD=PRELOAD, BFC_FREE=mode, **settings)


if __name__ == "__main__":
    unittest.main()
