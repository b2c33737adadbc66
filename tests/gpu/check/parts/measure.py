"""Measures what documentation leaves open, and a pair of cudaMalloc and cudaFree natively and preloaded."""

import contextlib
import json
import os
import statistics

from ..session import MODES, sources
from ..toolkit import ROOT


KERNELS = os.path.join(ROOT, "sim/kernels.ptx")
TURNS = 5
RUNTIME_OFF = ", BFC_RUNTIME=off"


def run(session):
    measure_program(session, "measure", "measure", sources(
        "tests/gpu/measure.c", "interpose/features/share/token.c", "interpose/features/share/siphash.c"), "-ldl", "-lpthread")
    measure_pairs(session)
    measure_program(session, "measure", "page_costs", sources("tests/gpu/page_costs.c"), "-lpthread", "-ldl")


def measure_program(session, part, name, code, *flags):
    """Notes what each section of a program prints."""
    program = session.compile(part, name, code, *session.driver(), *flags)
    sections = session.run([program, "--list"]) if program else (0, "", "")
    if sections[0]:
        session.surprise(part, name, sections[2])
    for section in sections[1].splitlines():
        measure_section(session, part, program, section)


def measure_section(session, part, program, section):
    done = f"{os.path.basename(program)}: {section}"
    if session.has(part, done):
        return
    status, out, error = session.run([program, KERNELS, section], 15, CUDA_MODULE_LOADING="EAGER")
    for line in out.splitlines():
        with contextlib.suppress(ValueError):  # of one that was cut off
            figure = json.loads(line)
            session.note(part, figure["name"], figure.get("value", figure.get("values")))
    if status:
        session.surprise(part, section, f"exit status {status}: {error}")
    session.note(part, done, "done" if status == 0 else "see surprises")


def measure_pairs(session):
    """Each way several times, in turn with the others, so that what the device is doing is the same for all."""
    program = session.compile("measure", "pair", sources("tests/gpu/pair.c"), *session.toolkit.runtime(),
                              *session.driver())
    ways = {"native": None, **{mode + off: mode for mode in MODES for off in ("", RUNTIME_OFF)}}
    measured = {way: [] for way in ways}
    for _ in range(TURNS if program else 0):
        for way, mode in ways.items():
            if measured[way] is not None:
                measured[way] = measure_pair(session, program, way, mode, measured[way])
        if not measured["native"]:
            return
    medians = {way: median_of(found) for way, found in measured.items() if found}
    for way, found in medians.items():
        session.note("measure", "cudaMalloc + cudaFree, 64 KiB, " + way, found)
    for mode in MODES:
        if {mode, mode + RUNTIME_OFF} <= set(medians):
            session.note("measure", f"cudaMalloc + cudaFree, {mode}: time with BFC_RUNTIME=off, of the time with it on",
                         round(medians[mode + RUNTIME_OFF]["runtime_ns"] / medians[mode]["runtime_ns"], 2))


def measure_pair(session, program, way, mode, so_far):
    """With one figure more; or None, after noting why there is none."""
    command = [program, KERNELS]
    off = {"BFC_RUNTIME": "off"} if way.endswith(RUNTIME_OFF) else {}
    status, out, error = session.preloaded(command, mode, **off) if mode else session.run(command)
    if status == 0:
        return [*so_far, json.loads(out)]
    if mode:
        session.fail("measure", "pair, " + way, error)
    else:
        session.surprise("measure", "pair, native", f"exit status {status}: {error}")
    return None


def median_of(found):
    return {key: statistics.median(each[key] for each in found) if isinstance(value, (int, float)) and
            not isinstance(value, bool) else value for key, value in found[0].items()}
