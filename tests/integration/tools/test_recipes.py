#!/usr/bin/env python3
"""The blocks of shell in docs/recipes.md, run as they stand there: over the stand-in GPU, in a folder with programs
of the names that they use."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT, BUILD = os.environ["SOURCE_ROOT"], os.environ["BUILD_ROOT"]
PROGRAM = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(pointer), 1 << 20) == 0 and cuda.cuMemFree_v2(pointer) == 0
assert "libbfcpreload.so" in open("/proc/self/maps").read()
print("ran with the pool")
"""


def write(folder, name, text, mode=0o644):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


class Recipes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="bfc-recipes-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name in ("train.py", "array.py", "frame.py", "jupyter/__main__.py"):
            write(self.folder, name, PROGRAM)
        write(self.folder, "solver", f"#!{sys.executable}\n{PROGRAM}", 0o755)
        os.makedirs(os.path.join(self.folder, "bin"))
        os.symlink(os.path.join(ROOT, "scripts", "bfcrun"), os.path.join(self.folder, "bin", "bfcrun"))
        os.symlink(sys.executable, os.path.join(self.folder, "bin", "python"))

    def run_block(self, block):
        kept = {k: v for k, v in os.environ.items() if not re.match("BFC_|LD_PRELOAD$", k)}
        path = os.pathsep.join([os.path.join(self.folder, "bin"), os.environ["PATH"]])
        return subprocess.run(["bash", "-euc", block], cwd=self.folder, capture_output=True, text=True, timeout=60,
                              env={**kept, "PATH": path, "BFC_BUILD": BUILD, "LD_LIBRARY_PATH": os.environ["SIM_DIR"]})

    def test_blocks(self):
        with open(os.path.join(ROOT, "docs", "recipes.md"), encoding="utf-8") as page:
            blocks = re.findall(r"^```sh\n(.*?)^```", page.read(), re.MULTILINE | re.DOTALL)
        self.assertGreater(len(blocks), 5)
        for block in blocks:
            with self.subTest(block):
                result = self.run_block(block)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(result.stdout.count("ran with the pool"), block.count("bfcrun"), result)
                self.assertEqual([line for line in result.stderr.splitlines() if "BFC_" in line], [])


if __name__ == "__main__":
    unittest.main(verbosity=1)
