#!/usr/bin/env python3
"""Another library that is preloaded too, before or after ours: a driver that the program loads late
is noticed all the same.

usage: test_preloads.py LIBRARY SECOND
"""
import ctypes.util
import os
import subprocess
import sys
import unittest

LIBRARY, SECOND = sys.argv[1:3]
PROGRAM = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
device, context, block = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
for result in (cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0),
               cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
               cuda.cuCtxSetCurrent(context),
               cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(1 << 20)),
               cuda.cuMemFree_v2(block)):
    assert result == 0, result
"""


class Preloads(unittest.TestCase):
    def pools(self, *libraries):
        environment = dict(os.environ, LD_PRELOAD=":".join(libraries), BFC_SUMMARY="1")
        run = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("1 allocation, 1 free;", run.stderr)

    def test_another_dlsym(self):
        self.pools(LIBRARY, SECOND)
        self.pools(SECOND, LIBRARY)

    def test_another_malloc(self):
        other = ctypes.util.find_library("jemalloc")
        if not other:
            self.skipTest("there is no jemalloc")
        self.pools(LIBRARY, other)
        self.pools(other, LIBRARY)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
