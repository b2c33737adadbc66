"""Notebooks that share a device by sleep, over an allocator like PyTorch's (notebook.c): what they compute is
what it is alone.
usage: test_notebook.py (LIBCUDA, PRELOAD, BFCSTAT and NOTEBOOK in the environment)"""

import os
import tempfile
import unittest

from jobs import Job, main

CELLS = (40, 25, 60, 10)
PARAMETERS = 75  # MiB, of a device of 160; with the allocator's segments up to 140


class Notebooks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.share = {"SIM_SHARE": f"{folder.name}/share", "SIM_MEMORY": "160M"}

    def notebook(self, **settings):
        return Job(self, {**self.share, **settings}, program=[os.environ["NOTEBOOK"], str(PARAMETERS)])

    def alone(self):
        notebook = self.notebook(BFC_DISABLE="1")
        results = [notebook.do(str(steps)) for steps in CELLS]
        notebook.end()
        return results

    def test_between_cells(self):
        """Each falls asleep between its cells, so that the other has the device."""
        results = self.alone()
        first = self.notebook(BFC_SLEEP_IDLE="0.2")
        first.await_state("asleep")
        second = self.notebook(BFC_SLEEP_IDLE="0.2")
        second.await_state("asleep")
        for steps, result in zip(CELLS, results):
            for notebook in first, second:
                notebook.begin(str(steps))
                self.assertEqual(notebook.answer(), result)
                notebook.await_state("asleep")
                self.assertGreaterEqual(notebook.sleep()["asleep"], PARAMETERS << 20)

    def test_waits_until_the_other_is_idle(self):
        """With BFC_WAIT a cell that begins before the other notebook has been idle for long enough waits for that."""
        results = self.alone()
        both = [self.notebook(BFC_SLEEP_IDLE="0.5", BFC_WAIT="100") for _ in range(2)]
        for steps, result in zip(CELLS, results):
            for notebook in both:
                self.assertEqual(notebook.do(str(steps)), result)

    def test_while_the_other_computes(self):
        """Whoever needs the device has the other sleep, by turns."""
        results = self.alone()
        both = [self.notebook(BFC_SLEEP_IDLE="1000", BFC_SLEEP_QUANTUM="0.2") for _ in range(2)]
        for steps, result in zip(CELLS, results):
            for notebook in both:
                notebook.begin(str(steps))
            self.assertEqual([notebook.answer() for notebook in both], [result] * 2)
        self.assertGreaterEqual(sum(notebook.sleep()["falls"] for notebook in both), 2)

    def test_asked_by_hand(self):
        results = self.alone()
        notebook = self.notebook(BFC_BACKING="pages", BFC_GATE="on")
        for steps, result in zip(CELLS, results):
            notebook.fall_asleep()
            self.assertEqual(notebook.do(str(steps)), result)


if __name__ == "__main__":
    main()
