#!/usr/bin/env python3
"""The wheel: built, installed by pip into an environment of its own, and used over the stand-in GPU."""

import glob
import os
import subprocess
import sys
import tempfile

ROOT, SIM = os.environ["SOURCE_ROOT"], os.environ["SIM_DIR"]
PROGRAM = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
for _ in range(1000):
    assert cuda.cuMemAlloc_v2(ctypes.byref(pointer), 1 << 20) == 0 and cuda.cuMemFree_v2(pointer) == 0
"""
MODULE = PROGRAM + """
import os
import bfcpreload
stats = bfcpreload.stats()
assert (stats.allocations, stats.in_use) == (1000, 0), stats
assert bfcpreload.stats(os.getpid()).allocations == 1000
assert bfcpreload.library() in open("/proc/self/maps").read()
"""


def run(*command, **changes):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("BFC_", "PYTHON", "MESON"))} | changes
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def install(wheel, folder):
    """Into an environment of venv's, with its Python; or where there is no venv, into a plain folder."""
    python = os.path.join(folder, "bin", "python3")
    pip = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-warn-script-location"]
    if subprocess.run([sys.executable, "-m", "venv", folder], capture_output=True).returncode == 0:
        run(python, *pip, wheel)
        assert run(python, "-m", "bfcpreload", "library").strip().startswith(folder)
        assert run(python, "-m", "bfcpreload", "run", "--version").startswith("bfcrun ")
        run(python, "-m", "bfcpreload", "run", python, "-c", MODULE, LD_LIBRARY_PATH=SIM)
    else:
        run(sys.executable, *pip, "--prefix", folder, wheel)
    (bfcrun,) = glob.glob(folder + "/**/bin/bfcrun", recursive=True)
    return bfcrun


def check(bfcrun):
    assert run(bfcrun, "--version").split() == ["bfcrun", os.environ["VERSION"]]
    said = run(bfcrun, "--summary=1", "--", sys.executable, "-c", PROGRAM, LD_LIBRARY_PATH=SIM)
    assert "1000 allocations" in said.replace(",", ""), said
    for tool in ("bfcstat", "bfcrun"):
        assert run(os.path.join(os.path.dirname(bfcrun), tool), "--help").startswith("usage: " + tool)


def main():
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode:
        print("no pip here")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="bfc-package-") as folder:
        wheel = run(os.path.join(ROOT, "scripts", "package"), "--only", "wheel", folder, JOBS="2").strip()
        check(install(wheel, os.path.join(folder, "environment")))


if __name__ == "__main__":
    main()
