#!/usr/bin/env python3
"""The Python module, beside a job and in a preloaded process.

usage: test_module.py MODULE-FOLDER LIBRARY HOLDER, with BFCSTAT set; with the argument `inside`
alone it is that preloaded process.
"""
import ctypes
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import typing
import unittest
import unittest.mock

MIB = 1 << 20
sys.dont_write_bytecode = True


def inside():
    """What the module says of its own process, as JSON."""
    import bfcpreload
    cuda = ctypes.CDLL("libcuda.so.1")
    context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
    cuda.cuInit(0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxSetCurrent(context)
    with bfcpreload.tag("inside"), bfcpreload.tag("module"):
        cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(32 * MIB))
    held = bfcpreload.stats()
    blocks = bfcpreload.snapshot()
    who = bfcpreload.who()
    html = bfcpreload.stats()._repr_html_() + who._repr_html_()
    cuda.cuMemFree_v2(pointer)
    trimmed = bfcpreload.trim()
    print(json.dumps({
        "loaded": bfcpreload.is_loaded(), "in_use": held.in_use, "allocations": held.allocations,
        "hit_rate": held.hit_rate, "trimmed": trimmed, "left": bfcpreload.stats().reserved,
        "block": [b.requested for b in blocks if b.state == "in use"],
        "where": [str(f) for f in who.sites[0].frames], "who": who.bytes, "tags": [(t.tag, t.bytes) for t in who.tags], "html": html}))


class Beside(unittest.TestCase):
    """A job that is asked from outside."""

    def setUp(self):
        env = dict(os.environ, LD_PRELOAD=LIBRARY, SIM_MEMORY="4G", BFC_STACKS="all")
        self.job = subprocess.Popen([HOLDER, "plain"], env=env, stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, text=True)
        self.assertEqual(self.job.stdout.readline(), "ready\n")

    def tearDown(self):
        self.job.communicate()

    def test_figures(self):
        stats = bfcpreload.stats(self.job.pid)
        self.assertEqual(stats.in_use, 320 * MIB)
        self.assertEqual(stats.allocations, 101028)
        self.assertEqual(bfcpreload.stats(self.job.pid, device=7).in_use, 0)
        self.assertIn("320 MiB", stats._repr_html_())

    def test_who(self):
        who = bfcpreload.who(self.job.pid)
        self.assertEqual((who.pid, who.bytes, who.stacks), (self.job.pid, 320 * MIB, "all"))
        self.assertEqual([f.function for f in who.sites[0].frames if not f.inlined][0], "site_large")
        self.assertRegex(who.sites[0].place, r"^(allocate .*, called by )?site_large\b")
        self.assertEqual(who.sites[0].bytes, 256 * MIB)
        self.assertIn("site_large", who._repr_html_())
        self.assertRegex(repr(who), r"^Process \d+: 320 MiB in use.*\n *in use +± +blocks  library\n")
        self.assertRegex(repr(who), r"\n *256 MiB +0 B +4  .*\bsite_large.*: .*\bplain\b.* ← main\b")
        change = bfcpreload.who(self.job.pid, seconds=0.05)
        self.assertGreater(change.seconds, 0)
        self.assertEqual(change.bytes, 0)

    def test_snapshot(self):
        blocks = bfcpreload.snapshot(self.job.pid)
        self.assertEqual(sum(block.requested for block in blocks), 320 * MIB)
        self.assertEqual(sum(block.size for block in blocks), bfcpreload.stats(self.job.pid).reserved)
        large = [block for block in blocks if block.requested == 64 * MIB]
        innermost = {(block.state, next(f.function for f in block.frames if f.function != "allocate")) for block in large}
        self.assertEqual(innermost, {("in use", "site_large")})
        for before, after in zip(blocks, blocks[1:]):
            if before.region_start == after.region_start and before.state == "free":
                self.assertGreaterEqual(after.free_before, before.size)
        self.assertEqual(bfcpreload.snapshot(self.job.pid, device=7), [])
        with tempfile.TemporaryDirectory() as folder:
            bfcpreload.dump_snapshot(os.path.join(folder, "x.json"), self.job.pid, seconds=0.05)
            with self.assertRaisesRegex(bfcpreload.Error, "snapshot: -o takes"):
                bfcpreload.dump_snapshot(os.path.join(folder, "x.svg"), self.job.pid)

    def test_trim(self):
        reserved = bfcpreload.stats(self.job.pid).reserved
        went = bfcpreload.trim(self.job.pid)
        self.assertEqual(bfcpreload.stats(self.job.pid).reserved, reserved - went)
        with self.assertRaises(ValueError):
            bfcpreload.trim(self.job.pid, size=0)

    def test_record(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "job")
            for name in ("new", "over an older one"):
                with self.subTest(name), bfcpreload.record(path, self.job.pid, interval=0.01):
                    pass
                with open(path, encoding="utf-8") as file:
                    kinds = [json.loads(line)["type"] for line in file]
                self.assertEqual((kinds[0], kinds[-1]), ("start", "end"))
                self.assertIn("sample", kinds)

    def test_what_cannot_be_recorded_is_told_at_once(self):
        body = []
        with self.assertRaisesRegex(bfcpreload.Error, "No such file"), \
                bfcpreload.record("/nowhere/at/all", self.job.pid):
            body.append("ran")
        self.assertEqual(body, [])

    def test_errors(self):
        self.assertFalse(bfcpreload.is_loaded())
        for call in (bfcpreload.stats, bfcpreload.snapshot, bfcpreload.trim, bfcpreload.who):
            with self.assertRaisesRegex(bfcpreload.Error, "without libbfcpreload"):
                call()
        for call in (bfcpreload.stats, bfcpreload.snapshot, bfcpreload.trim, bfcpreload.who):
            for wrong in (-1, 0, "train", 2.5):
                with self.assertRaisesRegex(bfcpreload.Error, f"^{wrong!r} is no process id$"):
                    call(wrong)
        with self.assertRaisesRegex(bfcpreload.Error, "no process|runs without"):
            bfcpreload.stats(2 ** 22 + 1)
        with unittest.mock.patch.dict(os.environ, BFCSTAT="/nowhere"), self.assertRaisesRegex(bfcpreload.Error, "cannot be run"):
            bfcpreload.stats(1)
        with self.assertRaisesRegex(bfcpreload.Error, "was not installed"):
            bfcpreload.tool("bfcnothing")

    def test_type_hints(self):
        for name in bfcpreload.__all__:
            thing = getattr(bfcpreload, name)
            if callable(thing) and not isinstance(thing, type):
                self.assertIn("return", typing.get_type_hints(thing), name)


USERS_PROGRAM = """
import bfcpreload

def main(pid: int) -> None:
    rate = bfcpreload.stats(pid).hit_rate
    if rate is not None:
        print(rate + 1)
    for block in bfcpreload.snapshot(pid):
        size: int = block.requested
        print(size, ", ".join(frame.function or "?" for frame in block.frames))
    who = bfcpreload.who(pid, seconds=1)
    print([site.frames[0].line for site in who.sites], who.bytes_error)
    with bfcpreload.record("job.jsonl", pid), bfcpreload.tag("main"):
        bfcpreload.dump_snapshot("job.pickle", pid)
    went: int = bfcpreload.trim(pid)
    print(went, bfcpreload.stats()._repr_html_().upper(), who._repr_html_().upper())
"""


@unittest.skipUnless(importlib.util.find_spec("mypy"), "needs mypy")
class Types(unittest.TestCase):
    def check(self, program):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(program)
            return subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", folder, path],
                                  env=dict(os.environ, MYPYPATH=MODULE), stdout=subprocess.PIPE,
                                  text=True, check=False).stdout

    def test_users_program(self):
        self.assertIn("Success", self.check(USERS_PROGRAM))
        self.assertIn("program.py:5: error", self.check(USERS_PROGRAM.replace("hit_rate", "hit_rats")))


class Inside(unittest.TestCase):
    def test_own_process(self):
        env = dict(os.environ, LD_PRELOAD=LIBRARY, SIM_MEMORY="1G", BFC_STACKS="all",
                   PYTHONPATH=MODULE)
        run = subprocess.run([sys.executable, os.path.abspath(__file__), "inside"], env=env,
                             stdout=subprocess.PIPE, text=True, check=True)
        said = json.loads(run.stdout)
        self.assertTrue(said["loaded"])
        self.assertEqual((said["in_use"], said["allocations"], said["who"]),
                         (32 * MIB, 1, 32 * MIB))
        self.assertEqual(said["block"], [32 * MIB])
        self.assertEqual(said["tags"], [["inside/module", 32 * MIB]])
        self.assertEqual(said["hit_rate"], 0)
        self.assertEqual((said["trimmed"], said["left"]), (32 * MIB, 0))
        self.assertIn("32 MiB", said["html"])
        if (3, 11) <= sys.version_info < (3, 15):
            self.assertTrue([f for f in said["where"] if f.startswith("inside (test_module.py:")],
                            said["where"])


if __name__ == "__main__":
    if sys.argv[1] == "inside":
        inside()
    else:
        MODULE, LIBRARY, HOLDER = sys.argv[1:4]
        sys.path.insert(0, MODULE)
        import bfcpreload
        unittest.main(argv=sys.argv[:1], verbosity=2)
