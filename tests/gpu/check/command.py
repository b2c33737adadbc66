"""The command line of scripts/gpu-check."""

import argparse
import datetime
import os
import platform
import shutil
import signal
import sys
import tempfile

from . import machine, report
from .parts import PARTS
from .results import CannotResume, Results
from .session import Session
from .stand_in import NoStandIn, StandIn
from .toolkit import ROOT

NO_GPU = 77


def parse(description):
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), metavar="PART[,PART]",
                        help="some of: " + ", ".join(PARTS) + " (build is done whenever another part is)")
    parser.add_argument("--resume", action="store_true",
                        help="keep the results in the folder of --out, and run only the parts that did not "
                        "end or ran out of time")
    parser.add_argument("--budget", type=seconds, default=570, metavar="SECONDS",
                        help="most that all of it takes (570)")
    parser.add_argument("--out", default=os.path.join(ROOT, "build", "gpu-check"), metavar="FOLDER",
                        help="folder for results.json, results.md and the conformance programs' output")
    parser.add_argument("--also", metavar="FOLDER", help="a second folder for the same files, written as often")
    parser.add_argument("--work", metavar="FOLDER",
                        help="an empty folder for what is built, kept (else a temporary one)")
    parser.add_argument("--built", metavar="FOLDER",
                        help="check the library and bfcstat of this Meson build folder")
    parser.add_argument("--cases", default="", metavar="NN[,NN]",
                        help="only these conformance cases, by their numbers in tests/conformance/list")
    parser.add_argument("--cuda", default=machine.find_toolkit(), metavar="FOLDER",
                        help="CUDA's toolkit (CUDA_HOME, /usr/local/cuda, or where nvcc lies)")
    parser.add_argument("--dry-run", nargs="?", const=os.path.join(ROOT, "build"), metavar="FOLDER",
                        help="run over the simulated GPU of this Meson build folder (build) instead of a "
                        "real one, with a made-up toolkit in place of --cuda")
    options = parser.parse_args()
    options.parts = chosen_parts(parser, options.only)
    return options


def seconds(text):
    """For argparse, which reports a ValueError as an invalid value."""
    value = float(text)
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is not accepted; a number of seconds above 0 is")
    return value


def chosen_parts(parser, text):
    named = [part for part in text.split(",") if part]
    unknown = [part for part in named if part not in PARTS]
    if unknown or not named:
        parser.error(f"no such part: {', '.join(unknown) or 'none named'}; known are {', '.join(PARTS)}")
    return [part for part in PARTS if part in named]


def describe(found, options):
    kind = {"dry run": "over the simulated GPU"} if options.dry_run else machine.nvidia_smi()
    return dict(found, **kind, date=datetime.date.today().isoformat(), processor=platform.machine(),
                cores=os.cpu_count(), system=platform.release(), python=platform.python_version(),
                toolkit=options.cuda)


def to_do(options, results, description):
    """The parts to run. Every part needs what `build` makes."""
    left = options.parts
    if options.resume:
        left = results.take_over(description, options.parts)
        print("gpu-check: " + (", ".join(left) if left else "nothing") + " left to do", flush=True)
    results.machine.update(description)
    todo = [part for part in PARTS if part in left or (part == "build" and left)]
    results.plan(todo)
    return todo


def check_all(options, found, work, awake, stand_in):
    results = Results(os.path.realpath(options.out), options.also and os.path.realpath(options.also))
    if stand_in:
        options.cuda = stand_in.make_toolkit(os.path.join(work, "toolkit"))
    managed = machine.find_managed(found, stand_in.management() if stand_in else "libnvidia-ml.so.1")
    around, complaints = machine.surroundings(managed)
    todo = to_do(options, results, describe({**found, **around}, options))
    for complaint in complaints:
        results.complain("machine", "device", "surprises", complaint)
        print("gpu-check: " + complaint, flush=True)
    session = Session(options, results, work, awake.pid, stand_in, managed)

    def stop(*_):
        session.runner.stop()
        raise SystemExit("gpu-check: stopped by a signal; the results so far are written")

    for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
        signal.signal(number, stop)
    try:
        session.do(PARTS, todo)
    finally:
        session.runner.stop()
        session.runner.end_orphans()
        results.write()
    print(f"{results.counts()}; {results.folder}/results.md")
    print(*results.all["failures"], sep="\n")
    if results.all["left"]:
        print("gpu-check: " + report.unfinished(results.all))
    return bool(results.all["failures"])


def check_in_folder(options, found, awake, stand_in):
    if options.work:
        os.makedirs(options.work, exist_ok=True)
        return check_all(options, found, os.path.realpath(options.work), awake, stand_in)
    work = tempfile.mkdtemp(prefix="gpu-check-")
    try:
        return check_all(options, found, os.path.realpath(work), awake, stand_in)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def main(description):
    options = parse(description)
    awake = stand_in = None
    try:
        if options.dry_run:
            stand_in = StandIn(options.dry_run)
            stand_in.use()
        else:
            machine.find_driver()
        found, awake = machine.find_gpu()
        if not awake:
            print(f"gpu-check: no GPU here ({found})")
            return NO_GPU
        return check_in_folder(options, found, awake, stand_in)
    except (OSError, CannotResume, NoStandIn) as problem:  # OSError: of --out, --also or --work
        print(f"gpu-check: {problem}", file=sys.stderr)
        return 1
    finally:
        if awake:
            machine.let_sleep(awake)
        if stand_in:
            stand_in.end_use()
