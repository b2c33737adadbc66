#!/usr/bin/env python3
"""What PyTorch, JAX and CUPTI answer over NVIDIA's own drivers, which find no device here
(scripts/fetch-drivers), natively and preloaded in each mode: the same. With NVIDIA's runtime
(scripts/fetch-runtimes). Exit status 77 without them, or with a device.

usage: no_device.py LIBRARY DRIVERS RUNTIMES SIM FOLDER INCLUDE"""

import ctypes
import glob
import os
import subprocess
import sys
import tempfile

from installed import install, skip

TORCH = """
import torch
print(torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.is_initialized())
for ask in (torch.cuda.current_device, lambda: torch.ones(3, device="cuda"), torch.cuda.mem_get_info,
            lambda: torch.empty(8).pin_memory(), torch.cuda.memory_allocated):
    try:
        print(ask())
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0])
"""
JAX = """
from jax._src import hardware_utils
hardware_utils.has_visible_nvidia_gpu = lambda: True
import jax
try:
    print(jax.devices())
except Exception as error:
    print(type(error).__name__, str(error).splitlines()[0])
"""
# What subscribes and traces, as far as that goes without a device.
CUPTI = """
import ctypes, glob, os, sys
path = glob.glob(os.path.join(sys.prefix, "lib", "*", "site-packages", "nvidia", "*", "lib", "libcupti.so.1*"))[0]
cupti, driver = ctypes.CDLL(path), ctypes.CDLL("libcuda.so.1")
version, subscriber, table = ctypes.c_uint(), ctypes.c_void_p(), ctypes.c_void_p()
seen = []
note = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)(
    lambda user, domain, call, data: seen.append((domain, call)))
print("version", cupti.cuptiGetVersion(ctypes.byref(version)), version.value)
print("subscribe", cupti.cuptiSubscribe(ctypes.byref(subscriber), note, None))
for domain in range(1, 6):
    print("domain", domain, cupti.cuptiEnableDomain(1, subscriber, domain))
for kind in range(1, 12):
    print("activity", kind, cupti.cuptiActivityEnable(kind))
print("export", driver.cuGetExportTable(ctypes.byref(table), bytes(range(16))))
print("cuInit", driver.cuInit(0), driver.cuMemAlloc_v2(ctypes.byref(table), ctypes.c_size_t(64)), driver.cuMemFree_v2(None))
print("unsubscribe", cupti.cuptiUnsubscribe(subscriber), seen)
"""
CLIENTS = (("PyTorch", "long", TORCH), ("JAX", "jax", JAX), ("CUPTI", "long", CUPTI), ("CUPTI", "jax", CUPTI))
PR_CAPBSET_DROP, CAP_MKNOD = 24, 27  # linux/prctl.h, linux/capability.h


def make_no_devices():
    """As root the driver would make /dev/nvidiactl."""
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_MKNOD, 0, 0, 0)


def answers(python, script, driver, runtime, library, mode):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("BFC_", "LD_", "JAX_"))}
    preloaded = [library, runtime] if mode else [runtime]
    env.update(LD_LIBRARY_PATH=driver, LD_PRELOAD=":".join(preloaded), JAX_PLATFORMS="cuda",
               JAX_SKIP_CUDA_CONSTRAINTS_CHECK="1")
    if mode:
        env.update(BFC_FREE=mode)
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([python, "-c", script], env=env, cwd=folder, capture_output=True, text=True,
                              errors="replace", preexec_fn=make_no_devices)
    return done.stdout.splitlines() + [f"status {done.returncode}"]


def main():
    library, drivers, runtimes, sim, folder, include = map(os.path.abspath, sys.argv[1:])
    found = sorted(glob.glob(os.path.join(drivers, "*", "libcuda.so.1")))
    runtime = os.path.join(runtimes, "libcudart.so.13")
    if not found or not os.path.exists(runtime):
        skip("no driver or no runtime: scripts/fetch-drivers and scripts/fetch-runtimes fetch them")
    if os.path.exists("/proc/driver/nvidia"):
        skip("there is a device")
    different = 0
    for name, form, script in CLIENTS:
        python = install(form, folder, sim, include)
        for driver in map(os.path.dirname, found):
            native, *others = (answers(python, script, driver, runtime, library, mode)
                               for mode in ("", "sync", "lazy", "ordered"))
            unlike = [lines for lines in others if lines != native]
            different += len(unlike)
            print(f"{name} ({form}) over {os.path.basename(driver)}: {len(native)} lines natively, {len(unlike)} modes differ",
                  *native, *unlike, sep="\n    ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
