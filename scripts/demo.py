#!/usr/bin/env python3
"""The running part of scripts/demo: demo.py BUILD [ITERATIONS].

Runs tests/demo's programs natively and preloaded, looks at the preloaded ones with bfcstat while
they run, compares, and prints a table and one line of JSON. Exit status 0 when the contents were
equal and the preloaded runs, once warm, made no driver allocation, no driver free and at most one
host wait a free.

Counts are differences between the end of the warm-up and the end of the run. Over the stand-in GPU
they are the stand-in driver's own; on a real one the native counts are the program's calls and the
preloaded ones are read from the job's segment.
"""

import glob
import json
import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WARM_UP = 24

# In a process of its own: which GPU does the driver give, and does this runtime get along with it?
PROBE = """
import ctypes, sys
driver = ctypes.CDLL("libcuda.so.1")
runtime = ctypes.CDLL(sys.argv[1])
name = ctypes.create_string_buffer(256)
device = ctypes.c_int()
if hasattr(driver, "sim_call_count") or driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), 0):
    sys.exit(1)
if driver.cuDeviceGetName(name, 256, device) or runtime.cudaFree(None):
    sys.exit(1)
print(name.value.decode())
"""


def fail(message):
    sys.exit(f"demo: {message}")


def runtime_libraries(build):
    folders = [os.path.join(build, "cuda", "lib")]
    for home in (os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        if home:
            folders += [os.path.join(home, "lib64"), os.path.join(home, "lib")]
    found = [lib for folder in folders for lib in glob.glob(os.path.join(folder, "libcudart.so.1[0-9]"))]
    return found + ["libcudart.so.13", "libcudart.so.12"]


def find_gpu(build):
    """The device's name and a runtime library that works with it, or two Nones."""
    for library in runtime_libraries(build):
        probe = subprocess.run(
            [sys.executable, "-c", PROBE, library],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False,
        )
        if probe.returncode == 0:
            return probe.stdout.strip(), library
    return None, None


def cuda_include(build):
    chosen = []
    if os.path.exists(os.path.join(build, "meson-info")):
        options = subprocess.check_output(["meson", "introspect", build, "--buildoptions"], text=True)
        chosen = [o["value"] for o in json.loads(options) if o["name"] == "toolkit_include"]
    home = os.environ.get("CUDA_HOME")
    for place in [*chosen, home and os.path.join(home, "include"), "/usr/local/cuda/include",
                  os.path.join(build, "cuda", "include")]:
        if place and os.path.exists(os.path.join(place, "cuda_runtime_api.h")):
            return place
    return fail("CUDA's headers are gone")


def compile_for(build, library):
    """train.c linked to the machine's own runtime."""
    program = os.path.join(build, "tests", "demo", "train-gpu")
    subprocess.run(
        ["cc", "-O2", "-std=c17", "-D_GNU_SOURCE", "-isystem", cuda_include(build),
         os.path.join(ROOT, "tests", "demo", "train.c"), "-o", program,
         library if "/" in library else "-l:" + library, "-ldl"],
        check=True,
    )
    return program


class Place:
    """Where the programs run: their environment and how to tell people."""

    def __init__(self, build):
        self.build = build
        self.device, library = find_gpu(build)
        self.simulated = self.device is None
        if self.simulated:
            self.device = "simulated"
            self.program = os.path.join(build, "tests", "demo", "train")
            folder = os.path.join(build, "tests", "sim")
            # The latencies and delays are the stand-in's model; see its README page.
            self.changes = {"SIM_LATENCY": "typical", "SIM_SEED": "1", "SIM_DELAY_US": "50"}
        else:
            self.program = compile_for(build, library)
            folder = os.path.dirname(library)
            self.changes = {}
        paths = [folder, os.environ.get("LD_LIBRARY_PATH", "")]
        self.changes["LD_LIBRARY_PATH"] = ":".join(path for path in paths if path)

    def environment(self, library=None):
        env = {k: v for k, v in os.environ.items() if not re.match("BFC_|SIM_|LD_PRELOAD$", k)}
        env.update(self.changes)
        if library:
            env["LD_PRELOAD"] = library
        return env


class Run:
    """One run of one program: its marks, and what bfcstat saw of it."""

    def __init__(self, place, command, iterations, preloaded, show):
        self.bfcstat = os.path.join(place.build, "tools", "bfcstat")
        self.snapshots = []
        library = os.path.join(place.build, "interpose", "libbfcpreload.so")
        if preloaded and re.search(r"[\s:$]", library):
            fail(f"{library} cannot be preloaded: LD_PRELOAD takes no path with blanks or colons")
        self.process = subprocess.Popen(
            [*command, str(iterations), str(WARM_UP), "pause"],
            env=place.environment(library if preloaded else None),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        self.middle = None
        self.warm = self.mark("warm", preloaded)
        if preloaded:
            time.sleep(0.2)
            self.middle = self.look()
            if show:
                self.show()
        self.done = self.mark("done", preloaded)
        self.status = self.process.wait()

    def mark(self, name, preloaded):
        line = self.process.stdout.readline()
        try:
            mark = json.loads(line)
            if mark["mark"] != name:
                raise ValueError
        except (ValueError, KeyError):
            fail(f"{' '.join(self.process.args)} ended early with status {self.process.wait()}")
        if preloaded:
            self.snapshots.append(self.look())
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return mark

    def look(self):
        command = [self.bfcstat, "--json", str(self.process.pid)]
        result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if result.returncode:
            fail(f"{' '.join(command)} ended with status {result.returncode}")
        return json.loads(result.stdout)

    def show(self):
        print(f"\n$ bfcstat {self.process.pid}", flush=True)
        subprocess.run([self.bfcstat, str(self.process.pid)], check=False)

    def difference(self, key):
        before, after = self.warm.get(key), self.done.get(key)
        return None if after is None else after - before

    def seen_difference(self, count):
        return count(self.snapshots[1]) - count(self.snapshots[0])


def over_pools(key):
    return lambda job: sum(pool[key] for pool in job["pools"])


def pooled(job):
    return job["coverage"]["pooled_allocations"] + job["coverage"]["pooled_frees"]


def forwarded(job):
    coverage = job["coverage"]
    return sum(coverage["forwarded_allocations"].values()) + sum(coverage["forwarded_frees"].values())


def fragmentation(job):
    """Of the pool that has it worst; None where no pool knows."""
    return max((p["fragmentation"] for p in job["pools"] if p["fragmentation"] is not None), default=None)


def per_iteration(run):
    return run.done["us"] / run.done["iterations"]


def compare(native, preloaded, simulated):
    """All figures of one program."""
    calls = preloaded.seen_difference
    frees = preloaded.difference("frees")
    if simulated:
        native_waits = native.difference("driver_waits")
        waits = preloaded.difference("driver_waits")
        driver = [
            (run.difference("driver_allocations"), run.difference("driver_frees"))
            for run in (native, preloaded)
        ]
    else:
        native_waits, waits = None, calls(over_pools("host_waits")) + calls(over_pools("waits"))
        driver = [
            (native.difference("allocations"), native.difference("frees")),
            (calls(over_pools("reserve_calls")), calls(over_pools("release_calls"))),
        ]
    waits_for_frees = calls(over_pools("host_waits")) + calls(over_pools("waits"))
    last, middle = preloaded.snapshots[1], preloaded.middle
    return {
        "native_us_per_iter": round(per_iteration(native), 1),
        "preloaded_us_per_iter": round(per_iteration(preloaded), 1),
        "native_driver_calls": sum(driver[0]),
        "preloaded_driver_calls": sum(driver[1]) + (0 if simulated else calls(forwarded)),
        "native_driver_allocations": driver[0][0],
        "preloaded_driver_allocations": driver[1][0],
        "native_driver_frees": driver[0][1],
        "preloaded_driver_frees": driver[1][1],
        "native_all_driver_calls": native.difference("driver_calls"),
        "preloaded_all_driver_calls": preloaded.difference("driver_calls"),
        "native_host_waits": native_waits,
        "preloaded_host_waits": waits,
        "preloaded_host_waits_for_frees": waits_for_frees,
        "frees": frees,
        "pooled": calls(pooled),
        "forwarded": calls(forwarded),
        "peak_in_use": over_pools("peak_in_use")(last),
        "peak_reserved": over_pools("peak_reserved")(last),
        "fragmentation": fragmentation(middle),
        "contents_equal": native.done["checksum"] == preloaded.done["checksum"]
        and native.done["mismatches"] == preloaded.done["mismatches"] == 0
        and native.status == preloaded.status == 0,
    }


def figure(value, unit=""):
    if value is None:
        return "not known"
    return f"{value:,.1f}{unit}" if isinstance(value, float) else f"{value:,}{unit}"


def percent(share):
    return "not known" if share is None else f"{share * 100:.1f} %"


def mib(value):
    return f"{value / (1 << 20):,.1f} MiB"


def print_table(name, f):
    ratio = f["preloaded_us_per_iter"] / f["native_us_per_iter"]
    rows = [
        (name, "native", "preloaded"),
        ("time per iteration", figure(f["native_us_per_iter"], " us"),
         f"{figure(f['preloaded_us_per_iter'], ' us')} (x {ratio:.2f})"),
        ("driver allocations", figure(f["native_driver_allocations"]),
         figure(f["preloaded_driver_allocations"])),
        ("driver frees", figure(f["native_driver_frees"]), figure(f["preloaded_driver_frees"])),
        ("host waits", figure(f["native_host_waits"]), figure(f["preloaded_host_waits"])),
        ("all driver calls", figure(f["native_all_driver_calls"]),
         figure(f["preloaded_all_driver_calls"])),
        ("calls pooled", "-", figure(f["pooled"])),
        ("calls passed on", "-", figure(f["forwarded"])),
        ("most in use", "-", mib(f["peak_in_use"])),
        ("most reserved", "-", mib(f["peak_reserved"])),
        ("fragmentation, mid-run", "-", percent(f["fragmentation"])),
        ("contents", "equal" if f["contents_equal"] else "DIFFERENT", ""),
    ]
    print()
    for label, native, preloaded in rows:
        print(f"{label:<24}{native:>16}{preloaded:>26}".rstrip())


def announce(place):
    if place.simulated:
        print("demo: no GPU found. The device is SIMULATED (tests/sim): the counts are real, the"
              " times are those of a model.")
        print("demo: counts are the stand-in driver's own, after the warm-up.")
    else:
        print(f"demo: GPU: {place.device}")
        print("demo: native counts are the program's own calls, preloaded ones come from its"
              " segment, after the warm-up.")


def sound(figures):
    """What the demo shows must hold."""
    complaints = []
    if not figures["contents_equal"]:
        complaints.append("the contents differ from each other or from what they must be")
    if figures["preloaded_driver_calls"]:
        complaints.append("the preloaded run still called the driver's allocator when warm")
    if figures["preloaded_host_waits_for_frees"] > figures["frees"]:
        complaints.append("the preloaded run waited more than once a free")
    for complaint in complaints:
        print(f"demo: {complaint}", file=sys.stderr)
    return not complaints


def main(arguments):
    if not 1 <= len(arguments) <= 2 or not all(a.isdigit() and int(a) for a in arguments[1:]):
        fail("usage: demo.py BUILD [ITERATIONS]; ITERATIONS is a number above 0")
    place = Place(os.path.abspath(arguments[0]))
    iterations = int(arguments[1]) if len(arguments) > 1 else 300
    announce(place)
    script = os.path.join(ROOT, "tests", "demo", "train.py")
    programs = {
        "train (C)": [place.program],
        "train.py (Python)": [sys.executable, script],
    }
    results = []
    for name, command in programs.items():
        print(f"\ndemo: {name}, {iterations} iterations: native ...", flush=True)
        native = Run(place, command, iterations, preloaded=False, show=False)
        print(f"demo: {name}, {iterations} iterations: preloaded ...", flush=True)
        preloaded = Run(place, command, iterations, preloaded=True, show=not results)
        results.append(compare(native, preloaded, place.simulated))
    for name, figures in zip(programs, results):
        print_table(name, figures)
    in_order = [sound(figures) for figures in results]
    print()
    summary = {"device": place.device, "simulated": place.simulated, "iterations": iterations}
    summary.update(results[0])
    summary.update({f"python_{key}": value for key, value in results[1].items()})
    print(json.dumps(summary), flush=True)
    return 0 if all(in_order) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
