#!/usr/bin/env python3
"""NVIDIA's own user-space drivers (scripts/fetch-drivers), which find no device here, natively and preloaded: each name
by dlsym and by both forms of cuGetProcAddress, at versions 11.3 to 13.0, with each flag, with and without a place for
the pointer and the status; each call's answer to zeros, before and after the cuInit that fails; and NVIDIA's runtimes
over them, shared and static. All is as natively but for the functions that we hook, which are ours. And each name that a
driver exports is in calls.inc, or among the others that were considered. Exit status 77 without a driver, or with a
device.

usage: test_drivers.py LIBRARY PROBE CLIENT CALLS EXPORTS OTHERS DRIVERS RUNTIMES COMPILER [ARGUMENT...]"""

import ctypes
import glob
import os
import re
import subprocess
import sys
import tempfile

ROW = re.compile(r"^BFC_CALL\((\w+), \d+, \w+\)$", re.M)
NATIVE = re.compile(r"-> libcuda\.so\.1:(\w+)$")
OURS = re.compile(r"-> libbfcpreload\.so:(\w+)$")
ONE_BY_ONE = re.compile(r'^dlsym "(\w+)" ')
# Without a device the static runtime answers as the shared one does.
STATIC = """#include <stdio.h>
int cudaMalloc(void **, unsigned long), cudaFree(void *), cudaGetLastError(void), cudaGetDeviceCount(int *);
int main(void) {
    void *pointer = 0;
    int devices = -1, count = cudaGetDeviceCount(&devices), allocated = cudaMalloc(&pointer, 4096), freed = cudaFree(pointer);
    printf("count %d, %d; malloc %d, free %d, last error %d\\n", count, devices, allocated, freed, cudaGetLastError());
    return 0;
}
"""


PR_CAPBSET_DROP, CAP_MKNOD = 24, 27  # linux/prctl.h, linux/capability.h


def make_no_devices():
    """As root the driver would make /dev/nvidiactl."""
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_MKNOD, 0, 0, 0)


def run(command, driver, library, names=""):
    """What a program answers over a driver, preloaded if there is a library: its lines and its status."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("BFC_", "LD_"))}
    env["LD_LIBRARY_PATH"] = driver
    if library:
        env.update(LD_PRELOAD=library, BFC_GATE="1")
    done = subprocess.run(command, env=env, input=names, capture_output=True, text=True, timeout=100,
                          preexec_fn=make_no_devices)
    return (done.stdout + done.stderr).splitlines() + [f"status {done.returncode}"]


def wrong_names(native, preloaded, exports):
    """The lines that came out otherwise than by a hook in the place of the driver's function."""
    if len(native) != len(preloaded):
        return [f"{len(preloaded)} lines, natively {len(native)}; at the end {preloaded[-1]}"]
    wrong = []
    for before, after in zip(native, preloaded):
        its, ours, asked = NATIVE.search(before), OURS.search(after), ONE_BY_ONE.match(before)
        hooked = its and its[1] in exports
        if not hooked and before != after:
            wrong.append(f"{after}, natively {before}")
        elif hooked and asked and not ours:
            wrong.append(f"{asked[1]} is not replaced: {after}")
        elif ours and (ours[1] != its[1] or before[:its.start()] != after[:ours.start()]):
            wrong.append(f"{after}, natively {before}")
    return wrong


def exported(path):
    """The functions of CUDA's driver API that a library exports."""
    out = subprocess.run(["readelf", "--dyn-syms", "-W", path], capture_output=True, text=True, check=True).stdout
    rows = (line.split() for line in out.splitlines())
    names = {row[7].partition("@")[0] for row in rows if len(row) >= 8 and row[4] == "GLOBAL" and row[6] != "UND"}
    return {name for name in names if re.match("cu[A-Z]", name)}


def words(path):
    """The words of a file's lines that are no comments."""
    with open(path, encoding="utf-8") as file:
        return {word for line in file if not line.startswith("#") for word in line.split()}


def runtimes(client, folder, compiler, work):
    """NVIDIA's runtimes: commands by name, as far as they were fetched."""
    commands = {os.path.basename(path): [client, path] for path in sorted(glob.glob(os.path.join(folder, "libcudart.so.*")))}
    static = os.path.join(folder, "newest", "libcudart_static.a")
    if os.path.exists(static):
        program = os.path.join(work, "static")
        subprocess.run([*compiler, "-x", "c", "-", "-o", program, "-x", "none", static, "-lpthread", "-ldl", "-lrt"],
                       input=STATIC, text=True, check=True)
        commands["libcudart_static.a"] = [program]
    return commands


def compare(driver, library, probe, names, exports, commands):
    """What differs over one driver, told with what it answers."""
    ask = "".join(name + "\n" for name in names)
    native, preloaded = (run([probe, "names"], driver, preload, ask) for preload in (None, library))
    failures = wrong_names(native, preloaded, exports)
    hooks = {match[1] for match in map(OURS.search, preloaded) if match}
    calls, with_us = (run([probe, "calls"], driver, preload, ask) for preload in (None, library))
    failures += [f"call: {after}, natively {before}" for before, after in zip(calls, with_us) if before != after]
    if "first cuInit 100" not in calls:
        failures.append("cuInit found a device, or failed otherwise")
    answers = []
    for name, command in commands.items():
        before, after = (run(command, driver, preload) for preload in (None, library))
        answers.append(f"{name}: {'; '.join(before)}")
        if before != after:
            failures.append(f"{name}: {after}, natively {before}")
    print(f"{driver}: {len(native)} look-ups, {len(hooks)} hooks given; {len(calls)} calls;", *answers, *failures[:40], sep="\n  ")
    return failures


def main():
    library, probe, client, calls, exports, others, drivers, folder, *compiler = sys.argv[1:]
    found = sorted(glob.glob(os.path.join(drivers, "*", "libcuda.so.1")))
    if not found:
        print(f"no driver in {drivers}: scripts/fetch-drivers fetches some")
        sys.exit(77)
    if os.path.exists("/proc/driver/nvidia"):
        print("there is a device: what its driver answers is for scripts/gpu-check to see")
        sys.exit(77)
    with open(calls, encoding="utf-8") as file:
        names = set(ROW.findall(file.read()))
    known = names | words(others)
    failures = [f"{path} exports {name}, which is neither in calls.inc nor among the others"
                for path in found for name in sorted(exported(path) - known)]
    print(*failures, sep="\n")
    hooks = {word.split("@")[0] for word in words(exports) if word.startswith("cu")}
    with tempfile.TemporaryDirectory() as work:
        commands = runtimes(client, folder, compiler, work)
        for path in found:
            failures += compare(os.path.dirname(path), os.path.realpath(library), probe, sorted(names), hooks, commands)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
