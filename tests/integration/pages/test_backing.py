#!/usr/bin/env python3
"""Where a device or driver has no pages, BFC_BACKING=pages and auto act as malloc: the program's output
is the same, memory is pooled all the same, and one line at BFC_LOG=info says why.
What a program does may end pages in auto, in the same way.
test_backing.py LIBRARY PROGRAM LIBCUDA AUTOMATIC"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

LIBRARY, PROGRAM, LIBCUDA, AUTOMATIC = sys.argv[1:5]
OLD_CALLS = ("cuMemAddressReserve", "cuMemImportFromShareableHandle")


def run(folder=os.path.dirname(LIBCUDA), library=None, program=(PROGRAM,), **variables):
    """Standard output, the lines about the backing, and how often each call was made."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as stats:
        environment = {**os.environ, "SIM_MEMORY": "1G", "SIM_DEVICES": "1", "LD_LIBRARY_PATH": folder,
                       "SIM_STATS": stats.name, "BFC_LOG": "info", **variables}
        environment.pop("LD_PRELOAD", None)
        if library:
            environment["LD_PRELOAD"] = library
        done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=60, check=True)
        calls = json.loads(stats.read().splitlines()[-1])["calls"]
    return done.stdout, [line for line in done.stderr.splitlines() if "BFC_BACKING" in line], calls


def old_driver(folder, lacking):
    """The stand-in without one entry point: the name is another one, of the same length."""
    with open(LIBCUDA, "rb") as whole:
        code = whole.read()
    name = b"\0" + lacking.encode() + b"\0"
    assert name in code, lacking
    with open(os.path.join(folder, "libcuda.so.1"), "wb") as made:
        made.write(code.replace(name, b"\0x" + name[2:]))


class Backing(unittest.TestCase):
    def check(self, why, folder=os.path.dirname(LIBCUDA), backings=("pages", "auto"), **variables):
        native = run(folder, **variables)
        for backing in backings:
            with self.subTest(backing=backing, why=why):
                out, said, calls = run(folder, LIBRARY, BFC_BACKING=backing, **variables)
                self.assertEqual(said, [f"bfcpreload: device 0: BFC_BACKING={backing} acts as malloc: {why}"])
                self.assertEqual(out, native[0])
                self.assertLess(calls["cuMemAlloc_v2"], native[2]["cuMemAlloc_v2"] / 10)
                self.assertEqual(calls.get("cuMemMap", 0), 0)

    def test_with_pages_nothing_is_said(self):
        for backing in "pages", "auto":
            _, said, calls = run(library=LIBRARY, BFC_BACKING=backing)
            self.assertEqual(said, [])
            self.assertGreater(calls["cuMemMap"], 0)

    def test_no_virtual_memory_management(self):
        self.check("the device does not support it", SIM_VIRTUAL="0")

    def test_old_drivers(self):
        whys = "the driver has no calls for it", "its memory could not be shared with other processes"
        for lacking, why in zip(OLD_CALLS, whys):
            with tempfile.TemporaryDirectory() as folder:
                old_driver(folder, lacking)
                self.check(why, folder)

    def test_parts_of_devices_whose_driver_refuses_what_the_attribute_promises(self):
        """MIG and vGPU, say."""
        for call, why in (("cuMemCreate", "the driver refused to make a page"),
                          ("cuMemGetAllocationGranularity", "the driver names no size for pages"),
                          ("cuMemAddressReserve", "the driver refused addresses")):
            self.check(why, SIM_FAIL=call + "@1+:801")

    def test_auto_with_several_devices(self):
        self.check("there are several devices", backings=("auto",), SIM_DEVICES="2", SIM_PEERS="0")
        self.check("there are several devices", backings=("auto",), SIM_DEVICES="2")

    def test_auto_where_a_page_takes_long(self):
        out, said, calls = run(library=LIBRARY, BFC_BACKING="auto", SIM_LATENCY="create:5000")
        self.assertEqual(said, ["bfcpreload: device 0: BFC_BACKING=auto acts as malloc: the driver takes long to make a page"])
        self.assertEqual((out, calls.get("cuMemMap", 0)), (run()[0], 0))
        self.assertGreater(run(library=LIBRARY, BFC_BACKING="pages", SIM_LATENCY="create:5000")[2]["cuMemMap"], 0)

    def test_auto_ends_pages_for_what_the_program_does(self):
        captures, shows = "the program captures streams", "the program exports or registers memory"
        for what, why in (("nothing", None), ("capture", captures), ("register", shows), ("export", shows),
                          ("dma-buf", shows)):
            for backing in "auto", "pages":
                with self.subTest(what=what, backing=backing):
                    ends = backing == "auto" and why
                    out, said, _ = run(library=LIBRARY, program=(AUTOMATIC, what), BFC_BACKING=backing)
                    self.assertEqual(said, [f"bfcpreload: device 0: BFC_BACKING=auto takes regions from now on: {why}"]
                                     if ends else [])
                    self.assertEqual(out, f"pages were mapped: {'no' if ends else 'yes'}\nall is as written: yes\n")

    def test_a_driver_that_maps_nothing_leaves_nothing_behind(self):
        native = run()
        for call in "cuMemMap", "cuMemSetAccess":
            out, _, calls = run(library=LIBRARY, BFC_BACKING="pages", SIM_FAIL=call + "@1+:801")
            self.assertEqual(out, native[0])
            self.assertEqual(calls["cuMemRelease"], calls["cuMemCreate"])
            if call == "cuMemSetAccess":  # an unmapping may be of several pages side by side
                self.assertTrue(0 < calls["cuMemUnmap"] <= calls["cuMemMap"], calls)
            else:
                self.assertEqual(calls.get("cuMemUnmap", 0), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
