"""Measures what documentation leaves open, and a pair of cudaMalloc and cudaFree natively and preloaded."""

import contextlib
import json
import os

from ..session import MODES, sources
from ..toolkit import ROOT


KERNELS = os.path.join(ROOT, "sim/kernels.ptx")


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
    program = session.compile("measure", "pair", sources("tests/gpu/pair.c"), *session.toolkit.runtime(),
                              *session.driver())
    command = [program, KERNELS]
    if not program or not measure_pair(session, "native", session.run(command)):
        return
    for mode in MODES:
        fast = measure_pair(session, mode, session.preloaded(command, mode))
        slow = measure_pair(session, mode + ", BFC_RUNTIME=off",
                            session.preloaded(command, mode, BFC_RUNTIME="off"))
        if fast and slow:
            session.note("measure", f"cudaMalloc + cudaFree, {mode}: time with BFC_RUNTIME=off, "
                         "of the time with it on", round(slow["runtime_ns"] / fast["runtime_ns"], 2))


def measure_pair(session, how, outcome):
    status, out, error = outcome
    if status and how == "native":
        return session.surprise("measure", "pair, native", f"exit status {status}: {error}")
    if status:
        return session.fail("measure", "pair, " + how, error)
    session.note("measure", "cudaMalloc + cudaFree, 64 KiB, " + how, json.loads(out))
    return json.loads(out)
