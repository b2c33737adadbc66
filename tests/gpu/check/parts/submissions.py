"""The gate (docs/internals/safety.md): whether the hooks saw every call that gave the device work, as CUPTI tells it;
whether clients compute the same with it; and what it adds to a launch."""

import glob
import json
import os
import statistics
import traceback

from .. import machine
from ..running import OutOfTime
from ..session import at_once, sources
from .build import build_observed
from .clients import CLIENTS, Attempt, compiled_command, compiles, script_command
from .measure import KERNELS
from .programs import PROGRAMS, architecture

GATE = {"BFC_GATE": "1"}
MODES = ("lazy", "ordered")
FEW = {"CLIENT_ROUNDS": "60"}  # for Python's clients, since CUPTI makes each call slower
LIMIT, LIMIT_WATCHED = 60, 40  # seconds
LAUNCH_RUNS = 5
LAUNCHING = {1: "a launch, ns", 2: "a launch beside another thread's, ns", 8: "a launch beside seven threads', ns"}
TORCH = {**CLIENTS["pytorch"].raw, **CLIENTS["pytorch"].always}
# Its variables, and what gives its command; those first that take longest.
CLIENTS_HERE = {
    "jax": ({**CLIENTS["jax"].raw, **CLIENTS["jax"].always}, lambda session: script(session, "jax", "jax")),
    "thrust": (PROGRAMS["thrust"].always, lambda session: compiled(session, "thrust", "-std=c++17",
                                                                    "-arch=sm_" + architecture(session))),
    "pytorch": (TORCH, lambda session: script(session, "pytorch", "pytorch")),
    "cudnn": (TORCH, lambda session: script(session, "cudnn", "pytorch")),
    "cublas": ({}, lambda session: compiled_command(session, "cublas", "submissions")),
    "nccl": (CLIENTS["nccl"].always, lambda session: compiled_command(session, "nccl", "submissions")),
    "cufft": ({}, lambda session: script(session, "cufft", "cupy")),
    "cupy": ({}, lambda session: script(session, "cupy", "cupy")),
    "numba": ({}, lambda session: script(session, "numba", "numba")),
    "every kind": ({}, lambda session: every_kind(session, "submissions")),
    "every kind, streams per thread": ({}, lambda session: every_kind(
        session, "submissions_per_thread", "-DCUDA_API_PER_THREAD_DEFAULT_STREAM")),
}


def run(session):
    launches(session)
    observed = build_observed(session)
    cupti = find_cupti(session)
    if not cupti:
        session.skip("submissions", "CUPTI", "missing: no libcupti.so")
    at_once([(client, session, name, observed, cupti) for name in CLIENTS_HERE],
            session.workers(len(CLIENTS_HERE)))


def find_cupti(session):
    places = [session.toolkit.home + "/extras/CUPTI/lib64", session.toolkit.libraries(),
              *(wheel + "/lib" for wheel in machine.nvidia_packages())]
    return next((path for place in places for path in sorted(glob.glob(place + "/libcupti.so*"))), None)


# ---- the clients ----

def script(session, name, framework):
    return script_command(session, "submissions", name, framework)


def compiled(session, name, *flags, **source):
    nvcc = session.toolkit.nvcc()
    return compiles(session, "submissions", name, nvcc, *flags, **source) if nvcc else \
        session.skip("submissions", name, "missing: no nvcc")


def every_kind(session, name, *flags):
    linked = [flag for path in session.driver() for flag in ("-Xlinker", path)]
    command = compiled(session, name, *flags, *linked, source="submissions")
    return command and [*command, KERNELS]


def client(session, name, observed, cupti):
    """Whatever becomes of one, the others' results stay."""
    if session.has("submissions", name + ": all"):
        return
    try:
        variables, command_of = CLIENTS_HERE[name]
        command = command_of(session)
        if command:
            ways(session, name, command, {**variables, **session.flags.get(name, {})}, observed, cupti)
        session.note("submissions", name + ": all", "done")
    except OutOfTime:
        session.skip_for_time("submissions", name)
    except Exception:  # pylint: disable=broad-except
        session.fail("submissions", name, traceback.format_exc())


def ways(session, name, command, variables, observed, cupti):
    """Watched, where there is CUPTI; natively; and in each mode, without CUPTI, which makes the driver slower and asks
    it for tables that turn the gate off."""
    if observed and cupti:
        watched(session, name, command, variables, observed, cupti)
    attempt = Attempt(session, "submissions", name, command, LIMIT)
    native = attempt.run("native", **variables)
    for mode in MODES if native else ():
        out = os.path.join(session.work, f"{name} {mode}.json".replace(" ", "-"))
        preload = {"LD_PRELOAD": observed} if observed else {}
        line = attempt.run("preloaded, " + mode, mode, **variables, **GATE, **preload, BFC_LOG="info", OBSERVER_OUT=out)
        if line:
            compare(attempt, mode, line, native, variables)
            note_gate(session, f"{name}, gate in {mode}", out)


def compare(attempt, mode, line, native, variables):
    """Where kernels ran."""
    if not (attempt.session.stand_in and "SIM_KERNELS" in variables) and line["digest"] != native["digest"]:
        again = attempt.run("native, again", **variables)
        same = again and again["digest"] == native["digest"]
        attempt.complain_of(mode, "failures" if same or not again else "surprises",
                            "computed something else than natively" + ("" if same else ", which differs from itself"))


def reports(path):
    """Of each process that used the driver."""
    try:
        with open(path, encoding="utf-8") as file:
            found = [json.loads(line) for line in file]
        os.remove(path)
        return found
    except (OSError, ValueError):
        return []


def note_gate(session, name, path):
    """Whether the gate was on to the end; and if not, all that turned it off."""
    found = reports(path)
    if not found:
        return
    session.note("submissions", name, [{key: report[key] for key in ("off", "may hide", "checks")} for report in found][0])
    for report in found:
        if not report["counted"]:
            session.fail("submissions", name, "nothing was counted")
        elif "check found" in report["off"]:
            session.fail("submissions", name, report["off"])
        elif report["off"]:
            session.results.complain("submissions", name, "surprises", "off: " + "; ".join(report["may hide"] or [report["off"]]))


def watched(session, name, command, variables, observed, cupti):
    """What the hooks saw, and what ran."""
    out = os.path.join(session.work, f"{name} watched.json".replace(" ", "-"))
    status, _, error = session.preloaded(command, "lazy", LIMIT_WATCHED, **variables, **GATE, **FEW, LD_PRELOAD=observed,
                                         CUDA_INJECTION64_PATH=observed, OBSERVER_OUT=out, OBSERVER_CUPTI=cupti)
    title = name + ", watched"
    found = [report for report in reports(out) if report.get("problem") != "CUPTI was not asked"]
    if not found:
        return session.surprise("submissions", title, f"exit status {status}, no report: {error}")
    total = summed(found)
    session.note("submissions", title, total)
    for report in found:
        judge_watched(session, title, report)
    if status:
        session.results.complain("submissions", title, "surprises", f"exit status {status}: {error.strip()[-500:]}")
    return None


def summed(found):
    total = {}
    for report in found:
        for key, value in report.items():
            if isinstance(value, dict):
                into = total.setdefault(key, {})
                for function, count in value.items():
                    into[function] = into.get(function, 0) + count
            elif key in ("kernels", "copies", "sets", "others", "of unknown calls"):
                total[key] = total.get(key, 0) + value
            elif key == "streams":
                total[key] = max(total.get(key, 0), value)
    return {key: value for key, value in total.items() if value != {}}


def judge_watched(session, title, report):
    def complain(kind, why):
        session.results.complain("submissions", title, kind, why)

    if "problem" in report:
        return complain("surprises", report["problem"])
    if not report["counted"]:
        return complain("failures", "nothing was counted")
    if not report["kernels"] + report["copies"] + report["sets"]:
        complain("surprises", "nothing ran that CUPTI told of")
    for key, words in ("ran, unseen", "ran and was seen by no hook"), ("past hooks", "was called past its hook"):
        for function, count in report[key].items():
            complain("failures", f"{function} {words}, {count} times")
    if report["of unknown calls"]:
        complain("surprises", f"{report['of unknown calls']} records are of calls that CUPTI did not tell of")
    return None


# ---- what a launch costs ----

def launches(session):
    """Each way several times in turn, so that what the device is doing is the same for all; medians."""
    program = session.compile("submissions", "launch_cost", sources("tests/gpu/launch_cost.c"), *session.driver(),
                              "-lpthread", "-ldl")
    for threads, name in LAUNCHING.items() if program else ():
        if threads <= os.cpu_count() and not session.has("submissions", name):
            launches_by(session, [program, KERNELS, str(threads), *(["20"] if session.stand_in else [])], name)


def launches_by(session, command, name):
    took = {"native": [], "preloaded, gate off": [], "preloaded, gate on": []}
    for _ in range(1 if session.stand_in else LAUNCH_RUNS):
        for way, times in took.items():
            done = session.run(command, 30, CUDA_MODULE_LOADING="EAGER") if way == "native" else \
                session.preloaded(command, "lazy", 30, CUDA_MODULE_LOADING="EAGER",
                                  BFC_GATE="1" if way.endswith("on") else "0")
            if done[0]:
                session.surprise("submissions", f"{name}, {way}", done[2])
                return
            times.append(int(done[1]))
    session.note("submissions", name, {way: statistics.median(times) for way, times in took.items()})
    session.note("submissions", name + ", each run", {way: str(times) for way, times in took.items()})
