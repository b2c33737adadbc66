#!/usr/bin/env python3
"""Refuses driver calls that the library makes of its own, one at a time, in given programs.

usage: refuse.py LIBRARY MODE PROGRAM... [--more PROGRAM...]

Each program runs natively and preloaded first, on the stand-in GPU, which counts its calls: a call
made more often preloaded is the library's (or forwarded by it). Then it runs once for each of
these, with that one call answering CUDA_ERROR_OPERATING_SYSTEM. The program must end by itself, no
pool may be found broken (LIBRARY should be the one that checks), and the first line that it prints
differently must show that code: errors come through as they are, or do no harm.

Of a function's calls in a program the first five are refused, the last, and one that is drawn from a
seed: BFC_REFUSALS in the environment, or else the commit, so that each commit looks elsewhere and
finds the same again; in sources without git the word none. BFC_REFUSALS=all refuses every call, BFC_REFUSALS=everywhere also in the
programs after --more.
"""

import concurrent.futures
import itertools
import json
import os
import random
import shlex
import subprocess
import sys
import tempfile

CODE = 304
SHOWN = str(CODE)
SECONDS = 30
EACH = 5  # of a function's calls: later ones are mostly like them
ALL = "all"
EVERYWHERE = "everywhere"


class Run:
    """One run of a program: what it printed, how it ended, which calls it made."""

    def __init__(self, program, library=None, mode="sync", refused=None):
        self.program = program
        with tempfile.NamedTemporaryFile("r", encoding="utf-8") as stats:
            environment = dict(os.environ, SIM_STATS=stats.name, BFC_FREE=mode)
            if library:
                environment["LD_PRELOAD"] = library
            if refused:
                environment["SIM_FAIL"] = f"{refused[0]}@{refused[1]}:{CODE}"
            try:
                done = subprocess.run([program], env=environment, capture_output=True, text=True,
                                      timeout=SECONDS, check=False, errors="replace")
                self.lines, self.errors = done.stdout.splitlines(), done.stderr
                self.status = done.returncode
            except subprocess.TimeoutExpired:
                self.lines, self.errors, self.status = [], "", "timeout"
            written = stats.read().splitlines()
        self.calls = json.loads(written[-1])["calls"] if written else {}


def first_difference(lines, others):
    """The first line of `others` that is not that of `lines`; None when all are the same."""
    for line, other in itertools.zip_longest(lines, others):
        if line != other:
            return other if other is not None else "nothing more"
    return None


# Programs in which a refusal may be seen in other ways, and why.
EXCUSED = {
    "case14": "how much is free cannot be told without the calls that find the pool",
    "case15": "the same",
    "case29": "a hit that makes no driver call may succeed before the fatal code is known",
}


def may_differ(program):
    return os.path.basename(program).split("-")[0] in EXCUSED


def fault_of(usual, run):
    """What is wrong with a run, or None."""
    if run.status == "timeout":
        return f"did not end in {SECONDS} s"
    if run.status < 0:
        return f"was killed by signal {-run.status}: {run.errors.strip()}"
    if "pool check" in run.errors:
        return run.errors.strip()
    difference = first_difference(usual.lines, run.lines)
    if difference is not None and SHOWN not in difference and not may_differ(run.program):
        return f"printed: {difference}"
    if difference is None and run.status != usual.status:
        return f"ended with status {run.status}: {run.errors.strip()}"
    return None


def seed_of_commit():
    """The commit's name, or a word where there is none."""
    folder = os.path.dirname(os.path.abspath(__file__))
    try:
        done = subprocess.run(["git", "-C", folder, "rev-parse", "--short=12", "HEAD"],
                              capture_output=True, text=True, check=False)
    except OSError:  # no git
        return "none"
    return done.stdout.strip() or "none"


def numbers_of(count, chance):
    """Which of a function's calls are refused."""
    if chance is None or count <= EACH + 2:
        return range(1, count + 1)
    return [*range(1, EACH + 1), chance.randrange(EACH + 1, count), count]


def refusals_of(native, usual, seed):
    """(name, n) of calls that are made more often than natively."""
    chance = None if seed in (ALL, EVERYWHERE) else random.Random(f"{seed} {os.path.basename(usual.program)}")
    for name, count in sorted(usual.calls.items()):
        if count > native.calls.get(name, 0):
            for number in numbers_of(count, chance):
                yield name, number


def replay(program, library, mode, refused):
    """The line that does it again in a shell."""
    words = [f"{name}={os.environ[name]}" for name in sorted(os.environ)
             if name.startswith("SIM_") or name == "LD_LIBRARY_PATH"]
    words += [f"SIM_FAIL={refused[0]}@{refused[1]}:{CODE}", f"BFC_FREE={mode}",
              f"LD_PRELOAD={os.path.abspath(library)}", os.path.abspath(program)]
    return shlex.join(words)


def check(program, library, mode, seed):
    """Refuses each in turn; returns how many there were, and the faults."""
    native, usual = Run(program), Run(program, library, mode)
    if native.status == 77:
        return 0, []
    if usual.status != 0:
        return 0, [f"{program} {mode}: fails without refusals: {usual.lines[-1:]} {usual.errors}"]
    count, faults = 0, []
    for refused in refusals_of(native, usual, seed):
        count += 1
        fault = fault_of(usual, Run(program, library, mode, refused))
        if fault:
            faults.append(f"{os.path.basename(program)} {mode}, {refused[0]} number {refused[1]} "
                          f"refused: {fault}\nreplay: {replay(program, library, mode, refused)}")
    return count, faults


def main():
    library, mode, *programs = sys.argv[1:]
    seed = os.environ.get("BFC_REFUSALS") or seed_of_commit()
    if "--more" in programs:
        more = programs.index("--more")
        programs = programs[:more] + (programs[more + 1:] if seed == EVERYWHERE else [])
    total, faults = 0, []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for count, found in pool.map(lambda program: check(program, library, mode, seed),
                                     programs):
            total += count
            faults += found
            for fault in found:
                print(fault, flush=True)
    print(f"{total} refusals in {len(programs)} programs, {len(faults)} faults; "
          f"the same again: BFC_REFUSALS={seed}")
    sys.exit(1 if faults or not total else 0)


if __name__ == "__main__":
    main()
