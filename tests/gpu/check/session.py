"""What the parts of scripts/gpu-check share: how they run and compile programs, and how they note what
came of it."""

import concurrent.futures
import contextlib
import glob
import json
import os
import re
import shlex
import shutil
import tempfile
import time
import traceback

from . import machine
from .results import CRASHED, OUT_OF_TIME
from .running import CUT_OFF, SHORTEST, Clock, OutOfTime, Runner
from .toolkit import ROOT, Toolkit
from .tree import LIBRARY, Stamps, fingerprint

MODES = ("sync", "lazy", "ordered")
ENOUGH = 10  # seconds for any program of ours
LEAST_ROOM = 16 << 20  # bytes of a disk
CACHES = ("CUDA_CACHE_PATH", "CUPY_CACHE_DIR", "NUMBA_CACHE_DIR", "TRITON_CACHE_DIR", "XDG_CACHE_HOME")


class Session:
    """Safe to use from several threads. `stand_in` is None on a real device."""

    def __init__(self, options, results, work, awake, stand_in=None, managed=None):
        """`awake`: the process that keeps the device awake. `managed`: the device for the management library, or None."""
        self.results = results
        self.work = work
        self.stand_in = stand_in
        self.managed = managed
        self.toolkit = Toolkit(options.cuda)
        if not self.toolkit.headers():
            raise SystemExit(f"gpu-check: there is no cuda.h in {self.toolkit.home}/include: --cuda names the folder of "
                             "CUDA's toolkit, with its headers")
        self.stamps = Stamps(work, fingerprint(ROOT, self.toolkit.home))
        self.cases = options.cases
        self.clock = Clock(options.until - time.monotonic())
        self.runner = Runner(self.clock, work, self.variables(), guard=awake)
        self.out_of_time = False  # in the part at hand
        self.trouble = None  # of the machine
        self.begun = set()  # the programs that were begun in this run
        self.resumes = options.resume
        self.flags = {}  # of clients: variables found not to work here, replaced
        self.built = options.built and os.path.realpath(options.built)
        self.library = os.path.join(self.built, LIBRARY) if self.built else \
            os.path.join(work, "libbfcpreload.so")
        self.bfcstat = os.path.join(self.built, "tools/bfcstat") if self.built else \
            os.path.join(work, "bfcstat")
        if re.search(r"[\s:$]", self.library):
            raise SystemExit(f"gpu-check: {self.library} cannot be preloaded: LD_PRELOAD takes no path "
                             "with blanks, colons or dollars; --work names another folder")

    def variables(self):
        """For every program. Caches go to the work folder: the home may not be writable, and may hold
        results of earlier runs."""
        caches = {name: os.path.join(self.work, "cache", name) for name in CACHES}
        for folder in caches.values():
            os.makedirs(folder, exist_ok=True)
        return dict(caches, CUDA_HOME=self.toolkit.home, DEBUGINFOD_URLS="", TMPDIR=self.work)

    # ---- running ----

    def run(self, command, limit=60, **variables):
        """Status, standard output and error; never longer than what is left of the part's time."""
        done = self.runner.run(command, limit, **variables)
        return done.status, done.out, done.error

    def preloaded(self, command, mode="sync", limit=60, **variables):
        """Of `variables`, LD_PRELOAD may name another library than the one that is checked."""
        return self.run(command, limit, **{"LD_PRELOAD": self.library, "BFC_FREE": mode, "BFCSTAT": self.bfcstat, **variables})

    def report_command(self):
        return shlex.quote(self.bfcstat) + " --json"

    def workers(self, most=8):
        """How many programs may use the device at once."""
        shared = self.results.machine.get("compute mode") == 0
        return min(most, os.cpu_count() or 1) if shared else 1

    # ---- noting ----

    def has(self, part, name):
        """Whether this was done before the part was cut off."""
        return self.results.has(part, name)

    def note(self, part, name, value):
        self.results.note(part, name, value)

    def fail(self, part, name, why):
        self.results.note(part, name, "FAILED", "failures", why)

    def surprise(self, part, name, why):
        """Not our library's fault: the machine natively is not as our tests take it to be."""
        self.results.note(part, name, "see surprises", "surprises", why)

    def skip(self, part, name, why):
        self.results.note(part, name, "skipped", "skipped", why)

    def skip_for_time(self, part, name):
        self.out_of_time = True
        self.skip(part, name, OUT_OF_TIME)

    @staticmethod
    def had_no_time(status, limit):
        """Whether a program was cut off so early that this says nothing of it."""
        return status == CUT_OFF and limit < ENOUGH

    # ---- compiling ----

    def compile(self, part, name, sources, *flags):
        """The program's path, or None after noting why there is none."""
        out = os.path.join(self.work, name)
        missing = [flag for flag in flags if flag.startswith("/") and not os.path.exists(flag)]
        if missing:
            self.skip(part, name, "missing: " + ", ".join(missing))
            return None
        status, _, error = self.cc(*sources, "-o", out, *flags)
        if status:
            self.fail(part, name, error)
            return None
        self.note(part, name, "built")
        return out

    def cc(self, *arguments):
        compiler = os.environ.get("CC") or \
            next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), "cc")
        # A dry run is about this program, so it compiles quickly.
        level = ["-O0"] if self.stand_in else ["-O2", "-g"]
        return self.run([*shlex.split(compiler), *level, "-std=gnu17", "-D_GNU_SOURCE",
                         "-D_FILE_OFFSET_BITS=64", "-I" + ROOT,
                         *(flag for folder in self.toolkit.headers() for flag in ("-isystem", folder)),
                         *arguments], 120)

    def driver(self):
        return self.toolkit.driver() or [self.results.machine["libcuda"]]

    # ---- the parts ----

    def do(self, parts, todo):
        """`parts`: a Part for each name, in order. `todo`: the names of those to run. Those that were cut off
        have another turn as long as there is time. Without `build` nothing can be done."""
        self.do_once(parts, todo, self.resumes)
        left = [name for name in todo if not self.results.has_ended(name)]
        rest = self.clock.left_of_all()
        if left and rest > SHORTEST and not self.trouble:
            print("gpu-check: once more, with what time is left: " + ", ".join(left), flush=True)
            self.do_once({name: parts[name]._replace(most=rest) for name in left}, left, True)
        self.results.write()

    def do_once(self, parts, todo, resumes):
        """Until the machine is in trouble: every check would fail, and mean nothing."""
        later = sum(parts[name].weight for name in todo)
        for name in todo:
            later -= parts[name].weight
            if name == "build":
                self.clock.begin_part(1, 0, parts[name].most)
                self.do_part(name, parts[name], resumes=False)
                self.must_be_built()
            else:
                self.clock.begin_part(parts[name].weight, later, parts[name].most)
                self.do_part(name, parts[name], resumes)
            if self.trouble:
                return

    def must_be_built(self):
        if not all(os.path.exists(path) for path in (self.library, self.bfcstat)):
            self.results.write()
            raise SystemExit("gpu-check: the library or bfcstat was not built, so nothing can be checked: " +
                             "\n".join(self.results.all["failures"]))

    def do_part(self, name, part, resumes):
        """`resumes`: what an earlier turn of the part has found is kept."""
        begin = time.monotonic()
        self.out_of_time = crashed = False
        self.results.begin_part(name, resumes)
        try:
            part.run(self)
        except OutOfTime:
            self.out_of_time = True
            (self.fail if name == "build" else self.skip)(name, "the rest of it", OUT_OF_TIME)
        except Exception:  # pylint: disable=broad-except
            crashed = True
            self.fail(name, CRASHED, traceback.format_exc())
        self.runner.end_orphans()
        self.trouble = self.find_trouble()
        if self.trouble:
            self.results.spoil(name, self.trouble)
        took = time.monotonic() - begin
        self.results.end_part(name, took, whole=not (self.out_of_time or crashed or self.trouble))
        print(f"{name}: {took:.1f} s" + (f"; {self.trouble}, so the rest is left out" if self.trouble else ""), flush=True)

    def find_trouble(self):
        """What the machine has that no check can stand, or None."""
        for folder in self.work, tempfile.gettempdir():
            if shutil.disk_usage(folder).free < LEAST_ROOM:
                return f"{folder} is full"
        why = machine.why_unusable()
        return why and f"the device can no longer be used ({why})"


def sources(*patterns):
    """Files of the project."""
    return [path for pattern in patterns for path in sorted(glob.glob(os.path.join(ROOT, pattern)))]


def at_once(calls, most=None):
    """Calls several functions in threads; their results in order."""
    with concurrent.futures.ThreadPoolExecutor(most or os.cpu_count() or 1) as pool:
        return [future.result() for future in [pool.submit(*call) for call in calls]]


def pooled_of(text):
    """How many allocations were pooled by bfcstat's JSON in a program's standard error, or None."""
    begin = ("\n" + text).rfind("\n{")  # of the last report, if there are several
    with contextlib.suppress(ValueError, KeyError):
        return json.JSONDecoder().raw_decode(text[begin:])[0]["coverage"]["pooled_allocations"]
    return None
