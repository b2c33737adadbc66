#!/usr/bin/env python3
"""Compares random programs preloaded with the same programs natively.

usage: run.py [--seconds N] [--operations N] [--first SEED] [--count N] [--steps N] [--modes MODES]
              [--unrefused] [--spilled] [--pages] [--without SCENES] [--go-on] [--caught] LIBRARY PROGRAM [LINKED]

For each seed PROGRAM runs natively once and with LIBRARY preloaded in each mode (sync,lazy,ordered)
on the stand-in GPU, with a set-up (devices and their memory, how late work is done, refusals of
driver calls, pending budget, growth) that is drawn from the seed as well. What it prints must be the
same. Most seeds run on a device that goes by driver calls (SIM_STEP), which makes a million
operations in seconds. LINKED is used in place of preloading, for sanitizers: the same program linked
with the library.

It ends after so many seconds, operations (allocations, frees and pieces of work, of preloaded runs)
or seeds. BFC_STRESS_SECONDS and BFC_STRESS_OPERATIONS in the environment override the options, and
make it long: BFC_STRESS_OPERATIONS=100000000 is a night's work done in minutes. --without leaves
scenes out (random_program.c has their names), to look behind a known defect, --unrefused the
refusals; with --spilled most memory or all is host memory (BFC_SPILL), whose free does not wait
for anything, with --pages pages are behind the pools, on one device; --go-on does not stop at the first difference. With --caught, LIBRARY lacks a safeguard, and a difference must be found.
"""

import argparse
import concurrent.futures
import itertools
import os
import random
import re
import subprocess
import sys
import time

TIMEOUT = 60
AT_ONCE = 3


def settings_of(seed, options):
    """The environment in which a seed runs, apart from the mode; and whether its blocks are small."""
    chance = random.Random(seed)
    step = chance.choice([0, 4, 20, 60, 300, 2000])
    settings = {
        "SIM_SEED": str(seed),
        "SIM_STEP": str(step),
        "SIM_DELAY_US": chance.choice(["50", "200", "1000"]),
        "SIM_DEVICES": chance.choice(["1", "2", "2"]),
        "SIM_PEERS": chance.choice(["0", "1"]),
        "SIM_MEMORY": chance.choice(["64M", "2G"]) if step else "2G",
        "BFC_PENDING_BUDGET": chance.choice(["0", "1M", "16M", "256M"]),
        "BFC_GROWTH": chance.choice(["double", "double", "fixed", "exact"]),
    }
    if options.pages:
        settings.update(BFC_BACKING="pages", SIM_DEVICES="1")
    rate = chance.choice([0, 0, 50, 500, 5000])
    if rate and not options.unrefused:
        settings["SIM_FAIL"] = f"random:{seed}:{rate}"
        settings["RANDOM_REFUSED"] = "1"
    without = [options.without] if options.without else []
    # Before it spills, an allocation waits as before an out of memory; and what is a free's barrier
    # where the device refuses 2 MiB is a free of host memory, which here does not wait
    # (docs/internals/safety.md, limits and captures).
    if options.spilled:
        without += ["hold", "barrier"]
    if without:
        settings["RANDOM_WITHOUT"] = ",".join(without)
    return settings, step != 0


def observe(command, environment):
    """What a run printed, and how it ended unless that is well."""
    try:
        done = subprocess.run(command, env=dict(os.environ, **environment), capture_output=True,
                              text=True, timeout=TIMEOUT, check=False, errors="replace")
    except subprocess.TimeoutExpired:
        return f"did not end in {TIMEOUT} s\n"
    if done.returncode == 0:
        return done.stdout
    return f"{done.stdout}{done.stderr}ended with status {done.returncode}\n"


def operations_in(text):
    found = re.search(r"^operations: (\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else 0


def replay(command, environment):
    """The line that does it again in a shell."""
    words = [f"{name}={value}" for name, value in environment.items()]
    for name in ("LD_LIBRARY_PATH", "SIM_LATENCY", "BFC_PLAN"):
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

    def arguments(self, seed, small):
        return [str(seed), str(self.options.steps), "small"] if small else [str(seed)]

    def preloaded(self, arguments, settings, mode):
        environment = dict(settings, BFC_FREE=mode)
        if self.options.spilled:
            environment |= {"BFC_SPILL": "8G", "BFC_LIMIT": ("512", "8M")[int(settings["SIM_SEED"]) % 2],
                            "SIM_HOST_FREE_WAITS": "0"}
        if self.options.linked:
            return [self.options.linked, *arguments], environment
        environment["LD_PRELOAD"] = os.path.abspath(self.options.library)
        return [self.options.program, *arguments], environment

    def difference(self, seed):
        """A text that tells how a seed goes wrong, or None."""
        settings, small = settings_of(seed, self.options)
        arguments = self.arguments(seed, small)
        unhindered = {name: value for name, value in settings.items() if name != "SIM_FAIL"}
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
    parser.add_argument("--spilled", action="store_true")
    parser.add_argument("--pages", action="store_true")
    parser.add_argument("--without")
    parser.add_argument("--go-on", action="store_true")
    parser.add_argument("--caught", action="store_true")
    parser.add_argument("library")
    parser.add_argument("program")
    parser.add_argument("linked", nargs="?")
    options = parser.parse_args()
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
