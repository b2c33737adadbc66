#!/usr/bin/env python3
"""The public interface: a C program with and without the library, and ctypes.
test_interface.py LIBRARY PROGRAM DRIVER"""

import ctypes
import os
import subprocess
import sys
import unittest

LIBRARY, PROGRAM, DRIVER = sys.argv[1:4]


def run(command, **variables):
    return subprocess.run(command, env=dict(os.environ, **variables), capture_output=True,
                          text=True, timeout=60)


class Block(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in
                "start size requested free_before free_after region_start region_size id".split()]
    _fields_ += [("device", ctypes.c_int32), ("state", ctypes.c_int32)]


def use_from_python():
    """Runs preloaded, in a process of its own."""
    library, driver = ctypes.CDLL(None), ctypes.CDLL(DRIVER)
    pointer, context = ctypes.c_uint64(), ctypes.c_void_p()
    assert driver.cuInit(0) == 0
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert driver.cuCtxSetCurrent(context) == 0
    assert driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(5000)) == 0
    block, stats = Block(), (ctypes.c_uint64 * 21)()
    info = library.bfc_block_info
    info.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t]
    assert info(pointer.value, ctypes.byref(block), ctypes.sizeof(block)) == 0
    assert (block.start, block.size, block.requested, block.state) == (pointer.value, 5120, 5000, 0)
    library.bfc_stats.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]
    assert library.bfc_stats(0, stats, ctypes.sizeof(stats)) == 0
    assert (stats[1], stats[2]) == (5120, 5000)
    library.bfc_trim.restype = library.bfc_snapshot.restype = ctypes.c_long
    assert library.bfc_snapshot(-1, None, ctypes.c_size_t(0), ctypes.c_size_t(0)) == 2
    assert library.bfc_trim(ctypes.c_size_t(1 << 40)) == 0
    print("all is well")


class Interface(unittest.TestCase):
    def test_program_without_the_library(self):
        result = run([PROGRAM])
        self.assertEqual((result.returncode, result.stdout), (0, "no bfcpreload here\n"))

    def test_program_with_the_library(self):
        result = run([PROGRAM], LD_PRELOAD=LIBRARY)
        self.assertEqual((result.returncode, result.stdout), (0, "all is well\n"), result.stderr)

    def test_ctypes(self):
        result = run([sys.executable, __file__, *sys.argv[1:4], "inside"], LD_PRELOAD=LIBRARY)
        self.assertEqual((result.returncode, result.stdout), (0, "all is well\n"), result.stderr)

    def test_header_is_c_and_cpp(self):
        root = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
        header = os.path.join(root, "interpose", "api", "bfcpreload.h")
        for compiler in (["cc", "-std=c99", "-xc"], ["c++", "-xc++"]):
            try:
                result = run([*compiler, "-fsyntax-only", "-Wall", "-Wextra", "-Werror", header])
            except FileNotFoundError:
                continue
            self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    if sys.argv[4:] == ["inside"]:
        use_from_python()
    else:
        unittest.main(argv=sys.argv[:1], verbosity=1)
