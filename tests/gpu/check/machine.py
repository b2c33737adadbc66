"""Finds the machine's toolkit, driver, device and tools."""

import contextlib
import glob
import importlib.util
import json
import os
import select
import shutil
import subprocess
import sys

from . import nvml

# Queries the driver in a process of its own, which cannot affect others. The process lives until its
# standard input ends, so that the driver stays initialized for the programs that follow. Then it ends the process
# groups that are still there by what it has read: the one who wrote it was killed.
PROBE = """
import ctypes, json, os, signal, sys, uuid
try:
    driver = ctypes.CDLL("libcuda.so.1")
except OSError as error:
    sys.exit(str(error))
count, number, total = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t()
status = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
if status or not count.value:
    sys.exit(f"libcuda.so.1 answers {status} and shows {count.value} devices")
def attribute(which):
    driver.cuDeviceGetAttribute(ctypes.byref(number), which, 0)
    return number.value
context = ctypes.c_void_p()
status = driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) if "context" in sys.argv else 0
if status:
    sys.exit(f"cuDevicePrimaryCtxRetain answers {status}")
name = ctypes.create_string_buffer(256)
driver.cuDeviceGetName(name, 256, 0)
driver.cuDeviceTotalMem_v2(ctypes.byref(total), 0)
driver.cuDriverGetVersion(ctypes.byref(number))
version = number.value
raw = ctypes.create_string_buffer(16)
driver.cuDeviceGetUuid_v2(raw, 0)
where = [line.split()[-1] for line in open("/proc/self/maps") if "libcuda.so" in line]
print(json.dumps({
    "device": name.value.decode(errors="replace"), "devices": count.value, "driver": version,
    "memory": total.value, "capability": f"{attribute(75)}.{attribute(76)}",
    "compute mode": attribute(20), "libcuda": where[0], "uuid": str(uuid.UUID(bytes=raw.raw))}), flush=True)
groups = set()
for line in sys.stdin:
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""


def find_toolkit():
    """CUDA_HOME, /usr/local/cuda, or where nvcc lies."""
    nvcc = shutil.which("nvcc")
    places = [os.environ.get("CUDA_HOME"), "/usr/local/cuda",
              nvcc and os.path.dirname(os.path.dirname(os.path.realpath(nvcc))),
              *sorted(glob.glob("/usr/local/cuda-*"), reverse=True)]
    return next((p for p in places if p and os.path.exists(p + "/bin/nvcc")), "/usr/local/cuda")


def find_driver():
    """Lets the loader find the driver in folders that it does not search by itself."""
    for place in ("/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/wsl/lib"):
        if os.path.exists(place + "/libcuda.so.1"):
            old = os.environ.get("LD_LIBRARY_PATH")
            os.environ["LD_LIBRARY_PATH"] = f"{old}:{place}" if old else place


def find_gpu(*how, seconds=60):
    """What the driver says of its first device, and the process that keeps it awake; or why there is
    none, and None. `how`: "context" has it make one too. What ends our process group does not end that process."""
    process = subprocess.Popen([sys.executable, "-c", PROBE, *how], stdin=subprocess.PIPE, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    if not select.select([process.stdout], [], [], seconds)[0]:
        process.kill()
        return f"the driver did not answer in {seconds} s", None
    line = process.stdout.readline()
    if line:
        return json.loads(line), process
    complaint = process.communicate()[1].strip().splitlines()
    return complaint[-1] if complaint else f"exit status {process.returncode}", None


def why_unusable():
    """Of the device, by a process that makes a context; None when it is usable."""
    found, process = find_gpu("context", seconds=30)
    if not process:
        return found
    let_sleep(process)
    return None


def let_sleep(process):
    with contextlib.suppress(OSError):  # it has ended
        process.stdin.close()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()


def nvidia_smi(uuid):
    """What nvidia-smi knows of this device beyond that, if it is installed."""
    asked = "driver_version,persistence_mode,mig.mode.current,clocks.sm,clocks.max.sm"
    with contextlib.suppress(OSError, subprocess.TimeoutExpired, IndexError):
        shown = subprocess.run(["nvidia-smi", "--id=GPU-" + uuid, "--query-gpu=" + asked, "--format=csv,noheader"],
                               capture_output=True, text=True, timeout=30, check=False)
        if shown.returncode == 0:
            return {"nvidia-smi": f"{asked}: {shown.stdout.splitlines()[0]}"}
    return {}


def find_managed(found, library):
    """The device as NVIDIA's management library knows it, or None."""
    with contextlib.suppress(nvml.NotThere):
        device = nvml.Device(found["uuid"], library)
        device.used()  # which may not be permitted
        return device
    return None


def surroundings(managed):
    """What else may change the figures, or what the conformance programs see; and complaints about it."""
    if not managed:
        return {"management library": "not there: no peak memory, no other processes"}, []
    known = {"in use before": managed.used(), "other processes": managed.other_processes(),
             "persistence mode": managed.number("nvmlDeviceGetPersistenceMode"),
             "a part of a device (MIG)": managed.is_part or bool(managed.number("nvmlDeviceGetMigMode"))}
    complaints = []
    if known["other processes"]:
        complaints.append(f"{known['other processes']} other processes use the device, with "
                          f"{known['in use before'] >> 20} MiB: times, and what looks at free memory, may differ")
    if known["a part of a device (MIG)"]:
        complaints.append("a part of a device (MIG): times are no whole device's; pages and IPC may not be there")
    return {name: value for name, value in known.items() if value is not None}, complaints


def nvidia_packages():
    """The folders of NVIDIA's Python packages, each with lib and include."""
    found = importlib.util.find_spec("nvidia")
    return sorted(path for place in (found.submodule_search_locations or [] if found else [])
                  for path in glob.glob(place + "/*"))


def find_tool(name, toolkit):
    """A debugger or profiler: on the path, of the toolkit, or of the Nsight packages, newest first."""
    def newest(pattern):
        return sorted(glob.glob(pattern), reverse=True)

    places = [os.environ.get("PATH", ""), toolkit + "/bin", toolkit + "/compute-sanitizer",
              *newest("/opt/nvidia/nsight-*/*"), *newest("/opt/nvidia/nsight-systems/*/bin"),
              *newest("/opt/nvidia/nsight-compute/*/host/target-linux-x64")]
    return shutil.which(name, path=os.pathsep.join(places))
