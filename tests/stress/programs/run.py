#!/usr/bin/env python3
"""Compares random programs preloaded with the same programs natively.

usage: run.py [--seconds N] [--first SEED] [--count N] [--modes MODES] [--caught]
              LIBRARY PROGRAM [LINKED]

For each seed PROGRAM runs natively once and with LIBRARY preloaded in each mode (sync,lazy,ordered)
on the stand-in GPU, with a set-up (device delays, dirty budget, growth) that is drawn from the seed
as well. What it prints must be the same. LINKED is used in place of preloading, for sanitizers: the
same program linked with the library. BFC_STRESS_SECONDS in the environment overrides --seconds: an
hour is BFC_STRESS_SECONDS=3600. With --caught, LIBRARY lacks a safeguard, and a difference must be
found.
"""

import argparse
import concurrent.futures
import itertools
import os
import random
import subprocess
import sys
import time

TIMEOUT = 120
AT_ONCE = 3


def settings_of(seed):
    """The environment in which a seed runs, apart from the mode."""
    chance = random.Random(seed)
    return {
        "SIM_SEED": str(seed),
        "SIM_DEVICES": "2",
        "SIM_MEMORY": "2G",
        "SIM_DELAY_US": chance.choice(["50", "200", "1000"]),
        "BFC_DIRTY_BUDGET": chance.choice(["0", "1M", "16M", "256M"]),
        "BFC_GROWTH": chance.choice(["double", "double", "fixed", "exact"]),
    }


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

    def preloaded(self, seed, mode):
        environment = dict(settings_of(seed), BFC_FREE=mode)
        if self.options.linked:
            return [self.options.linked, str(seed)], environment
        environment["LD_PRELOAD"] = os.path.abspath(self.options.library)
        return [self.options.program, str(seed)], environment

    def difference(self, seed):
        """A text that tells how a seed goes wrong, or None."""
        settings = settings_of(seed)
        native_command = [self.options.program, str(seed)]
        native = observe(native_command, settings)
        if "ended with" in native or "did not end" in native:
            return (f"seed {seed} fails natively:\n{native}"
                    f"replay: {replay(native_command, settings)}")
        for mode in self.options.modes.split(","):
            command, environment = self.preloaded(seed, mode)
            found = observe(command, environment)
            self.runs += 1
            if found != native:
                return (f"seed {seed} in mode {mode} prints\n{found}natively\n{native}"
                        f"replay: {replay(command, environment)}")
        return None


def seeds_of(options):
    """Seeds until the time is over or all were had; at least one."""
    end = time.monotonic() + float(os.environ.get("BFC_STRESS_SECONDS", options.seconds))
    for seed in itertools.count(options.first):
        if seed > options.first and (time.monotonic() > end
                                     or seed >= options.first + options.count):
            return
        yield seed


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=1 << 40)
    parser.add_argument("--modes", default="sync,lazy,ordered")
    parser.add_argument("--caught", action="store_true")
    parser.add_argument("library")
    parser.add_argument("program")
    parser.add_argument("linked", nargs="?")
    options = parser.parse_args()
    stress = Stress(options)
    # Programs mostly wait for the device, so a few run at once.
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        seeds = seeds_of(options)
        while batch := list(itertools.islice(seeds, AT_ONCE)):
            for difference in filter(None, pool.map(stress.difference, batch)):
                print(difference)
                sys.exit(0 if options.caught and "natively\n" in difference else 1)
    print(f"{stress.runs} runs, no difference")
    sys.exit(1 if options.caught else 0)


if __name__ == "__main__":
    main()
