#!/usr/bin/env python3
"""The running part of scripts/demo: demo.py BUILD [ITERATIONS] [VARIABLE=VALUE...].

Runs tests/integration/demo's programs natively and preloaded in each mode of BFC_FREE, with the variables
that are named and no others of the library's, inspects the preloaded ones with bfcstat while they run, compares the
results, and prints what is gained and what it costs; last one line of JSON, unless to a terminal. Exit status 0 when the contents were equal, the preloaded runs waited at most once a free, and
those in `sync`, once warm, made no driver allocation and no driver free; and, over the stand-in GPU, the C
program ends with the same contents on a device that has five sixths of what it needs (BFC_SPILL), where
natively it runs out of memory. Where this Python has PyTorch, ten steps of a network in it are compared too.

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
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WARM_UP = 24
MODES = ("sync", "lazy", "ordered")  # of BFC_FREE
OVERCOMMIT = 1.2  # what the program needs, as a multiple of the device that spills
PAGE = 2 << 20

# Runs in a process of its own: prints the GPU's name if the driver has one and this runtime works with it.
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
    program = os.path.join(build, "tests", "integration", "demo", "train-gpu")
    subprocess.run(
        ["cc", "-O2", "-std=c17", "-D_GNU_SOURCE", "-isystem", cuda_include(build),
         os.path.join(ROOT, "tests", "integration", "demo", "train.c"), "-o", program,
         library if "/" in library else "-l:" + library, "-ldl"],
        check=True,
    )
    return program


class Place:
    """Where the programs run: the device, their environment, and the messages about it."""

    def __init__(self, build, variables):
        self.build = build
        self.library = os.path.join(build, "interpose", "libbfcpreload.so")
        if re.search(r"[\s:$]", self.library):
            fail(f"{self.library} cannot be preloaded: LD_PRELOAD takes no path with blanks or colons")
        self.device, library = find_gpu(build)
        self.simulated = self.device is None
        if self.simulated:
            self.device = "simulated"
            self.program = os.path.join(build, "tests", "integration", "demo", "train")
            folder = os.path.join(build, "sim")
            self.runtime = os.path.join(folder, "libcudart.so.13")
            # The latencies and delays are the stand-in's model; see its README page.
            # All simulated devices have the same name but are different devices: do not yield to their jobs.
            self.changes = {"SIM_LATENCY": "typical", "SIM_SEED": "1", "SIM_DELAY_US": "50", "BFC_YIELD": "0"}
        else:
            self.program = compile_for(build, library)
            folder = os.path.dirname(library)
            self.changes = {}
        paths = [folder, os.environ.get("LD_LIBRARY_PATH", "")]
        self.changes["LD_LIBRARY_PATH"] = ":".join(path for path in paths if path)
        self.changes.update(variables)

    def environment(self, mode=None, more=None):
        """Of a native run, or of a preloaded one in a mode of BFC_FREE; with some variables more."""
        env = {k: v for k, v in os.environ.items() if not re.match("BFC_|SIM_|LD_PRELOAD$", k)}
        env.update(self.changes)
        env.update(more or {})
        if mode:
            env.update({"LD_PRELOAD": self.library, "BFC_FREE": mode})
        return env


class Run:
    """One run of one program, natively or in a mode: its marks, and what bfcstat saw of it."""

    def __init__(self, place, command, iterations, mode, more=None):
        self.bfcstat = os.path.join(place.build, "tools", "bfcstat")
        self.snapshots = []
        self.process = subprocess.Popen(
            [*command, str(iterations), str(WARM_UP), "pause"],
            env=place.environment(mode, more),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        self.middle = self.page = None
        self.warm = self.mark("warm", mode)
        if mode:
            time.sleep(0.2)
            self.middle = self.look()
            self.page = self.text()
        self.done = self.mark("done", mode)
        self.status = self.process.wait()

    def mark(self, name, mode):
        line = self.process.stdout.readline()
        try:
            mark = json.loads(line)
            if mark["mark"] != name:
                raise ValueError
        except (ValueError, KeyError):
            fail(f"{' '.join(self.process.args)} ended early with status {self.process.wait()}")
        if mode:
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

    def text(self):
        """bfcstat's page, under its command."""
        command = [self.bfcstat, str(self.process.pid)]
        page = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout
        return f"$ bfcstat {self.process.pid}\n{page}"

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
    """Of the pool with the highest fragmentation; None if no pool has measured it."""
    return max((p["fragmentation"] for p in job["pools"] if p["fragmentation"] is not None), default=None)


def per_iteration(run):
    return run.done["us"] / run.done["iterations"]


def allocating_per_iteration(run):
    return run.difference("allocating_us") / run.done["iterations"]


def driver_calls(run, simulated, preloaded):
    """Allocations and frees that reached the driver."""
    if simulated:
        return run.difference("driver_allocations"), run.difference("driver_frees")
    if preloaded:
        return tuple(run.seen_difference(over_pools(key)) for key in ("reserve_calls", "release_calls"))
    return run.difference("allocations"), run.difference("frees")


def figures_of_native(run, simulated):
    allocations, frees = driver_calls(run, simulated, False)
    return {
        "us_per_iter": round(per_iteration(run), 1),
        "allocating_us_per_iter": round(allocating_per_iteration(run), 1),
        "driver_calls": allocations + frees,
        "calls_for_memory": allocations + frees,
        "driver_allocations": allocations,
        "driver_frees": frees,
        "all_driver_calls": run.difference("driver_calls"),
        "host_waits": run.difference("driver_waits"),
        "host_waits_for_frees": run.difference("frees"),  # natively each free waits
        "memory": run.done["most_held"],
    }


def figures_of_preloaded(run, native, simulated):
    calls = run.seen_difference
    allocations, frees = driver_calls(run, simulated, True)
    waits_for_frees = calls(over_pools("host_waits")) + calls(over_pools("waits"))
    fences, device_waits = (calls(over_pools(key)) for key in ("fences", "device_waits"))
    passed_on = 0 if simulated else calls(forwarded)
    last = run.snapshots[1]
    return {
        "us_per_iter": round(per_iteration(run), 1),
        "allocating_us_per_iter": round(allocating_per_iteration(run), 1),
        "driver_calls": allocations + frees + passed_on,
        "calls_for_memory": allocations + frees + passed_on + waits_for_frees + fences + device_waits,
        "driver_allocations": allocations,
        "driver_frees": frees,
        "all_driver_calls": run.difference("driver_calls"),
        "host_waits": run.difference("driver_waits") if simulated else waits_for_frees,
        "host_waits_for_frees": waits_for_frees,
        "frees": run.difference("frees"),
        "pooled": calls(pooled),
        "forwarded": calls(forwarded),
        "fences": fences,
        "device_waits": device_waits,
        "peak_in_use": over_pools("peak_in_use")(last),
        "peak_reserved": over_pools("peak_reserved")(last),
        "memory": over_pools("peak_reserved")(last),
        "fragmentation": fragmentation(run.middle),
        "contents_equal": native.done["checksum"] == run.done["checksum"]
        and native.done["mismatches"] == run.done["mismatches"] == 0
        and native.status == run.status == 0,
    }


def figure(value, unit=""):
    if value is None:
        return "not known"
    return f"{value:,.1f}{unit}" if isinstance(value, float) else f"{value:,}{unit}"


def percent(share):
    return "not known" if share is None else f"{share * 100:.1f} %"


def mib(value):
    return f"{value / (1 << 20):,.1f} MiB"


def print_row(label, *cells):
    print((f"{label:<26}" + "".join(f"{cell:>13}" for cell in cells)).rstrip())


def print_table(name, native, modes):
    """What is gained, then what it costs."""
    every = [native, *modes.values()]
    print_row(name, "native", *modes)
    print_row("time an iteration", *(figure(f["us_per_iter"], " us") for f in every))
    print_row("  share of native", "", *(percent(f["us_per_iter"] / native["us_per_iter"]) for f in modes.values()))
    print_row("  in cudaMalloc, cudaFree", *(figure(f["allocating_us_per_iter"], " us") for f in every))
    for label, key in (("allocations by driver", "driver_allocations"), ("frees by driver", "driver_frees"),
                       ("host waits for frees", "host_waits_for_frees"), ("calls for memory", "calls_for_memory"),
                       ("all driver calls", "all_driver_calls")):
        print_row(label, *(figure(f[key]) for f in every))
    for label, key in ("  events recorded", "fences"), ("  waits on the device", "device_waits"):
        print_row(label, "", *(figure(f[key]) for f in modes.values()))
    print_row("calls passed on", "", *(figure(f["forwarded"]) for f in modes.values()))
    print_row("contents", "", *("equal" if f["contents_equal"] else "DIFFERENT" for f in modes.values()))
    print_row("most memory taken", *(mib(f["memory"]) for f in every))
    print_row("  more than native", "", *(percent(f["memory"] / native["memory"] - 1) for f in modes.values()))
    print_row("fragmentation, mid-run", "", *(percent(f["fragmentation"]) for f in modes.values()))


def print_answer(native, modes):
    """What a mode gains and what it costs, in a line each."""
    print()
    for mode, figures in modes.items():
        change = figures["us_per_iter"] / native["us_per_iter"] - 1
        waits = figures["host_waits_for_frees"] / figures["frees"]
        more = figures["memory"] - native["memory"]
        print(f"{mode:<8} {abs(change) * 100:.0f} % {'less' if change < 0 else 'MORE'} time an iteration;"
              f" {figures['driver_calls']:,} of {native['driver_calls']:,} driver allocations and frees left;"
              f" {waits * 100:.0f} % of the frees wait; costs {mib(more)} of memory ({more / native['memory'] * 100:+.0f} %)")


def announce(place):
    if place.simulated:
        print("demo: no GPU found. The device is SIMULATED (sim): the counts are real, the times are those of a"
              " model, with published\ndemo: latencies (a pair of cudaMalloc and cudaFree 14 us, a launch or copy"
              " 5 us, a wait 3 us; sim/README.md).\ndemo: counts are the stand-in driver's own, after the warm-up.")
    else:
        print(f"demo: GPU: {place.device}")
        print("demo: native counts are the program's own calls, preloaded ones come from its"
              " segment, after the warm-up.")


def sound(native, modes, pages):
    """Checks that what the demo claims is true. Of memory with pages it claims nothing about all driver calls: while
    freed blocks are pending, pages move to where there are allocations, which takes calls."""
    complaints = []
    fewer = ["calls_for_memory", "host_waits_for_frees"] + (["all_driver_calls"] if not pages else [])
    for mode in MODES[1:]:
        for key in fewer:
            if native[key] is not None and modes[mode][key] >= native[key]:
                complaints.append(f"{mode}: {key} are {modes[mode][key]}, natively {native[key]}")
    for mode, figures in modes.items():
        if not figures["contents_equal"]:
            complaints.append(f"{mode}: the contents differ from the native ones or from what they must be")
        if figures["host_waits_for_frees"] > figures["frees"]:
            complaints.append(f"{mode}: the preloaded run waited more than once a free")
    if modes["sync"]["driver_calls"]:
        complaints.append("sync: the preloaded run still called the driver's allocator when warm")
    for complaint in complaints:
        print(f"demo: {complaint}", file=sys.stderr)
    return not complaints


def begin(what, iterations):
    print(f"\ndemo: {what}, {iterations} iterations: native", end="", flush=True)


def begin_mode(mode):
    print(f", {mode}", end="", flush=True)


def measure(place, name, command, iterations):
    """
    Runs one program and shows its figures. They are returned: of the native run, of each mode, the contents'
    checksum, and bfcstat's page of the first mode.
    """
    begin(name, iterations)
    native = Run(place, command, iterations, None)
    modes, page = {}, None
    for mode in MODES:
        begin_mode(mode)
        run = Run(place, command, iterations, mode)
        modes[mode] = figures_of_preloaded(run, native, place.simulated)
        page = page or run.page
    print(" ...\n")
    of_native = figures_of_native(native, place.simulated)
    print_table(name, of_native, modes)
    return of_native, modes, native.done["checksum"], page


class Overcommit:
    """The C program on a device that is too small for it: natively, and with BFC_SPILL in each mode."""

    def __init__(self, place, iterations, needed, checksum):
        self.needed = needed
        self.memory = int(needed / OVERCOMMIT) // PAGE * PAGE
        more = {"SIM_MEMORY": str(self.memory)}
        what = f"train (C) on a device of {mib(self.memory)}, BFC_SPILL=1G"
        begin(what, iterations)
        native = subprocess.run([place.program, str(iterations), str(WARM_UP)], env=place.environment(None, more),
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        self.native_fails = native.returncode == 1 and "out of memory" in native.stderr
        self.modes = {}
        for mode in MODES:
            begin_mode(mode)
            run = Run(place, [place.program], iterations, mode, more={**more, "BFC_SPILL": "1G"})
            self.modes[mode] = self.figures(run, checksum)

    @staticmethod
    def figures(run, checksum):
        pools = {memory: [p for p in run.snapshots[1]["pools"] if p["memory"] == memory] for memory in ("device", "host")}
        return {
            "us_per_iter": round(per_iteration(run), 1),
            "peak_in_use": sum(pool["peak_in_use"] for pool in pools["device"]),
            "peak_spilled": sum(pool["peak_in_use"] for pool in pools["host"]),
            "spilled_allocations": sum(pool["allocations"] for pool in pools["host"]),
            "contents_equal": run.done["checksum"] == checksum and run.done["mismatches"] == run.status == 0,
        }

    def show(self):
        every = self.modes.values()
        print(f" ...\n\ntrain (C) needs {mib(self.needed)}, the device has {mib(self.memory)}: the rest is host memory (BFC_SPILL)")
        print_row("", "native", *self.modes)
        print_row("ends", "out of memory" if self.native_fails else "well", *("well" for _ in every))
        print_row("time an iteration", "", *(figure(f["us_per_iter"], " us") for f in every))
        print_row("most in use there", "", *(mib(f["peak_in_use"]) for f in every))
        print_row("most spilled", "", *(mib(f["peak_spilled"]) for f in every))
        print_row("allocations spilled", "", *(figure(f["spilled_allocations"]) for f in every))
        print_row("contents", "", *("equal" if f["contents_equal"] else "DIFFERENT" for f in every))

    def sound(self):
        complaints = [] if self.native_fails else ["natively the program did not run out of the small device's memory"]
        for mode, figures in self.modes.items():
            if not figures["contents_equal"]:
                complaints.append(f"{mode}: the contents with spilled memory differ from the native ones")
            if not figures["peak_spilled"]:
                complaints.append(f"{mode}: nothing was spilled on the small device")
        for complaint in complaints:
            print(f"demo: {complaint}", file=sys.stderr)
        return not complaints

    def keys(self):
        keys = {f"spill_{mode}_{key}": value for mode, figures in self.modes.items() for key, value in figures.items()}
        return {"spill_device_memory": self.memory, "spill_native_fails": self.native_fails, **keys}


class Network:
    """A training loop in PyTorch, where that is installed: its kernels' numbers mean nothing over the stand-in GPU,
    which skips them, and what it allocates, and when, is what it would be."""

    COUNTS = {"cuMemAlloc": "driver_allocations", "cuMemFree": "driver_frees", "blocked_waits": "host_waits"}

    def __init__(self, place):
        self.script = os.path.join(ROOT, "tests", "integration", "demo", "network.py")
        self.runs = {mode or "native": self.run(place, mode) for mode in (None, *MODES)}

    @staticmethod
    def wanted():
        """DEMO_PYTORCH=0 leaves it out."""
        probe = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
        return os.environ.get("DEMO_PYTORCH") != "0" and \
            subprocess.run([sys.executable, "-c", probe], check=False).returncode == 0

    def run(self, place, mode):
        """One run's steps and figures; the driver's counts over the stand-in GPU."""
        env = place.environment(mode, {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"})
        with tempfile.NamedTemporaryFile() as stats:
            if place.simulated:  # PyTorch brings NVIDIA's runtime, which the stand-in's must precede
                env.update(SIM_KERNELS="skip", SIM_STATS=stats.name)
                env["LD_PRELOAD"] = ":".join([*([place.library] if mode else []), place.runtime])
            done = subprocess.run([sys.executable, self.script], env=env, capture_output=True, text=True, check=False)
            if done.returncode:
                fail(f"{self.script} ended with status {done.returncode}: {done.stderr.strip()[-500:]}")
            *steps, figures = done.stdout.splitlines()
            counts = json.loads(stats.read() or "{}")
        return {"steps": steps, **json.loads(figures), **{name: counts[key] for key, name in self.COUNTS.items() if key in counts}}

    def show(self):
        every = self.runs.values()
        print("\nPyTorch without its cache, ten steps of a small network")
        print_row("", *self.runs)
        print_row("time a step", *(figure(run["us_per_step"], " us") for run in every))
        for name in self.COUNTS.values():
            if name in self.runs["native"]:
                print_row(name.replace("_", " "), *(figure(run[name]) for run in every))
        print_row("live memory", *("equal" if run["steps"] == self.runs["native"]["steps"] else "DIFFERENT" for run in every))

    def sound(self):
        different = [mode for mode, run in self.runs.items() if run["steps"] != self.runs["native"]["steps"]]
        for mode in different:
            print(f"demo: {mode}: PyTorch holds other memory than natively", file=sys.stderr)
        return not different

    def keys(self):
        return {f"torch_{mode}_{key}": value for mode, run in self.runs.items() for key, value in run.items() if key != "steps"}


def keys_of(program, native, modes):
    """
    Of the line of JSON: `native_`, `preloaded_` (sync), `lazy_` and `ordered_` before each figure; those of
    sync that the native run has no counterpart of, and whether all contents were equal, have no prefix.
    """
    keys = {"native_" + key: value for key, value in native.items()}
    for key, value in modes["sync"].items():
        compared = key in native
        keys["preloaded_" + key if compared else key] = value
    for mode in MODES[1:]:
        keys.update({f"{mode}_{key}": value for key, value in modes[mode].items()})
    keys["contents_equal"] = all(figures["contents_equal"] for figures in modes.values())
    return {program + key: value for key, value in keys.items()}


def main(arguments):
    variables = dict(a.split("=", 1) for a in arguments if re.match("BFC_[A-Z_]+=", a))
    arguments = [a for a in arguments if not re.match("BFC_[A-Z_]+=", a)]
    if not 1 <= len(arguments) <= 2 or not all(a.isdigit() and int(a) for a in arguments[1:]):
        fail("usage: demo.py BUILD [ITERATIONS] [VARIABLE=VALUE...]; ITERATIONS is a number above 0, and the "
             "variables are bfcpreload's, such as BFC_BACKING=pages")
    place = Place(os.path.abspath(arguments[0]), variables)
    iterations = int(arguments[1]) if len(arguments) > 1 else 300
    announce(place)
    script = os.path.join(ROOT, "tests", "integration", "demo", "train.py")
    in_c = measure(place, "train (C)", [place.program], iterations)
    native, modes, checksum, page = in_c
    print_answer(native, modes)
    print(f"\n{page}", end="", flush=True)
    in_python = measure(place, "train.py (Python)", [sys.executable, script], iterations)
    results = (in_c, in_python)
    small = None
    if place.simulated:  # a real device cannot be made smaller for a native run
        small = Overcommit(place, iterations, modes["sync"]["peak_in_use"], checksum)
        small.show()
    network = None
    if Network.wanted():
        network = Network(place)
        network.show()
    else:
        print(f"\ndemo: PyTorch is not installed for {sys.executable}, or DEMO_PYTORCH is 0: its training loop is left out")
    pages = variables.get("BFC_BACKING") == "pages"
    in_order = [sound(figures[0], figures[1], pages) for figures in results]
    in_order += [part.sound() for part in (small, network) if part]
    summary = {"device": place.device, "simulated": place.simulated, "iterations": iterations}
    for program, figures in zip(("", "python_"), results):
        summary.update(keys_of(program, figures[0], figures[1]))
    for part in (small, network):
        summary.update(part.keys() if part else {})
    if not sys.stdout.isatty():
        print("\n" + json.dumps(summary), flush=True)
    return 0 if all(in_order) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
