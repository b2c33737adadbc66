#!/usr/bin/env python3
"""Others' programs over the stand-in GPU, natively and preloaded in each mode of free: what they print
is compared line by line, and natively it must say that something works.

Their packages are installed by pip, pinned with hashes, into FOLDER; where they cannot be had the test
is skipped (status 77).

usage: compare.py CLIENT LIBRARY BFCSTAT SIM FOLDER INCLUDE
CLIENT: a key of CLIENTS below; INCLUDE: the folder of CUDA's headers"""

import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile

from installed import install, skip

HERE = os.path.dirname(os.path.abspath(__file__))
MODES = ("", "sync", "lazy", "ordered")  # "": natively
# Of Numba's modules those that need no compiler and no kernel.
NUMBA = ("array_attr context_stack cuda_auto_context cuda_memory cuda_ndarray deallocations "
         "emm_plugins events host_alloc managed_alloc pinned profiler reset_device runtime "
         "select_device streams").split()
NUMBA_MODULES = [*(f"cudadrv.test_{name}" for name in NUMBA), "cudapy.test_ipc"]

BINDINGS = "lib/*/site-packages/cuda/tests"
CUPY = [f"cupy_tests/cuda_tests/{name}" for name in (
    "test_memory.py", "test_memory_hook.py", "memory_hooks_tests", "test_pinned_memory.py",
    "test_stream.py", "test_device.py", "test_driver.py", "test_runtime.py")]
# Frees in stream order count when the stream reaches them: these pass natively when it is quick.
CUPY += ["-k", "not (AsyncPool and bytes)"]

# Of each client: its requirements (None: a program of the system), its command, the environments it runs in, a word of the lines that
# show natively that it works, and how many of these there must be at least.
CLIENTS = {
    "numba": ("short", ["numba_tests.py", *NUMBA_MODULES], [{}], "passes", 100),
    "tinygrad": ("short", ["tiny.py"], [{"DEV": "CUDA:PTX", "CACHELEVEL": "0"}], "1 ()", 1),
    "cuda-core": ("short", ["core_steps.py"], [{}], "right", 9),
    "ffmpeg": (None, ["ffmpeg_steps.py"], [{}], "right", 36),
    "cuda-python": ("bindings", ["pytest_lines.py", BINDINGS, "."], [{}], "passes", 60),
    "torch": ("long", ["torch_steps.py"], [
        {}, {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
        {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
        {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}, {"STEPS_OWN_ALLOCATOR": "1"}], "9 ", 1),
    # Without its cache PyTorch sends no tensors to other processes.
    "torch-between": ("long", ["torch_between.py"], [{}], "right", 12),
    "torch-sleep": ("long", ["torch_sleep.py"], [{"BFC_SLEEP_IDLE": "0.3"}], "right", 36),
    "frameworks": ("long", ["frameworks.py"], [{}], "right", 18),
    "cupy": ("long", ["pytest_lines.py", "sources/cupy-*/tests", *CUPY], [{"SIM_DEVICES": "2"}],
             "passes", 150),
    "cupy-steps": ("long", ["cupy_steps.py"], [{}, {"STEPS_POOL": "off"}, {"STEPS_POOL": "async"}],
                   "right", 40),
    "nixl": ("long", ["nixl_steps.py"], [{}], "right", 4),
    "pycuda": ("pycuda", ["pytest_lines.py", "sources/pycuda-*/test", "test_driver.py"], [{}], "passes", 9),
    "jax": ("jax", ["jax_steps.py"], [
        {"XLA_PYTHON_CLIENT_ALLOCATOR": allocator, "JAX_PLATFORMS": "cuda",
         "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1"}  # or it asks cuPTI, which refuses the stand-in
        for allocator in ("default", "platform", "bfc", "cuda_async", "vmm")], "right 3", 50),
}


def run(python, client, setting, mode, library, bfcstat, sim):
    """What a client prints, and its exit status."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("BFC_", "SIM_", "PYTORCH_", "NUMBA_", "LD_", "PYTHON", "JAX_", "XLA_"))}
    env.update({"LD_LIBRARY_PATH": sim, "SIM_KERNELS": "skip", "SIM_MEMORY": "2G", "PYTHONHASHSEED": "1",
                "STEPS_BFCSTAT": bfcstat, **setting})
    if mode:
        env.update(LD_PRELOAD=library, BFC_FREE=mode, BFC_LOG="off")
    script, *arguments = CLIENTS[client][1]
    with tempfile.TemporaryDirectory() as folder:
        env["XDG_CACHE_HOME"] = env["HOME"] = folder
        done = subprocess.run([python, os.path.join(HERE, script), *arguments], env=env, cwd=folder,
                              capture_output=True, text=True, errors="replace")
    if done.returncode:
        print(f"{client} {setting} {mode or 'native'}: status {done.returncode}\n{done.stderr[-3000:]}")
    return done.stdout.splitlines(), done.returncode


def differences(native, other):
    """Lines that only one of them has."""
    first, second = set(native), set(other)
    return [f"natively: {line}" for line in native if line not in second] + \
        [f"preloaded: {line}" for line in other if line not in first]


def compare(client, setting, results):
    """Whether all modes do as natively."""
    native, status = results[0]
    works = [line for line in native if CLIENTS[client][3] in line]
    print(f"{client} {setting}: {len(native)} lines natively, {len(works)} of them show that it works")
    good = len(works) >= CLIENTS[client][4] and status == 0
    for mode, (lines, other) in zip(MODES[1:], results[1:]):
        unlike = differences(native, lines)
        print(f"  {mode}: {len(lines)} lines, {len(unlike)} differ, status {other}", *unlike[:20],
              sep="\n    ")
        good = good and not unlike and other == status
    return good


def main():
    client = sys.argv[1]
    library, bfcstat, sim, folder, include = map(os.path.abspath, sys.argv[2:])
    form, _, settings, _, _ = CLIENTS[client]
    if not form and not shutil.which(client):
        skip(f"{client} is not installed")
    python = install(form, folder, sim, include) if form else sys.executable
    good = True
    with concurrent.futures.ThreadPoolExecutor(2) as workers:
        for setting in settings:
            results = list(workers.map(
                lambda mode: run(python, client, setting, mode, library, bfcstat, sim), MODES))
            good = compare(client, setting, results) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
