"""The command line of scripts/gpu-check."""

import argparse
import datetime
import fcntl
import os
import platform
import shutil
import signal
import sys
import tempfile
import time

from . import machine, report, tree
from .parts import PARTS, conformance
from .results import ALL_CASES, CannotResume, Results
from .session import Session
from .stand_in import NoStandIn, StandIn
from .toolkit import ROOT

NO_GPU, NOT_FINISHED = 77, 75
STOPPED_BY = signal.SIGTERM, signal.SIGINT, signal.SIGHUP


class InUse(Exception):
    pass


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
    options.cases = chosen_cases(parser, options.cases)
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


def chosen_cases(parser, text):
    """Their numbers; none means all."""
    named = [number for number in text.split(",") if number]
    unknown = [number for number in named if number not in conformance.numbers()]
    if unknown:
        parser.error(f"no such conformance case: {', '.join(unknown)}; known are those of tests/conformance/list, "
                     "such as 01")
    return sorted(set(named))


def describe(found, options):
    kind = {"dry run": "over the simulated GPU"} if options.dry_run else machine.nvidia_smi(found["uuid"])
    found = {name: value for name, value in found.items() if name != "uuid"}
    return dict(found, **kind, processor=platform.machine(), cores=os.cpu_count(), system=platform.release(),
                python=platform.python_version(), toolkit=options.cuda)


def to_do(options, results, description):
    """The parts to run. Every part needs what `build` makes."""
    left = options.parts
    if options.resume:
        left = results.take_over(description, options.parts, cases_named(options.cases))
        print("gpu-check: " + (", ".join(left) if left else "nothing") + " left to do", flush=True)
    elif aside := results.set_aside():
        print(f"gpu-check: the results of an earlier run are now in {aside}", flush=True)
    results.machine.update(description)
    return [part for part in PARTS if part in left or (part == "build" and left)]


def cases_named(cases):
    return ",".join(cases) or ALL_CASES


def this_run(options, found):
    """`card` tells two of one kind apart."""
    checked = f"library of {options.built}, SHA-256 {tree.of_library(options.built)}" if options.built else \
        f"sources {tree.fingerprint()[:12]}"
    return {"begun": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "bfcpreload": f"{tree.version()}, {checked}", "cases": cases_named(options.cases),
            "card": "simulated" if options.dry_run else found["uuid"][:8]}


def check_all(options, found, work, awake, stand_in):
    results = Results(os.path.realpath(options.out), options.also and os.path.realpath(options.also))
    hold(work, *results.folders)
    if stand_in:
        options.cuda = stand_in.make_toolkit(os.path.join(work, "toolkit"))
    managed = machine.find_managed(found, stand_in.management() if stand_in else "libnvidia-ml.so.1")
    around, complaints = machine.surroundings(managed)
    session = Session(options, results, work, awake, stand_in, managed)
    todo = to_do(options, results, describe({**found, **around}, options))
    if todo:
        results.begin(this_run(options, found), todo)
    for complaint in complaints if todo else ():
        results.complain("machine", f"run {len(results.all['runs'])}", "surprises", complaint)
        print("gpu-check: " + complaint, flush=True)
    stop_with(session.runner)
    try:
        session.do(PARTS, todo)
    finally:
        session.runner.stop()
        session.runner.end_orphans()
        results.write()
        if results.problem:
            tell(results)
            raise results.problem
    return tell(results)


def hold(*folders):
    """For this process alone, as long as it lives; what it starts does not hold them. Where the file system has no locks,
    nobody does."""
    for folder in set(folders):
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as problem:
            raise InUse(f"another gpu-check is at work in {folder}: wait for its end, or name other folders with "
                        "--out, --work and --also") from problem
        except OSError:
            pass


def stop_with(runner=None):
    """A signal ends what the runner has begun, and us; a second one is too late."""
    def stop(*_):
        for number in STOPPED_BY:
            signal.signal(number, signal.SIG_IGN)
        if runner:
            runner.stop()
        raise SystemExit("gpu-check: stopped by a signal" + ("; the results so far are written" if runner else ""))

    for number in STOPPED_BY:
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it
            signal.signal(number, stop)


def tell(results):
    """The exit status, after saying what has come out."""
    print(f"{results.counts()}; {results.folder}/results.md")
    print(*results.all["failures"], sep="\n")
    if results.all["left"]:
        print("gpu-check: " + report.unfinished(results.all))
    return 1 if results.all["failures"] else NOT_FINISHED if results.all["left"] else 0


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
    options.until = time.monotonic() + options.budget
    stop_with()
    for stream in sys.stdout, sys.stderr:
        stream.reconfigure(errors="backslashreplace")
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
    except (OSError, CannotResume, InUse, NoStandIn) as problem:  # OSError: of --out, --also or --work
        print(f"gpu-check: {problem}", file=sys.stderr)
        return 1
    finally:
        if awake:
            machine.let_sleep(awake)
        if stand_in:
            stand_in.end_use()
