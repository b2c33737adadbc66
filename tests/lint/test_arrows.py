"""arrows.py finds what it is there to find, in trees of two rooms."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
FLOORS = "upper\nlower\n"


class Arrows(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def write(self, name, text):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def check(self, files, floors=FLOORS):
        """Exit status and output for a tree of these files, compiled."""
        entries = []
        self.write("tests/lint/floors", "tests\n" + floors)
        for name, text in files.items():
            self.write(name, text)
        for name in (n for n in files if n.endswith(".c")):
            output = f"program.p/{name.replace('/', '_')}.o"
            os.makedirs(os.path.join(self.root, "program.p"), exist_ok=True)
            subprocess.run([*shlex.split(os.environ["CC"]), "-I.", "-c", name, "-o", output],
                           cwd=self.root, check=True)
            entries.append({"directory": self.root, "file": name, "output": output})
        self.write("compile_commands.json", json.dumps(entries))
        done = subprocess.run([sys.executable, os.path.join(HERE, "arrows.py"), self.root, self.root],
                              stdout=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout

    def test_down_is_allowed(self):
        status, out = self.check({
            "upper/a.c": '#include "lower/b.h"\nint a(void) { return b(); }\n',
            "lower/b.h": "int b(void);\n", "lower/b.c": "int b(void) { return 1; }\n"})
        self.assertEqual(status, 0, out)

    def test_include_up(self):
        status, out = self.check({"lower/b.c": '#include "upper/a.h"\n', "upper/a.h": "int a(void);\n"})
        self.assertEqual(status, 1)
        self.assertIn('lower/b includes "upper/a.h"', out)

    def test_call_up_without_an_include(self):
        status, out = self.check({"lower/b.c": "int a(void);\nint b(void) { return a(); }\n",
                                  "upper/a.c": "int a(void) { return 1; }\n"})
        self.assertEqual(status, 1)
        self.assertIn("lower/b uses a", out)

    FEATURES = "features/spill features/watch\nlower\n"

    def test_a_feature_calls_another(self):
        status, out = self.check({
            "features/spill/s.c": "int w(void);\nint s(void) { return w(); }\n",
            "features/watch/w.c": "int w(void) { return 1; }\n"}, self.FEATURES)
        self.assertEqual(status, 1)
        self.assertIn("features/spill/s uses w: an arrow from features/spill to features/watch", out)

    def test_the_core_includes_a_feature(self):
        status, out = self.check({
            "lower/b.c": '#include "features/spill/s.h"\n', "features/spill/s.h": "int s(void);\n"}, self.FEATURES)
        self.assertEqual(status, 1)
        self.assertIn('lower/b includes "features/spill/s.h"', out)

    def test_rooms_beside_the_features(self):
        for floors, words in (
            ("interpose/features/a interpose/core\n", "interpose/core is of the core, and not below"),
            ("interpose/features/b\ninterpose/features/a\n", "interpose/features/b is not on the floor"),
        ):
            status, out = self.check({}, floors)
            self.assertEqual(status, 1)
            self.assertIn(words, out)

    CIRCLE = {"lower/one.c": "int two(void);\nint one(void) { return two(); }\n",
              "lower/two.c": "int three(void);\nint two(void) { return three(); }\n",
              "lower/three.c": '#include "lower/one.h"\nint three(void) { return 1; }\n',
              "lower/one.h": "int one(void);\n"}

    def test_circle_of_calls_and_an_include(self):
        status, out = self.check(self.CIRCLE)
        self.assertEqual(status, 1)
        self.assertIn("  lower/one uses two\n  lower/two uses three\n"
                      '  lower/three includes "lower/one.h"\n', out + "\n")

    def test_circle_in_an_exempt_room(self):
        status, out = self.check(self.CIRCLE, FLOORS + "cycles lower\n")
        self.assertEqual(status, 0, out)

    def test_homeless_file(self):
        status, out = self.check({"elsewhere/c.c": "int c;\n"})
        self.assertEqual(status, 1)
        self.assertIn("elsewhere/c.c is in no room", out)


if __name__ == "__main__":
    unittest.main()
