"""Runs modules of others' tests by pytest; prints a line for each test: its name, and what became
of it. usage: pytest_lines.py FOLDER ARGUMENT...   FOLDER is relative to this environment's, with *
for parts of names."""
import glob
import os
import sys

import pytest


class Lines:
    """What pytest tells, a line each."""

    def pytest_collectreport(self, report):
        if report.failed:
            print(report.nodeid, "cannot be read:", str(report.longrepr).splitlines()[-1], flush=True)

    def pytest_runtest_makereport(self, item, call):
        """The kinds of errors, which reports do not hold."""
        if call.excinfo is None:
            if call.when == "call":
                print(item.nodeid, "passes", flush=True)
        elif call.excinfo.errisinstance(pytest.skip.Exception):
            print(item.nodeid, "skipped", flush=True)
        else:
            print(item.nodeid, call.when, call.excinfo.typename, flush=True)


def main():
    os.chdir(glob.glob(os.path.join(sys.prefix, sys.argv[1]))[0])
    sys.path.insert(0, os.getcwd())
    pytest.main(["-p", "no:cacheprovider", "-p", "no:terminal", "-c", os.devnull, "--rootdir", ".",
                 "--continue-on-collection-errors",
                 *sys.argv[2:]], plugins=[Lines()])


if __name__ == "__main__":
    main()
