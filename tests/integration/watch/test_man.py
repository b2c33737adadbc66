#!/usr/bin/env python3
"""The manual pages: mandoc finds no fault, and each variable, command and option is in its page.
test_man.py BFCOPTS BFCSTAT PAGE..."""

import os
import re
import shutil
import subprocess
import sys
import unittest

BFCOPTS, BFCSTAT, *PAGES = sys.argv[1:]


def read(name):
    (path,) = [page for page in PAGES if os.path.basename(page) == name]
    with open(path, encoding="utf-8") as file:
        return file.read().replace("\\-", "-")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True).stdout


class Man(unittest.TestCase):
    def test_every_variable_is_there_and_no_other(self):
        known = set(re.findall(r"`(BFC_[A-Z_]+)`", output(BFCOPTS, "markdown")))
        self.assertEqual(set(re.findall(r"^\.B (BFC_[A-Z_]+)$", read("libbfcpreload.7"), re.M)), known)

    def test_every_option_of_bfcstat_is_there(self):
        page = read("bfcstat.1")
        for option in set(re.findall(r"--[a-z]+", output(BFCSTAT, "--help"))):
            self.assertIn(option, page)

    @unittest.skipUnless(shutil.which("mandoc"), "mandoc is not installed")
    def test_mandoc_finds_no_fault(self):
        for page in PAGES:
            said = output("mandoc", "-T", "lint", "-W", "error", page)
            self.assertEqual(said, "")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
