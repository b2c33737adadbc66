"""mutate.py changes what a patch says, and says why where a patch does not fit."""

import os
import tempfile
import unittest

import mutate

CODE = """\
static int twice(int x);

static __attribute__((noinline)) int
twice(int x) {
    if (x == 0)
        return 0;
    return 2 * x;
}

int caller(void) {
    return twice(1) +
           twice(2);
}
"""
OTHER = """\
static int twice(int y) {
    return y + y;
}
"""


class Mutate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        self.write("interpose/room/code.c", CODE)

    def write(self, name, text):
        mutate.write(os.path.join(self.root, name), text)

    def mutate(self, *hunks, first="Without a test"):
        self.write("some.patch", "\n".join([first, *hunks]) + "\n")
        return mutate.mutate(os.path.join(self.root, "some.patch"), self.root)

    def assert_misfit(self, reason, *hunks, **more):
        with self.assertRaisesRegex(mutate.Misfit, reason):
            self.mutate(*hunks, **more)

    def test_lines_are_replaced(self):
        changed = self.mutate("@@ twice @@", "-  return 2 * x;", "+    return x;")
        self.assertEqual(changed, {"interpose/room/code.c": CODE.replace("2 * x", "x")})

    def test_lines_that_stay_tell_the_place(self):
        changed = self.mutate("@@ caller @@", "     return twice(1) +", "-           twice(2);", "+           3;")
        self.assertEqual(changed, {"interpose/room/code.c": CODE.replace("twice(2)", "3")})

    def test_new_lines_alone_come_first(self):
        changed = self.mutate("@@ caller @@", "+    return 7;")
        self.assertEqual(changed, {"interpose/room/code.c": CODE.replace("(void) {\n", "(void) {\n    return 7;\n")})

    def test_several_hunks_and_files(self):
        self.write("pool/other.c", OTHER.replace("twice", "double_it"))
        changed = self.mutate("@@ caller @@", "+    return 7;", "", "@@ double_it @@", "+    return 8;",
                              "@@ twice @@", "+    return 9;")
        self.assertEqual(list(changed), ["interpose/room/code.c", "pool/other.c"])
        self.assertEqual(changed["interpose/room/code.c"].count("return"), 5)

    def test_a_function_may_move(self):
        before = self.mutate("@@ caller @@", "+    return 7;")
        os.renames(f"{self.root}/interpose/room/code.c", f"{self.root}/interpose/other/new.c")
        after = self.mutate("@@ caller @@", "+    return 7;")
        self.assertEqual(after, {"interpose/other/new.c": before["interpose/room/code.c"]})

    def test_a_name_may_be_in_two_files(self):
        self.write("interpose/other.c", OTHER)
        changed = self.mutate("@@ twice @@", "-    return y + y;", "+    return y;")
        self.assertEqual(list(changed), ["interpose/other.c"])
        self.assert_misfit("that function is there 2 times", "@@ twice @@", "+    return 1;")

    def test_misfits(self):
        self.assert_misfit("no .c file .* defines thrice", "@@ thrice @@", "+    return 1;")
        self.assert_misfit("there 0 times, not once\nreturn 3;", "@@ twice @@", "-    return 3;")
        self.assert_misfit("there 0 times", "@@ caller @@", "-    return 2 * x;")
        self.write("interpose/room/code.c", CODE.replace("return 0;", "return 2 * x;"))
        self.assert_misfit("there 2 times", "@@ twice @@", "-    return 2 * x;")

    def test_malformed(self):
        self.assert_misfit("first line", "@@ twice @@", "+    return 1;", first="diff")
        self.assert_misfit("there is none")
        self.assert_misfit("changes nothing", "@@ twice @@", "     return 2 * x;")
        self.assert_misfit("neither", "@@ twice @@", "return 2 * x;")


if __name__ == "__main__":
    unittest.main()
