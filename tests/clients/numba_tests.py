"""Runs test modules of numba-cuda's own tests; prints a line for each test: its name, and
what became of it. usage: numba_tests.py MODULE..."""
import sys
import unittest


class Lines(unittest.TestResult):
    def tell(self, test, what):
        print(test.id(), what, flush=True)

    def addSuccess(self, test):
        self.tell(test, "passes")

    def addError(self, test, err):
        self.tell(test, f"error {err[0].__name__}")

    def addFailure(self, test, err):
        self.tell(test, f"fails {err[0].__name__}")

    def addSkip(self, test, reason):
        self.tell(test, "skipped")

    def addExpectedFailure(self, test, err):
        self.tell(test, "fails as expected")

    def addUnexpectedSuccess(self, test):
        self.tell(test, "passes unexpectedly")


def main():
    names = [f"numba.cuda.tests.{name}" for name in sys.argv[1:]]
    tests = unittest.defaultTestLoader.loadTestsFromNames(names)
    for name in names:
        if hasattr(sys.modules.get(name), "FUTURE_TIMEOUT"):
            sys.modules[name].FUTURE_TIMEOUT = None  # a busy machine starts a process slowly
    tests.run(Lines())


if __name__ == "__main__":
    main()
