#!/usr/bin/env python3
"""A real CUDA runtime over the stand-in driver: what it asks for and what it is given, with us and
without. Exactly the functions that we hook are replaced; every other pointer, and each result, status
word and the order of all of it, stay the driver's. Exit status 77 without such a runtime.

usage: test_lookups.py LIBRARY RECORDER LIBCUDA EXPORTS LEAST PROGRAM [ARGUMENT...]
LEAST: the look-ups that the runtime makes at least. An argument like libcudart.so.12 is looked for
in the folders of $RUNTIMES."""

import glob
import os
import re
import subprocess
import sys
import tempfile

LINE = re.compile(r'^(dlsym "[^"]*"|(?:old|new) "[^"]*" .*) -> (.*)$')


def find(argument):
    """The library that the argument names, or the argument itself."""
    if not argument.startswith("libcudart"):
        return argument
    for folder in os.environ.get("RUNTIMES", "").split(":"):
        found = sorted(glob.glob(os.path.join(folder, argument)))
        if folder and found:
            return found[0]
    print(f"no {argument} in {os.environ.get('RUNTIMES', '')}: scripts/fetch-runtimes fetches it")
    sys.exit(77)


def run(command, preload, folder, name):
    """What the program printed, and its look-ups as (what was asked, what came back)."""
    record = os.path.join(folder, name)
    env = dict(os.environ, LD_PRELOAD=" ".join(preload), RECORD_TO=record, BFC_GATE="1")
    env["LD_LIBRARY_PATH"] = ":".join([folder] + os.environ.get("RUNTIMES", "").split(":"))
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    lines = []
    if os.path.exists(record):
        with open(record, encoding="utf-8") as file:
            lines = [LINE.match(line).groups() for line in file.read().splitlines()]
    return (done.returncode, done.stdout, done.stderr), lines


def wrong_pointers(native, preloaded, hooked):
    """Each look-up that did not come out as it should, and the functions that were replaced."""
    wrong, replaced = [], set()
    for (asked, before), (_, after) in zip(native, preloaded):
        symbol = before.split(":")[-1]
        if before.startswith("libcuda.so.1:") and symbol in hooked:
            replaced.add(symbol)
            if after != f"libbfcpreload.so:{symbol}":
                wrong.append(f"{asked}: {after}, not our {symbol}")
        elif after != before:
            wrong.append(f"{asked}: {after}, not {before}")
    return wrong, replaced


def main():
    library, recorder, libcuda, exports, least = sys.argv[1:6]
    library, recorder = os.path.realpath(library), os.path.realpath(recorder)
    with open(exports, encoding="utf-8") as file:
        hooked = {line.split("@")[0] for line in file.read().split() if line.startswith("cu")}
    command = [find(argument) for argument in sys.argv[6:]]
    command[0] = os.path.realpath(command[0])
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.realpath(libcuda), os.path.join(folder, "libcuda.so.1"))
        output, native = run(command, [recorder], folder, "native")
        output_with, preloaded = run(command, [recorder, library], folder, "preloaded")
    failures = []
    if output != output_with:
        failures.append(f"output: {output_with}, without us {output}")
    if len(native) < int(least):
        failures.append(f"{len(native)} look-ups, at least {least} expected; {output}")
    if [asked for asked, _ in native] != [asked for asked, _ in preloaded]:
        failures.append("not the same look-ups, results and status words in the same order")
    wrong, replaced = wrong_pointers(native, preloaded, hooked)
    failures += wrong
    if not {"cuMemAlloc_v2", "cuMemFree_v2", "cuMemGetInfo_v2"} <= replaced:
        failures.append("the runtime was not given our hooks")
    print(f"{len(native)} look-ups, replaced: {' '.join(sorted(replaced))}")
    print("\n".join(failures))
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
