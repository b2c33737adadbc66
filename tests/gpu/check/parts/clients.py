"""Real clients: natively with their own pool, natively without it, and preloaded in each mode."""

import collections
import glob
import json
import os
import re
import sys
import time

from .. import machine
from ..nvml import Peak
from ..running import CUT_OFF
from ..session import MODES, sources
from ..toolkit import ROOT, rpath

# `raw` makes it a client of cudaMalloc itself; None where it is one anyway. `always` makes its runs
# deterministic, also with its own pool, which `own` turns on.
# JAX 0.12 maps memory for itself unless told not to. A JAX that does not know a flag ends: the first
# of these that it knows is used.
DETERMINISTIC = "--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0"
JAX_FLAGS = (DETERMINISTIC + " --xla_gpu_experimental_vmm_disabled=true", DETERMINISTIC)
Client = collections.namedtuple("Client", "raw always own", defaults=({}, {}))
CLIENTS = {
    "pytorch": Client({"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}, {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}),
    "jax": Client({"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"},
                  {"XLA_FLAGS": JAX_FLAGS[0], "TF_CPP_MIN_LOG_LEVEL": "2"}),
    "cupy": Client(None, {}),
    "numba": Client(None, {}),
    "cublas": Client(None, {}),
    "nccl": Client(None, {"NCCL_SOCKET_IFNAME": "lo"}),
}
FRAMEWORKS = {"pytorch": "torch", "jax": "jax", "cupy": "cupy", "numba": "numba",
              "pycuda": "pycuda"}
KEPT = ("seconds", "digest", "peak", "driver_calls", "host_waits", "natively", "result", "coverage", "summary")
COMPILING = 120  # seconds, at most
HEADERS = {"cublas": "cublas_v2.h", "nccl": "nccl.h"}


def run(session):
    for number, (name, client) in enumerate(CLIENTS.items()):
        command = framework_command(session, name) if name in FRAMEWORKS else compiled_command(session, name)
        if command:
            # One that hangs must not take the time of those after it.
            limit = min(90, 2 * session.clock.left() / (len(CLIENTS) - number))
            compare(Attempt(session, "clients", name, command, limit), client)


def framework_command(session, name):
    return script_command(session, "clients", name, name)


def script_command(session, part, name, framework):
    if session.results.machine.get(framework) == "missing":
        session.skip(part, name, f"missing: no module {FRAMEWORKS[framework]}")
        return None
    return [sys.executable, os.path.join(ROOT, f"tests/gpu/client_{name}.py")]


def compiled_command(session, name, part="clients"):
    nvcc = session.toolkit.nvcc()
    if not nvcc:
        return session.skip(part, name, "missing: no nvcc")
    wheels = machine.nvidia_packages()
    library = find_library(session, name, wheels)
    if not library:
        return session.skip(part, name, f"missing: no lib{name}.so")
    # The toolkit's own headers come first: a package may bring those of another release.
    headers = [flag for wheel in wheels if os.path.exists(f"{wheel}/include/{HEADERS[name]}")
               for flag in ("-Xcompiler", "-idirafter," + wheel + "/include")]
    return compiles(session, part, name, nvcc, *headers, "-Xlinker", library,
                    *rpath(os.path.dirname(library)))


def compiles(session, part, name, nvcc, *flags, source=None):
    """The command of a program of nvcc's, or None after noting why there is none. A compiler that hangs leaves half of
    the part's time to others."""
    program, limit = os.path.join(session.work, "client_" + name), min(COMPILING, session.clock.left() / 2)
    status, _, error = session.run([nvcc, "-O2", *sources(f"tests/gpu/client_{source or name}.cu"), "-o", program, *flags], limit)
    if status == CUT_OFF and limit < COMPILING:
        return session.skip_for_time(part, name)
    return session.skip(part, name, "does not build: " + error) if status else [program]


def find_library(session, name, wheels):
    """Of the toolkit or the system, else of NVIDIA's Python packages, whose libraries have no plain .so."""
    places = [session.toolkit.libraries(), "/usr/lib/*-linux-gnu", "/usr/lib64",
              *(wheel + "/lib" for wheel in wheels)]
    return next((path for place in places for path in sorted(glob.glob(f"{place}/lib{name}.so*"))), None)


class Attempt:
    """Runs of one client, and their notes."""

    def __init__(self, session, part, name, command, limit):
        self.session, self.part, self.name, self.command, self.limit = session, part, name, command, limit
        self.late = False  # a run of it is left for want of time

    def run(self, how, mode=None, **variables):
        """The client's figures, or None when it failed or was skipped. What was run before is not run again."""
        name = f"{self.name}, {how}"
        if self.session.has(self.part, name):
            earlier = self.session.results.all["parts"][self.part][name]
            return earlier if isinstance(earlier, dict) else None
        with Peak(self.session.managed) as peak:
            if mode:
                status, out, error = self.session.preloaded(self.command, mode, self.limit, BFC_SUMMARY="1",
                                                            **variables)
            else:
                status, out, error = self.session.run(self.command, self.limit, **variables)
        line = last_json(out)
        if self.is_late_natively(variables) if mode and status == CUT_OFF else self.session.had_no_time(status, self.limit):
            self.late = True
            return self.session.skip_for_time(self.part, name)
        if status or "digest" not in line:
            return self.complain(how, mode, status, line.get("skipped", ""), error)
        line["peak"] = peak.bytes
        if mode:
            line.update(counts(error), summary=[text.strip() for text in
                                                error.partition("bfcpreload: summary")[2].splitlines()[1:8]])
        line = {key: line[key] for key in KEPT if line.get(key) is not None}
        self.session.note(self.part, name, line)
        return line

    def is_late_natively(self, variables):
        """Then it is the machine that has too much to do, and nothing hangs."""
        return self.session.run(self.command, self.limit, **variables)[0] == CUT_OFF

    def complain_of(self, way, kind, why):
        """Its figures stay."""
        self.session.results.complain(self.part, f"{self.name}, {way}", kind, why)

    def complain(self, how, mode, status, skipped, error):
        why = f"exit status {status}: {error}"
        name = f"{self.name}, {how}"
        if mode:
            return self.session.fail(self.part, name, why)
        return self.session.skip(self.part, name, skipped if status == 77 else
                                 "does not work natively: " + why)


def counts(error):
    """The driver calls made and the host waits, as the summaries of a preloaded program and of its children say."""
    found = re.findall(r"driver calls (\d+) instead of (\d+); host waits (\d+) instead of (\d+)", error)
    if not found:
        return {}
    calls, calls_natively, waits, waits_natively = (sum(map(int, column)) for column in zip(*found))
    return {"driver_calls": calls, "host_waits": waits, "natively": [calls_natively, waits_natively]}


def last_json(text):
    try:
        return json.loads(text.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return {}


def compare(attempt, client):
    """Natively and in each mode: the same digest, and something pooled."""
    always = attempt.session.flags.get(attempt.name, client.always)
    if client.raw and not attempt.run("native, its own pool", **always, **client.own):
        return  # it does not work here, whatever the allocator
    variables = {**always, **(client.raw or {})}
    native = attempt.run("native", **variables)
    for mode in MODES if native else []:
        begin = time.monotonic()
        line = attempt.run("preloaded, " + mode, mode, **variables)
        if not line and time.monotonic() - begin >= attempt.limit:
            break  # it would hang in the other modes too
        if line:
            judge_result(attempt, mode, line, native, variables)
            judge_share(attempt, mode, line)


def judge_result(attempt, way, line, native, variables):
    if line["digest"] == native["digest"]:
        line.setdefault("result", "as natively")
    else:
        line["result"] = "differs"
        again = attempt.run("native, again", **variables)
        if again and again["digest"] != native["digest"]:  # which proves nothing
            attempt.complain_of(way, "surprises", "not deterministic: natively it differs too")
        else:
            attempt.complain_of(way, "failures", "computed something else than natively")


def judge_share(attempt, way, line):
    if (line.get("coverage") or {}).get("pooled") == 0:
        attempt.complain_of(way, "failures", f"nothing was pooled: {line['coverage']}")
