#!/usr/bin/env python3
"""Programs whose call stacks are hard to walk run as they do without walks (BFC_STACKS).

usage: test_attacks.py LIBRARY BFCSTAT ATTACKER EMBEDDER PLUGIN
"""
import json
import os
import subprocess
import sys
import sysconfig
import unittest

LIBRARY, BFCSTAT, ATTACKER, EMBEDDER, PLUGIN = sys.argv[1:6]
HERE = os.path.dirname(os.path.abspath(__file__))
SCENES = ["astray", "coroutine_inside", "protected_later", "flipping", "fork_under_lock",
          "wait_under_lock", "many", "forks", "under_lock", "forking_handler", "deeper", "huge", "cloned",
          "vforks", "comings_and_goings", "filtered"]
CPYTHON = sys.implementation.name == "cpython" and sys.version_info >= (3, 9)


def environment(stacks):
    return dict(os.environ, LD_PRELOAD=LIBRARY, SIM_MEMORY="4G", PLUGIN=PLUGIN, BFC_STACKS=stacks)


class Attacks(unittest.TestCase):
    def run_each_way(self, *command):
        for stacks in "off", "sample", "all":
            with self.subTest(command=command[1:], stacks=stacks):
                run = subprocess.run(command, env=environment(stacks), stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                     check=False)
                self.assertEqual(run.returncode, 0, run.stderr)
                yield run.stdout

    def test_native(self):
        for scene in SCENES:
            for said in self.run_each_way(ATTACKER, scene):
                self.assertEqual(said, "ready\n")

    def test_in_a_container_that_refuses_what_walks_need(self):
        for scene in "astray", "deeper", "comings_and_goings":
            for said in self.run_each_way(ATTACKER, scene, "in-container"):
                self.assertEqual(said, "ready\n")

    def test_more_places_than_there_is_room_for(self):
        with subprocess.Popen([ATTACKER, "many"], env=environment("all"), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as job:
            self.assertEqual(job.stdout.readline(), "ready\n")
            who = json.loads(subprocess.check_output([BFCSTAT, "who", "--json", str(job.pid)]))
            job.communicate()
        self.assertEqual((who["all"]["bytes"], who["all"]["allocated_blocks"]), (1 << 20, 100001))
        if os.uname().machine == "x86_64":
            self.assertEqual([s["allocated_blocks"] for s in who["sites"] if not s["frames"]],
                             [100001 - sum(len(s["frames"]) > 0 for s in who["sites"])])

    @unittest.skipUnless(CPYTHON, "not CPython 3.9 or later")
    def test_python(self):
        for said in self.run_each_way(sys.executable, os.path.join(HERE, "attack.py")):
            self.assertEqual(said, "ready\n")

    @unittest.skipUnless(CPYTHON, "not CPython 3.9 or later")
    def test_embedded_python(self):
        library = os.path.join(sysconfig.get_config_var("LIBDIR") or "",
                               sysconfig.get_config_var("INSTSONAME") or "none")
        if ".so" not in library or not os.path.exists(library):
            self.skipTest("there is no libpython to embed")
        for said in self.run_each_way(EMBEDDER, library):
            self.assertIn("loaded", said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
