"""What the tests of gpu-check share: a folder of its own for each, and the results that were written there."""

import json
import os
import tempfile
import unittest

# What results say of a run.
RUN = {"begun": "2027-01-15 10:00 UTC", "bfcpreload": "0.1.0, sources 012345", "card": "0a1b2c3d", "cases": "all"}


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="bfc-gpu-check-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.out = os.path.join(self.folder, "out")

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def results(self):
        """And the page must be one that can be rendered."""
        with open(os.path.join(self.out, "results.json"), encoding="utf-8") as file:
            results = json.load(file)
        with open(os.path.join(self.out, "results.md"), encoding="utf-8") as file:
            page = file.read()
        for part, entries in results["parts"].items():
            table = page.split(f"## {part} (")[1].split("\n\n")[1].splitlines()
            self.assertEqual(table[:2], ["| | |", "|---|---|"])
            shown = [value for value in entries.values()
                     if value != "done" and not (part == "unknowns" and isinstance(value, dict))]
            self.assertEqual(len(table) - 2, len(shown))
            self.assertEqual({row.count("|") for row in table}, {3})
        for name in "failures", "surprises", "skipped":
            lines = page.split(f"## {name}\n\n")[1].split("\n\n")[0].splitlines()
            self.assertEqual(len(lines), len(results[name]) or 1)
        return results
