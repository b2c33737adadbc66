#!/usr/bin/env python3
"""What bfcstat says of pages is what the driver was asked for, also where a call fails and plain regions
take the place of pages. test_figures.py LIBRARY HOLD REMADE BFCSTAT"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

LIBRARY, HOLD, REMADE, BFCSTAT = sys.argv[1:5]
MIB = 1 << 20
CALLS = ("AddressReserve", "AddressFree", "Create", "Release", "Map", "Unmap", "SetAccess")
TRIED = 4  # a page and addresses, made and given back, before the pool begins: counted by the driver alone


def look(fail="", program=HOLD, memory="1G", **settings):
    """The pool as bfcstat sees it, and how often the driver's calls were made until then."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as stats:
        environment = {**os.environ, "SIM_MEMORY": memory, "SIM_DEVICES": "1", "SIM_STATS": stats.name, "SIM_FAIL": fail,
                       "BFC_BACKING": "pages", "LD_PRELOAD": LIBRARY, **settings}
        with subprocess.Popen([program], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as job:
            assert "ready\n" in iter(job.stdout.readline, "")
            seen = subprocess.run([BFCSTAT, str(job.pid), "--json"], capture_output=True, text=True, check=True)
            job.communicate()
        calls = json.loads(stats.read().splitlines()[-1])["calls"]
    return json.loads(seen.stdout)["pools"][0], sum(calls.get("cuMem" + call, 0) for call in CALLS)


class Figures(unittest.TestCase):
    def test_pages_alone(self):
        pool, calls = look(BFC_PAGE="fit")
        self.assertEqual(pool["pages"]["calls"], calls - TRIED)
        self.assertEqual(pool["pages"]["backed"], pool["reserved"])
        self.assertGreater(pool["pages"]["moved"], 0)

    def test_large_pages_that_are_remade(self):
        """2 GiB at first in 64 pages; the small blocks have 4 MiB each at most, in one place."""
        pool, calls = look(program=REMADE, memory="16G", BFC_PAGE="fit")
        self.assertEqual(pool["pages"]["calls"], calls - TRIED)
        self.assertGreaterEqual(pool["pages"]["released"], 32 * MIB)
        self.assertEqual(pool["pages"]["released"] % (32 * MIB), 0)
        self.assertEqual(pool["pages"]["backed"], pool["pages"]["created"] - pool["pages"]["released"])
        self.assertEqual(pool["pages"]["moved"], 0)

    def test_one_page_for_each_step(self):
        pool, _ = look(program=REMADE, memory="16G", BFC_PAGE="step")
        self.assertEqual(pool["pages"]["released"], 0)
        self.assertLess(pool["pages"]["calls"], 20)

    def test_pages_and_plain_regions(self):
        pool, calls = look("cuMemMap@60+:801")
        self.assertEqual(pool["pages"]["calls"], calls - TRIED)
        self.assertEqual(pool["pages"]["backed"], pool["pages"]["created"] - pool["pages"]["released"])
        self.assertGreater(pool["pages"]["backed"], 0)
        self.assertLess(pool["pages"]["backed"], pool["reserved"])

    def test_plain_regions_alone(self):
        pool, _ = look("cuMemMap@1+:801")
        self.assertEqual(pool["pages"]["backed"], 0)
        self.assertGreater(pool["reserved"], 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
