#!/usr/bin/env python3
"""install.sh of the tarball, over a small tree of files: upgrades, what lies in the way, a disk that is full."""

import os
import resource
import shutil
import subprocess
import tempfile
import unittest

BFCOPTS, SOURCE = os.environ["BFCOPTS"], os.environ["SOURCE_ROOT"]
INSTALL = os.path.join(SOURCE, "packaging", "install.sh")
UNIT = "lib/systemd/system/bfcstat.service"


class Install(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="bfc-install-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.prefix = os.path.join(self.folder, "prefix")

    def unpacked(self, version, **more):
        """A tarball's folder: each file says its version."""
        folder = os.path.join(self.folder, version)
        names = ["bin/bfcrun", "lib/bfcpreload/libbfcpreload.so", "share/man/man1/bfcrun.1", *more.get("files", ())]
        for name in names:
            self.write(os.path.join(folder, "files", name), version)
        self.write(os.path.join(folder, "files", UNIT), "ExecStart=/usr/bin/bfcstat serve\n")
        shutil.copy(BFCOPTS, os.path.join(folder, "files/lib/bfcpreload/bfcopts"))
        shutil.copy(INSTALL, folder)
        return folder

    def write(self, path, text):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        with open(os.path.join(self.prefix, name), encoding="utf-8") as file:
            return file.read()

    def run_in(self, folder, *arguments, **more):
        return subprocess.run([os.path.join(folder, "install.sh"), *arguments], capture_output=True, text=True,
                              timeout=60, **more)

    def install(self, folder, *arguments, **more):
        done = self.run_in(folder, *(arguments or [self.prefix]), **more)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def refusal(self, folder, *arguments, **more):
        done = self.run_in(folder, *arguments, **more)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.stderr

    def found(self):
        return sorted(os.path.relpath(os.path.join(place, name), self.prefix)
                      for place, _, names in os.walk(self.prefix) for name in names)

    def test_upgrade_downgrade_remove(self):
        """Nothing of another version stays, whichever of them removes."""
        old, new = self.unpacked("1", files=["bin/former"]), self.unpacked("2", files=["bin/later"])
        self.install(old)
        self.write(os.path.join(self.prefix, "bin/mine"), "another's")
        self.install(new)
        self.assertEqual((self.read("bin/bfcrun"), os.path.exists(os.path.join(self.prefix, "bin/former"))),
                         ("2", False))
        self.install(old)
        self.assertNotIn("bin/later", self.found())
        self.install(new, "--uninstall", self.prefix)
        self.assertEqual(self.found(), ["bin/mine"])
        self.install(new, "--uninstall", self.prefix)

    def test_what_was_mapped_stays(self):
        self.install(self.unpacked("1"))
        with open(os.path.join(self.prefix, "lib/bfcpreload/libbfcpreload.so"), encoding="utf-8") as mapped:
            self.install(self.unpacked("2"))
            self.assertEqual(mapped.read(), "1")

    def test_a_disk_that_is_full(self):
        """A file that does not fit leaves all as it was, and no halves of itself."""
        self.install(self.unpacked("1"))
        before = self.found()
        new = self.unpacked("2")
        self.write(os.path.join(new, "files/share/large"), "x" * 2_000_000)
        full = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000)))
        self.assertNotEqual(self.run_in(new, self.prefix, preexec_fn=full).returncode, 0)
        self.assertEqual((self.found(), self.read("bin/bfcrun")), (before, "1"))

    def test_what_lies_in_the_way(self):
        """A folder is refused and nothing is changed; links are replaced, never followed."""
        victim = os.path.join(self.folder, "victim")
        self.write(victim, "untouched")
        for name in ("bin/bfcrun", "bin/bfcrun.new", "share/man/man1/bfcrun.1"):
            os.makedirs(os.path.dirname(os.path.join(self.prefix, name)), exist_ok=True)
            os.symlink(victim, os.path.join(self.prefix, name))
        self.install(self.unpacked("1"))
        with open(victim, encoding="utf-8") as file:
            self.assertEqual((file.read(), self.read("bin/bfcrun")), ("untouched", "1"))
        os.unlink(os.path.join(self.prefix, "bin/bfcrun"))
        os.makedirs(os.path.join(self.prefix, "bin/bfcrun/inside"))
        self.assertIn("bin/bfcrun is a folder", self.refusal(self.unpacked("2"), self.prefix))
        self.assertEqual(self.read("share/man/man1/bfcrun.1"), "1")

    def test_the_list_names_nothing_elsewhere(self):
        self.install(self.unpacked("1"))
        victim = os.path.join(self.folder, "victim")
        self.write(victim, "untouched")
        self.write(os.path.join(self.prefix, "lib/bfcpreload/installed"), f"../victim\nbin/../../victim\n{victim}\n")
        self.install(self.unpacked("2"))
        self.install(self.unpacked("2"), "--uninstall", self.prefix)
        self.assertTrue(os.path.exists(victim))

    def test_prefixes(self):
        folder = self.unpacked("1")
        os.makedirs(os.path.join(self.folder, "real/deep"))
        os.symlink("real", os.path.join(self.folder, "link"))
        for prefix, is_in in (("link/p", "real/p"), ("real/deep/../q", "real/q"), ("a&b", None), ("100%", None),
                              ("with blank", None), ("a:b", None), ("a$b", None), ("a'b", None)):
            given = os.path.join(self.folder, prefix)
            if not is_in:
                self.refusal(folder, given)
                continue
            self.install(folder, given)
            self.prefix = os.path.join(self.folder, is_in)
            self.assertNotIn("..", self.read(UNIT))
            self.assertTrue(os.path.samefile(self.read(UNIT).split("=")[1].split("/bin/bfcstat")[0], self.prefix))
            self.install(folder, "--uninstall", given)
            self.assertEqual(self.found(), [])

    def test_arguments(self):
        folder = self.unpacked("1")
        for arguments in (["relative"], [self.prefix, "--uninstall"], ["--help"], [self.prefix, self.prefix]):
            self.assertIn("usage", self.refusal(folder, *arguments))
        self.assertFalse(os.path.exists(self.prefix))

    def test_from_elsewhere(self):
        """CDPATH is a search path of the user's shell; the folder beside the script counts."""
        self.unpacked("1")
        other = self.unpacked("trap/1")
        done = subprocess.run(["1/install.sh", self.prefix], cwd=self.folder, capture_output=True, text=True,
                              env=dict(os.environ, CDPATH=os.path.dirname(other)))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertEqual(self.read("bin/bfcrun"), "1")

    def test_what_a_package_owns(self):
        """The files of the .deb or .rpm are not ours to replace."""
        programs = os.path.join(self.folder, "programs")
        self.write(os.path.join(programs, "dpkg-query"), f'#!/bin/sh\n[ "$2" = {self.prefix}/bin/bfcrun ]\n')
        os.chmod(os.path.join(programs, "dpkg-query"), 0o755)
        path = dict(os.environ, PATH=programs + ":" + os.environ["PATH"])
        folder = self.unpacked("1")
        link = os.path.join(self.folder, "link")
        os.symlink("prefix", link)
        for arguments in ([self.prefix], ["--uninstall", self.prefix], [link]):
            self.assertIn("from a package", self.refusal(folder, *arguments, env=path))

    def test_slurms_prolog_finds_its_library(self):
        prolog = os.path.join(self.prefix, "share/bfcpreload/slurm/task-prolog")
        library = os.path.join(self.prefix, "lib/bfcpreload/libbfcpreload.so")
        self.write(library, "")
        os.makedirs(os.path.dirname(prolog))
        shutil.copy(os.path.join(SOURCE, "packaging/slurm/task-prolog"), prolog)

        def say(**more):
            return subprocess.run([prolog], env={"PATH": os.environ["PATH"], **more}, capture_output=True,
                                  text=True).stdout

        self.assertEqual(say(), f"export LD_PRELOAD={library}\n")
        self.assertEqual(say(LD_PRELOAD="other.so"), f"export LD_PRELOAD={library}:other.so\n")
        self.assertEqual(say(LD_PRELOAD="other.so /elsewhere/libbfcpreload.so"), "")
        self.assertEqual(say(BFC_LIBRARY=BFCOPTS), f"export LD_PRELOAD={BFCOPTS}\n")
        self.assertEqual(say(BFC_LIBRARY="/none") + say(BFC_PRELOAD="0"), "")


if __name__ == "__main__":
    unittest.main(verbosity=1)
