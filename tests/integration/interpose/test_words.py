#!/usr/bin/env python3
"""What a job says on standard error: out of memory explained once, a summary at exit, nothing with
BFC_LOG=off. test_words.py LIBRARY PROGRAM DRIVER"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

LIBRARY, PROGRAM, DRIVER = sys.argv[1:4]

PAIRS = """if True:
    import ctypes, sys
    calls, context, block = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p(), ctypes.c_uint64()
    assert calls.cuInit(0) == calls.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == calls.cuCtxSetCurrent(context) == 0
    for _ in range(int(sys.argv[2])):
        assert calls.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(4096)) == calls.cuMemFree_v2(block) == 0
"""


def run(*arguments, program=(PROGRAM,), **variables):
    """On a device of its own: jobs of other tests are not beside it."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, LD_PRELOAD=LIBRARY, SIM_MEMORY="1G", SIM_SHARE=f"{folder}/share", **variables)
        return subprocess.run([*program, *arguments], env=environment, capture_output=True, text=True, timeout=60)


class Words(unittest.TestCase):
    def test_out_of_memory_explains_itself_once(self):
        result = run()
        self.assertEqual((result.returncode, result.stdout), (0, "2\n2\n2\n"))
        lines = result.stderr.splitlines()
        self.assertEqual(len([l for l in lines if "out of memory" in l]), 1, result.stderr)
        for words in (
            r"^bfcpreload: out of memory: 192 MiB asked for on device 0 \(Simulated GPU\)$",
            r"^  this process .* reserved: .* in use, .* cached \(ready .*, pending .*, deferred .*\)$",
            r"^  largest free [0-9.]+ [KMG]?i?B(: what is cached would suffice in one piece, but fragmentation keeps it apart)?$",
            r"^  map +[#+~.]{64}  \(",
            r"^  refused by +the device: 1\.00 GiB in all, .* free by the driver$",
            r"^  try +BFC_GROWTH_SIZE=",
        ):
            self.assertRegex(result.stderr, re.compile(words, re.MULTILINE))

    def test_with_pages_pieces_are_no_cause(self):
        said = run(BFC_BACKING="pages", BFC_PAGE="fit").stderr
        self.assertRegex(said, r"\n  pages +128 MiB cached in whole ones, for any block; 0 B in such as have a byte ")
        self.assertRegex(said, r"\n  try +BFC_SPILL=192M: in host memory")
        for words in "BFC_GROWTH", "largest free", "fragmentation":
            self.assertNotIn(words, said)

    def test_names_the_rank(self):
        said = run(OMPI_COMM_WORLD_RANK="3", OMPI_COMM_WORLD_SIZE="8", BFC_SUMMARY="1").stderr
        self.assertEqual(len(re.findall(r"^  rank +3 of 8\b", said, re.MULTILINE)), 2, said)

    def test_names_the_limit(self):
        said = run(BFC_LIMIT="512M").stderr
        self.assertRegex(said, r"  refused by +BFC_LIMIT: it is 512 MiB, and this process has \d+ MiB of it reserved\n")
        self.assertNotIn("free by the driver", said)
        self.assertIn("  try          a higher BFC_LIMIT: with 528M this request would have fitted\n", said)
        self.assertRegex(said, r"this process .* reserved of at most 512 MiB \(BFC_LIMIT\): ")

    def test_a_log_that_the_program_opens(self):
        """For both streams it is a log; in place of standard error alone it could be any file."""
        with tempfile.TemporaryDirectory() as folder:
            for name, arguments, said in ("both", ["both"], 1), ("one", [], 0):
                log = os.path.join(folder, name)
                self.assertEqual(run(log, *arguments).stderr, "")
                with open(log, encoding="utf-8") as file:
                    self.assertEqual(file.read().count("out of memory"), said)

    def test_log_off_is_silent(self):
        result = run(BFC_LOG="off", BFC_SUMMARY="1")
        self.assertEqual((result.stdout, result.stderr), ("2\n2\n2\n", ""))

    def test_summary_counts_all_calls_for_pages(self):
        """Making a page, mapping it, access to it, and for all of them addresses."""
        text = run(BFC_SUMMARY="1", BFC_BACKING="pages", BFC_PAGE="fit").stderr
        self.assertGreater(int(re.search(r"driver calls (\d+) instead", text)[1]), 2 * 512)

    def test_not_quite_all_are_not_all(self):
        """As bfcstat has it: one miss in three thousand is not 100.0 %."""
        for pairs, rate in (("100", "99.0 %"), ("3000", ">99.9 %")):
            said = run(DRIVER, pairs, program=(sys.executable, "-c", PAIRS), BFC_SUMMARY="1").stderr
            self.assertIn(f"{pairs} allocations, {pairs} frees; hit rate {rate}\n", said)

    def check_summary(self, **variables):
        text = run(BFC_SUMMARY="1", **variables).stderr
        for words in (
            r"^bfcpreload: summary of process \d+ \(full\)$",
            r"^  device 0: \d+ allocations, \d+ frees; hit rate >?[0-9.]+ %$",
            r"^    driver calls \d+ instead of \d+; host waits \d+ instead of \d+$",
            r"^    most in use .* \(asked for .*\), most reserved ",
            r"^    3 out of memory, 0 saved by last resorts$",
            r"^  not pooled: \d+ allocations? forwarded",
        ):
            self.assertRegex(text, re.compile(words, re.MULTILINE))

    def test_summary(self):
        self.check_summary()

    def test_summary_without_a_segment(self):
        self.check_summary(BFC_STATS="0")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
