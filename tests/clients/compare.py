#!/usr/bin/env python3
"""Others' programs over the stand-in GPU, natively and preloaded in each mode of free: what they print
is compared line by line, and natively it must say that something works.

Their packages are installed by pip, pinned with hashes, into FOLDER; where they cannot be had the test
is skipped (status 77).

usage: compare.py CLIENT LIBRARY SIM FOLDER      CLIENT: numba, tinygrad, torch, jax"""

import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MODES = ("", "sync", "lazy", "ordered")  # "": natively
# Of Numba's modules those that need no compiler and no kernel.
NUMBA = ("array_attr context_stack cuda_auto_context cuda_memory cuda_ndarray deallocations "
         "emm_plugins events host_alloc managed_alloc pinned profiler reset_device runtime "
         "select_device streams").split()
NUMBA_MODULES = [*(f"cudadrv.test_{name}" for name in NUMBA), "cudapy.test_ipc"]

# Of each client: its requirements, its command, the environments it runs in, and a line that
# shows natively that it works.
CLIENTS = {
    "numba": ("short", ["numba_tests.py", *NUMBA_MODULES], [{}], "passes"),
    "tinygrad": ("short", ["tiny.py"], [{"DEV": "CUDA:PTX", "CACHELEVEL": "0"}], "1 ()"),
    "torch": ("long", ["torch_steps.py"], [
        {}, {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
        {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
        {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}], "9 "),
    "jax": ("jax", ["jax_steps.py"], [
        {"XLA_PYTHON_CLIENT_ALLOCATOR": allocator, "JAX_PLATFORMS": "cuda",
         "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1"}  # or it asks cuPTI, which refuses the stand-in
        for allocator in ("default", "platform", "bfc", "cuda_async", "vmm")], "right 3"),
}


def skip(why):
    print(why)
    sys.exit(77)


def install(form, folder, sim):
    """A virtual environment with the packages of a form, complete or not at all; its Python."""
    home = os.path.join(folder, form)
    python = os.path.join(home, "bin", "python")
    done = os.path.join(home, "done")
    wanted = os.path.join(HERE, f"requirements-{form}.txt")
    with open(wanted, "rb") as file:
        pinned = file.read()
    if os.path.exists(done):
        with open(done, "rb") as file:
            if file.read() == pinned:
                return python
    shutil.rmtree(home, ignore_errors=True)
    steps = [[sys.executable, "-m", "venv", "--without-pip", home],
             [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile",
              "--no-deps", "--only-binary", ":all:", "--require-hashes", "-r", wanted]]
    for step in steps:
        tried = subprocess.run(step, capture_output=True, text=True)
        if tried.returncode:
            said = tried.stderr.strip().splitlines() or ["no reason given"]
            skip(f"the packages of requirements-{form}.txt cannot be installed: {said[-1]}")
    replace_runtimes(home, sim)
    with open(done, "wb") as file:
        file.write(pinned)
    return python


def replace_runtimes(home, sim):
    """Packages bring NVIDIA's runtime, which refuses the stand-in's driver, and find it beside
    themselves: the stand-in's takes its place."""
    for folder, _, files in os.walk(home):
        if "libcudart.so.13" in files:
            runtime = os.path.join(folder, "libcudart.so.13")
            os.remove(runtime)
            os.symlink(os.path.join(sim, "libcudart.so.13"), runtime)


def run(python, client, setting, mode, library, sim):
    """What a client prints, and its exit status."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("BFC_", "SIM_", "PYTORCH_", "NUMBA_", "LD_", "PYTHON", "JAX_", "XLA_"))}
    env.update(setting, LD_LIBRARY_PATH=sim, SIM_KERNELS="skip", SIM_MEMORY="2G", PYTHONHASHSEED="1")
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
    good = bool(works) and status == 0
    for mode, (lines, other) in zip(MODES[1:], results[1:]):
        unlike = differences(native, lines)
        print(f"  {mode}: {len(lines)} lines, {len(unlike)} differ, status {other}", *unlike[:20],
              sep="\n    ")
        good = good and not unlike and other == status
    return good


def main():
    client = sys.argv[1]
    library, sim, folder = map(os.path.abspath, sys.argv[2:])
    form, _, settings, _ = CLIENTS[client]
    python = install(form, folder, sim)
    good = True
    with concurrent.futures.ThreadPoolExecutor(2) as workers:
        for setting in settings:
            results = list(workers.map(
                lambda mode: run(python, client, setting, mode, library, sim), MODES))
            good = compare(client, setting, results) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
