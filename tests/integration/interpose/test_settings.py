#!/usr/bin/env python3
"""Settings files: what counts over what, what is refused, and when they are opened.

usage: test_settings.py LIBRARY PROGRAM CHILDREN BFCRUN BFCOPTS BUILD
"""

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

LIBRARY, PROGRAM, CHILDREN, BFCRUN, BFCOPTS, BUILD = sys.argv[1:7]
SYSTEM = "/etc/bfcpreload.conf"


def environment(**changes):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("BFC_")}
    kept.pop("XDG_CONFIG_HOME", None)
    return kept | {"HOME": "/nonexistent"} | changes


def run(*command, **changes):
    return subprocess.run(command, env=environment(**changes), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60)


class Settings(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="bfc settings ")
        self.addCleanup(shutil.rmtree, self.folder)
        self.file = os.path.join(self.folder, "bfcpreload.conf")

    def write(self, text, path=None):
        with open(path or self.file, "wb") as file:
            file.write(text.encode())

    def config(self, **changes):
        """Variable: (value, origin); and what was said."""
        shown = run(BFCOPTS, "config", **{"XDG_CONFIG_HOME": self.folder} | changes)
        rows = [line.split(None, 2) for line in shown.stdout.splitlines() if line[0] != "#"]
        return {name: (value, origin) for name, value, origin in rows}, shown.stderr

    def preloaded(self, **changes):
        return run(PROGRAM, LD_PRELOAD=LIBRARY, **{"XDG_CONFIG_HOME": self.folder} | changes)

    def test_a_program_obeys_its_users_file(self):
        self.assertNotIn("allocations", self.preloaded().stderr)
        self.write("BFC_SUMMARY=1\n")
        self.assertIn("allocations", self.preloaded().stderr)
        self.assertNotIn("allocations", self.preloaded(BFC_SUMMARY="0").stderr)

    def test_places(self):
        config = os.path.join(self.folder, ".config")
        os.mkdir(config)
        self.write("BFC_FREE=lazy\n", os.path.join(config, "bfcpreload.conf"))
        self.write("BFC_FREE=ordered\n")
        for changes, value in (({"HOME": self.folder}, "lazy"),
                               ({"HOME": self.folder, "XDG_CONFIG_HOME": "relative"}, "lazy"),
                               ({"HOME": "/nonexistent", "XDG_CONFIG_HOME": self.folder}, "ordered"),
                               ({"HOME": "", "XDG_CONFIG_HOME": ""}, "sync")):
            shown = run(BFCOPTS, "config", **changes).stdout
            self.assertRegex(shown, rf"BFC_FREE +{value} ", changes)

    def test_lines(self):
        self.write("# comment\n\n  BFC_FREE = lazy \r\nBFC_LIMIT=1G\nBFC_LIMIT=2G\n\tBFC_ONLY=a b")
        shown, said = self.config(BFC_GROWTH="fixed")
        self.assertEqual(said, "")
        self.assertEqual(shown["BFC_FREE"], ("lazy", self.file + ":3"))
        self.assertEqual(shown["BFC_LIMIT"], ("2G", self.file + ":5"))
        self.assertEqual(shown["BFC_GROWTH"], ("fixed", "environment"))
        self.assertEqual(shown["BFC_POLICY"], ("bfc", "default"))

    def test_former_names(self):
        self.write("BFC_PENDING_BUDGET=2M\nBFC_DIRTY_BUDGET=1M\n")
        self.assertEqual(self.config()[0]["BFC_PENDING_BUDGET"][0], "2M")
        self.assertEqual(self.config(BFC_DIRTY_BUDGET="3M")[0]["BFC_PENDING_BUDGET"], ("3M", "environment"))

    def test_bad_lines_are_named(self):
        self.write("BFC_FREE=slow\nBFC_NONE=1\nwords\nBFC_DEEPBIND=keep\n" + "x" * 2000 + "\n\x1bBFC_FREE=\x1b[2J\n"
                   "BFC_POLICY=tf\n")
        shown, said = self.config()
        for line, words in ((1, "BFC_FREE=slow is not accepted: expected one of sync, lazy, ordered"),
                            (2, "BFC_NONE: no such variable"), (3, "'words' is not NAME=value"),
                            (4, "BFC_DEEPBIND counts in the environment alone"), (5, "longer than"),
                            (6, "?BFC_FREE: no such variable")):
            self.assertIn(f"bfcpreload: {self.file}:{line}: {words}", said)
        self.assertEqual(shown["BFC_POLICY"], ("tf", self.file + ":7"))
        self.assertEqual(shown["BFC_FREE"], ("sync", "default"))
        self.assertIn(f"{self.file}:1: BFC_FREE=slow", self.preloaded().stderr)
        native = run(PROGRAM).stdout
        self.assertEqual(self.preloaded().stdout, native)
        self.assertNotEqual(self.preloaded(BFC_STRICT="1").stdout, native)

    def test_a_bad_variable_leaves_what_the_file_says(self):
        self.write("BFC_FREE=lazy\n")
        shown, said = self.config(BFC_FREE="slow")
        self.assertIn("BFC_FREE=slow is not accepted", said)
        self.assertIn("every call goes to the driver", said)
        self.assertEqual(shown["BFC_FREE"], ("lazy", self.file + ":1"))

    def test_nothing_is_pooled_without_a_bound_that_can_be_read(self):
        native = run(PROGRAM).stdout
        for value in ("2X", "2,5G", "", "1.5"):
            done = self.preloaded(BFC_LIMIT=value)
            self.assertEqual((done.returncode, done.stdout), (0, native))
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(f"bfcpreload: BFC_LIMIT={value} is not accepted: expected none, a size", done.stderr)
            self.assertIn("every call goes to the driver", done.stderr)
        self.assertNotEqual(self.preloaded(BFC_LIMIT="2X", BFC_STRICT="1").stdout, native)
        self.assertIn("a pool begins", self.preloaded(BFC_WAIT="x", BFC_LOG="info").stderr)
        self.write("BFC_LIMIT = 2X\n")
        self.assertNotIn("a pool begins", self.preloaded(BFC_LOG="info").stderr)
        self.assertIn("unless it is set elsewhere", self.preloaded().stderr)
        self.assertIn("a pool begins", self.preloaded(BFC_LOG="info", BFC_LIMIT="2G").stderr)

    def test_sizes_with_fractions_and_units(self):
        self.write("BFC_LIMIT = 2.5 GiB\n")
        self.assertEqual(self.config(BFC_RESERVE="512MB")[0]["BFC_LIMIT"][0], "2560M")
        self.assertIn("limit 2.50 GiB", self.preloaded(BFC_LOG="info").stderr)

    def test_modes(self):
        self.write("BFC_MODE=fast\n")
        shown, said = self.config()
        self.assertEqual((shown["BFC_FREE"], said), (("ordered", "BFC_MODE"), ""))
        self.assertEqual(self.config(BFC_FREE="lazy")[0]["BFC_FREE"], ("lazy", "environment"))
        shown = self.config(BFC_MODE="compact")[0]
        self.assertEqual((shown["BFC_BACKING"], shown["BFC_PLAN"]), (("auto", "BFC_MODE"),) * 2)
        self.assertEqual(shown["BFC_FREE"], ("sync", "default"))
        native = run(PROGRAM).stdout
        for mode, begins in (("exact", "free sync"), ("fast", "free ordered"), ("compact", "pages")):
            done = self.preloaded(BFC_MODE=mode, BFC_LOG="info")
            self.assertEqual((done.returncode, done.stdout), (0, native))
            self.assertIn(begins, done.stderr)

    def test_unknown_names(self):
        said = self.preloaded(BFC_LIMT="1G", BFC_BANANA="1").stderr
        self.assertIn("bfcpreload: BFC_LIMT=1G: no such variable; did you mean BFC_LIMIT?\n", said)
        self.assertIn("bfcpreload: BFC_BANANA=1: no such variable; bfcrun --help lists them\n", said)
        self.write("BFC_LIMT=1G\n")
        self.assertIn(":1: BFC_LIMT: no such variable; did you mean BFC_LIMIT?\n", self.preloaded().stderr)

    def test_odd_files(self):
        os.mkfifo(self.file)
        self.assertIn("not a regular file", self.config()[1])
        os.unlink(self.file)
        os.mkdir(self.file)
        self.assertIn("not a regular file", self.config()[1])
        os.rmdir(self.file)
        self.write("#" * 70000)
        self.assertIn("larger than 65535 bytes", self.config()[1])
        self.write("BFC_FREE=lazy")
        os.chmod(self.file, 0o666)
        self.assertIn("everyone may write it", self.config()[1])
        os.chmod(self.file, 0o600)
        self.assertEqual(self.config()[1], "")
        os.unlink(self.file)
        os.symlink("nowhere", self.file)
        self.assertEqual(self.config()[1], "")
        os.unlink(self.file)
        os.symlink(os.path.basename(self.file), self.file)
        self.assertIn("links in a circle", self.config()[1])
        os.unlink(self.file)
        self.write("\ufeffBFC_FREE=lazy\r\n")
        self.assertEqual((self.config()[0]["BFC_FREE"][0], self.config()[1]), ("lazy", ""))
        self.write("", self.file + "2")
        self.assertEqual(run(BFCOPTS, "config", HOME=self.file + "2").stderr, "")

    @unittest.skipUnless(os.getuid() == 0, "needs root, to give files away")
    def test_other_users(self):
        self.write("BFC_FREE=lazy")
        os.chown(self.file, 1234, 1234)
        shown, said = self.config()
        self.assertIn("belongs to another user: not read", said)
        self.assertEqual(shown["BFC_FREE"][0], "sync")
        os.chown(self.file, 0, 0)
        os.chmod(self.folder, 0o755)
        program = os.path.join(self.folder, "bfcopts")
        shutil.copy2(BFCOPTS, program)
        self.assertRegex(run("setpriv", "--reuid=1234", program, "config", XDG_CONFIG_HOME=self.folder).stdout,
                         r"BFC_FREE +lazy ")
        os.chmod(program, 0o755 | stat.S_ISUID)
        shown = run("setpriv", "--reuid=1234", program, "config", XDG_CONFIG_HOME=self.folder)
        if "NoNewPrivs:\t1" in open("/proc/self/status", encoding="utf-8").read():
            self.skipTest("setuid does not count here")
        self.assertRegex(shown.stdout, r"BFC_FREE +sync +default")

    @unittest.skipUnless(os.getuid() == 0, "needs root, to make a program setuid")
    def test_a_setuid_program_obeys_no_user(self):
        """Such a program is preloaded where /etc/ld.so.preload names the library."""
        script = 'mount -t tmpfs none /etc && echo "$0" >/etc/ld.so.preload && exec setpriv --reuid=1234 "$1"'
        program = os.path.join(self.folder, "program")
        os.chmod(self.folder, 0o777)
        shutil.copy2(PROGRAM, program)

        def said():
            return run("unshare", "--mount", "sh", "-c", script, LIBRARY, program, BFC_SUMMARY="1",
                       BFC_RECORD=os.path.join(self.folder, "trace")).stderr

        os.chmod(program, 0o755)
        if "allocations" not in said():
            self.skipTest("no mount namespaces here, or another user may not read the build folder")
        os.unlink(os.path.join(self.folder, "trace"))
        os.chmod(program, 0o755 | stat.S_ISUID)
        if "NoNewPrivs:\t1" in open("/proc/self/status", encoding="utf-8").read():
            self.skipTest("setuid does not count here")
        self.assertNotIn("allocations", said())
        self.assertEqual(sorted(os.listdir(self.folder)), ["program"])

    def test_the_systems_file(self):
        """In a mount namespace, with a file system of its own over /etc."""
        script = ('set -e; mount -t tmpfs none /etc; printf "BFC_FREE=lazy\\nBFC_LIMIT=1G\\nBFC_SUMMARY=1\\n" > '
                  + SYSTEM + '; "$0" config; LD_PRELOAD=$1 "$2" 2>&1 >/dev/null')
        if run("unshare", "-rm", "mount", "-t", "tmpfs", "none", "/etc").returncode:
            self.skipTest("no mount namespaces here")
        self.write("BFC_LIMIT=2G\nBFC_GROWTH=exact\n")
        shown = run("unshare", "-rm", "sh", "-c", script, BFCOPTS, LIBRARY, PROGRAM, XDG_CONFIG_HOME=self.folder,
                    BFC_GROWTH="fixed")
        self.assertRegex(shown.stdout, rf"BFC_FREE +lazy +{SYSTEM}:1\n")
        self.assertRegex(shown.stdout, rf"BFC_LIMIT +2G +{re.escape(self.file)}:1\n")
        self.assertRegex(shown.stdout, r"BFC_GROWTH +fixed +environment\n")
        self.assertIn("allocations", shown.stdout)

    def opened(self, *command, **changes):
        trace = os.path.join(self.folder, "trace")
        traced = run("strace", "-f", "-o", trace, "-e", "trace=open,openat", *command, LD_PRELOAD=LIBRARY, **changes)
        with open(trace, encoding="utf-8", errors="replace") as file:
            return traced, [line for line in file if "bfcpreload.conf" in line]

    @unittest.skipUnless(shutil.which("strace"), "no strace here")
    def test_when_it_is_opened(self):
        self.assertEqual(self.opened("/bin/true", XDG_CONFIG_HOME=self.folder)[1], [])
        self.assertEqual(self.opened("bash", "-c", "ls / | cat", XDG_CONFIG_HOME=self.folder)[1], [])
        opened = self.opened(PROGRAM, XDG_CONFIG_HOME=self.folder)[1]
        # When the driver is found, for BFC_GATE, and at the first allocation.
        self.assertEqual(len(opened), 4, opened)
        for name, line in zip((SYSTEM, self.file) * 2, opened):
            self.assertIn(f'"{name}"', line)
            self.assertIn("O_CLOEXEC", line)

    def test_forked_children(self):
        self.write("BFC_FREE=lazy\n")
        native = run(CHILDREN)
        preloaded = run(CHILDREN, LD_PRELOAD=LIBRARY, XDG_CONFIG_HOME=self.folder)
        self.assertEqual((preloaded.returncode, preloaded.stdout), (native.returncode, native.stdout))

    def test_show_config(self):
        self.write("BFC_FREE=lazy\n")
        shown = run(BFCRUN, "--limit=1G", "--show-config", XDG_CONFIG_HOME=self.folder, BFC_BUILD=BUILD,
                    BFC_GROWTH="exact")
        self.assertIn("# " + self.file + "\n", shown.stdout)
        self.assertRegex(shown.stdout, rf"BFC_FREE +lazy +{re.escape(self.file)}:1\n")
        self.assertRegex(shown.stdout, r"BFC_LIMIT +1G +command line\n")
        self.assertRegex(shown.stdout, r"BFC_GROWTH +exact +environment\n")
        self.assertIn("BFC_FREE=slow is not accepted", run(BFCRUN, "--free=slow", "--show-config",
                                                          BFC_BUILD=BUILD).stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
