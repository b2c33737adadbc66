#!/usr/bin/env python3
"""Compares random programs preloaded with the same programs natively.

usage: run.py [--seconds N] [--operations N] [--first SEED] [--count N] [--seed SEED] [--steps N]
              [--modes MODES] [--set NAME=VALUE]... [--usual] [--unrefused] [--without SCENES] [--go-on]
              [--caught] LIBRARY PROGRAM [LINKED]

For each seed PROGRAM runs natively once and with LIBRARY preloaded in each mode (sync,lazy,ordered)
on the stand-in GPU. Drawn from the seed as well are the device (how many, their memory, how late work
is done, which driver calls are refused) and the library's settings: what is behind the pool, policy,
growth, plan, spilling, limit, stacks, trimming, pending budget, gate. What it prints must be the same. Most
seeds run on a device that goes by driver calls (SIM_STEP), which makes a million operations in
seconds. LINKED is used in place of preloading, for sanitizers: the same program linked with the
library.

It ends after so many seconds, operations (allocations, frees and pieces of work, of preloaded runs)
or seeds. BFC_STRESS_SECONDS and BFC_STRESS_OPERATIONS in the environment override the options, and
make it long: BFC_STRESS_OPERATIONS=100000000 is a night's work done in minutes. --set fixes what
else is drawn (BFC_BACKING=pages, SIM_DEVICES=2; BFC_SPILL=8G with BFC_LIMIT=8M spills), --usual all
of the library's settings but budget, growth and gate to their defaults, --unrefused refuses nothing. --without leaves scenes out
(random_program.c has their names), to look behind a known defect; --go-on does not stop at the first
difference. With --caught, LIBRARY lacks a safeguard, and a difference must be found.
"""

import argparse
import concurrent.futures
import itertools
import os
import random
import re
import signal
import subprocess
import sys
import time

TIMEOUT = 60
AT_ONCE = 3


def device_of(seed, chance):
    """The stand-in's side of a set-up."""
    step = chance.choice([0, 4, 20, 60, 300, 2000])
    return {
        "SIM_SEED": str(seed),
        "SIM_STEP": str(step),
        "SIM_DELAY_US": chance.choice(["50", "200", "1000"]),
        "SIM_DEVICES": chance.choice(["1", "2", "2"]),
        "SIM_PEERS": chance.choice(["0", "1"]),
        "SIM_MEMORY": chance.choice(["64M", "2G"]) if step else "2G",
    }


def library_of(chance):
    """The library's side, apart from the mode; what is none of a list is as by default."""
    drawn = {
        "BFC_PENDING_BUDGET": ["0", "1M", "16M", "256M"],
        "BFC_GROWTH": [None, "double", "fixed", "exact"],
        "BFC_BACKING": [None, None, "pages"],
        "BFC_POLICY": [None, None, "pytorch", "tf"],
        "BFC_PLAN": [None, None, None, None, "auto"],
        "BFC_STACKS": [None, "all"],
        "BFC_TRIM_IDLE": [None, None, None, "0", "0.01"],
        "BFC_SPILL": [None, None, None, None, "8G"],
        "BFC_GATE": ["0", "1", "1"],
    }
    settings = {name: chance.choice(values) for name, values in drawn.items()}
    # Most memory is the host's then, or all; else the limit is the device.
    settings["BFC_LIMIT"] = chance.choice(["512", "8M"] if settings["BFC_SPILL"] else [None, None, "0.95"])
    return {name: value for name, value in settings.items() if value}


def scenes_without(settings, options):
    """Scenes that are left out."""
    without = [options.without] if options.without else []
    # Between devices that do not reach each other a plain copy does not reach pages (docs/internals/pages.md).
    if settings.get("BFC_BACKING", os.environ.get("BFC_BACKING")) == "pages":
        without += ["plain"]
        # On a full device pages do not go back while something captures (docs/internals/safety.md, pages).
        if settings["SIM_MEMORY"] == "64M":
            without += ["open"]
    # One small block may hold all of a device there, as in TensorFlow, and another context then gets none of it (limit
    # 7); and what is freed while something captures stays deferred (docs/internals/safety.md, captures).
    if settings.get("BFC_POLICY") == "tf":
        without += ["past", "own", "context"] + (["open"] if settings["SIM_MEMORY"] == "64M" else [])
    # Before it spills, an allocation waits as before an out of memory; and what is a free's barrier
    # where the device refuses 2 MiB is a free of host memory, which here does not wait
    # (docs/internals/safety.md, limits and captures). Spilled blocks cannot be exported.
    if "BFC_SPILL" in settings:
        without += ["hold", "barrier", "import"]
    return without


def settings_of(seed, options):
    """The environment in which a seed runs, apart from the mode."""
    chance = random.Random(seed)
    settings = device_of(seed, chance)
    drawn = library_of(chance)
    rate = chance.choice([0, 0, 50, 500, 5000])
    usual = ("BFC_PENDING_BUDGET", "BFC_GROWTH", "BFC_GATE")
    settings.update((name, drawn[name]) for name in (usual if options.usual else drawn) if name in drawn)
    if rate and not options.unrefused:
        settings["SIM_FAIL"] = f"random:{seed}:{rate}"
        settings["RANDOM_REFUSED"] = "1"
    settings.update(setting.split("=", 1) for setting in options.set)
    if "BFC_SPILL" in settings:
        settings["SIM_HOST_FREE_WAITS"] = "0"
    without = scenes_without(settings, options)
    if without:
        settings["RANDOM_WITHOUT"] = ",".join(without)
    return settings


def observe(command, environment):
    """What a run printed, and how it ended unless that is well."""
    with subprocess.Popen(command, env=dict(os.environ, **environment), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace",
                          start_new_session=True) as running:
        try:
            out, error = running.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)  # its importer too
            return f"did not end in {TIMEOUT} s\n"
    if running.returncode == 0:
        return out
    return f"{out}{error}ended with status {running.returncode}\n"


def operations_in(text):
    found = re.search(r"^operations: (\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else 0


def replay(command, environment):
    """The line that does it again in a shell."""
    words = [f"{name}={value}" for name, value in environment.items()]
    for name in ("LD_LIBRARY_PATH", "SIM_LATENCY"):
        if name in os.environ:
            words.append(f"{name}={os.environ[name]}")
    return " ".join(words + command)


class Stress:
    """A library (or a program linked with it) against the native program."""

    def __init__(self, options):
        self.options = options
        self.runs = 0
        self.operations = 0
        self.last = options.first

    def arguments(self, seed, settings):
        if settings["SIM_STEP"] == "0":
            return [str(seed)]
        steps = self.options.steps // random.Random(seed).choice([1, 10, 30])  # the gate changes most often at first
        return [str(seed), str(steps), "small"]

    def preloaded(self, arguments, settings, mode):
        environment = dict(settings, BFC_FREE=mode)
        if self.options.linked:
            return [self.options.linked, *arguments], environment
        environment["LD_PRELOAD"] = os.path.abspath(self.options.library)
        return [self.options.program, *arguments], environment

    def difference(self, seed):
        """A text that tells how a seed goes wrong, or None."""
        settings = settings_of(seed, self.options)
        arguments = self.arguments(seed, settings)
        unhindered = {name: value for name, value in settings.items()
                      if name != "SIM_FAIL" and not name.startswith("BFC_")}
        native_command = [self.options.program, *arguments]
        native = observe(native_command, unhindered)
        if "ended with" in native or "did not end" in native:
            return (f"seed {seed} fails natively:\n{native}"
                    f"replay: {replay(native_command, unhindered)}\n")
        texts = []
        for mode in self.options.modes.split(","):
            command, environment = self.preloaded(arguments, settings, mode)
            found = observe(command, environment)
            self.runs += 1
            self.operations += operations_in(found)
            if found != native:
                texts.append(f"seed {seed} in mode {mode} prints\n{found}natively\n{native}"
                             f"replay: {replay(command, environment)}\n")
        return "".join(texts) or None

    def seeds(self):
        """Seeds until the time is over or all were had; at least one."""
        options = self.options
        end = time.monotonic() + options.seconds
        for seed in itertools.count(options.first):
            if seed > options.first and (time.monotonic() > end
                                         or self.operations >= options.operations
                                         or seed >= options.first + options.count):
                return
            self.last = seed
            yield seed


def parse():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--operations", type=int)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=1 << 40)
    parser.add_argument("--steps", type=int, default=10000)
    parser.add_argument("--modes", default="sync,lazy,ordered")
    parser.add_argument("--unrefused", action="store_true")
    parser.add_argument("--usual", action="store_true")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--seed", type=int)
    parser.add_argument("--without")
    parser.add_argument("--go-on", action="store_true")
    parser.add_argument("--caught", action="store_true")
    parser.add_argument("library")
    parser.add_argument("program")
    parser.add_argument("linked", nargs="?")
    options = parser.parse_args()
    if options.seed is not None:
        options.first, options.count = options.seed, 1
    operations = os.environ.get("BFC_STRESS_OPERATIONS", options.operations)
    seconds = os.environ.get("BFC_STRESS_SECONDS", options.seconds)
    options.operations = int(operations or 1 << 60)
    options.seconds = float(seconds or (1 << 40 if operations else 20))
    return options


def main():
    options = parse()
    with open(options.library, "rb") as file:
        if file.read(4) != b"\x7fELF":
            file.seek(0)
            sys.exit(file.read().decode())  # why there is none
    stress = Stress(options)
    start = time.monotonic()
    differences = 0
    # Programs mostly wait for the device, so a few run at once.
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        seeds = stress.seeds()
        while batch := list(itertools.islice(seeds, AT_ONCE)):
            for difference in filter(None, pool.map(stress.difference, batch)):
                print(difference, flush=True)
                differences += 1
                if options.caught and "natively\n" in difference:
                    sys.exit(0)
                if not options.go_on:
                    sys.exit(1)
    seconds = time.monotonic() - start
    print(f"seeds {options.first} to {stress.last}: {stress.runs} runs, {stress.operations} operations "
          f"in {seconds:.0f} s, {differences or 'no'} difference{'s' * (differences > 1)}")
    sys.exit(1 if options.caught or differences else 0)


if __name__ == "__main__":
    main()
