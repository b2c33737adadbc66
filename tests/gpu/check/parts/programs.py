"""Real programs: natively as clients of cudaMalloc, natively with the best pool of their own, and preloaded: time,
peak memory, driver calls, host waits, and the same results."""

import sys

from .. import hypre
from ..session import MODES, sources
from .clients import Attempt, Client, compiles, judge_result, judge_share, script_command

SKIP = {"SIM_KERNELS": "skip"}  # over the simulated GPU, which runs no compiled kernel; elsewhere it means nothing
OWN = {"CLIENT_POOL": "own"}
PROGRAMS = {  # what matters most comes first
    "gpt": Client({"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}, {"CUBLAS_WORKSPACE_CONFIG": ":4096:8", **SKIP}),
    "cupy_cg": Client({}, SKIP, OWN),
    "jax_transformer": Client({"XLA_PYTHON_CLIENT_ALLOCATOR": "address"}, {"TF_CPP_MIN_LOG_LEVEL": "2", **SKIP},
                              {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}),
    "thrust": Client({}, SKIP, OWN),
    "idle_jobs": Client({}, {}, OWN),
    "pycuda": Client({}, SKIP, OWN),
    "hypre": Client({}, SKIP, None),
}
OF_FRAMEWORK = {"gpt": "pytorch", "jax_transformer": "jax", "cupy_cg": "cupy", "pycuda": "pycuda"}
WAYS = {**{"preloaded, " + mode: (mode, {}) for mode in MODES},
        "preloaded, sync, auto": ("sync", {"BFC_BACKING": "auto"})}


def run(session):
    for number, (name, program) in enumerate(PROGRAMS.items()):
        command = command_of(session, name)
        if command:
            # One that hangs must not take the time of those after it.
            limit = min(60, 2 * session.clock.left() / (len(PROGRAMS) - number))
            compare(Attempt(session, "programs", name, command, limit), program)


def command_of(session, name):
    if name in OF_FRAMEWORK:
        return script_command(session, "programs", name, OF_FRAMEWORK[name])
    if name in COMPILED:
        return COMPILED[name](session)
    program = session.compile("programs", name, sources(f"tests/gpu/client_{name}.c"), *session.toolkit.runtime())
    return [program] if program else None


def thrust_command(session):
    nvcc = session.toolkit.nvcc()
    if not nvcc:
        return session.skip("programs", "thrust", "missing: no nvcc")
    return compiles(session, "programs", "thrust", nvcc, "-arch=sm_" + architecture(session), "-std=c++17")


def hypre_command(session):
    """Last of all, since it takes minutes to build: what time it lacks is another turn's."""
    try:
        program = hypre.build(session, architecture(session))
    except hypre.NotBuilt as problem:
        return session.skip("programs", "hypre", str(problem))
    return [sys.executable, sources("tests/gpu/client_hypre.py")[0], program]


COMPILED = {"thrust": thrust_command, "hypre": hypre_command}


def architecture(session):
    """What the device is, as nvcc numbers it: Thrust looks for code for just that."""
    return session.results.machine["capability"].replace(".", "")


def compare(attempt, program):
    """All ways of running it; the counts of the native ones are what the preloaded ones saw the program call."""
    session, all_ways = attempt.session, f"{attempt.name}: all ways"
    if attempt.name not in session.begun and not session.has("programs", all_ways):
        session.results.forget("programs", attempt.name + ", ")  # figures of one run are compared
    session.begun.add(attempt.name)
    run_all_ways(attempt, program)
    if not attempt.late:
        session.note("programs", all_ways, "done")


def run_all_ways(attempt, program):
    """Those first on which decisions rest."""
    always = {**program.always, **attempt.session.flags.get(OF_FRAMEWORK.get(attempt.name), {})}
    raw = {**always, **program.raw}
    own = {**always, **(program.own or {})}
    native = attempt.run("native", **raw)
    for way, (mode, more) in WAYS.items() if native else ():
        line = attempt.run(way, mode, **raw, **more)
        if line:
            judge(attempt, way, line, native, raw)
            judge_share(attempt, way, line)
    pooled = program.own is not None and attempt.run("native, its own pool", **own)
    if pooled and (line := attempt.run("its own pool, preloaded, lazy", "lazy", **own)):
        judge(attempt, "its own pool, preloaded, lazy", line, pooled, own)


def judge(attempt, way, line, native, variables):
    """Results are compared where kernels ran."""
    if "natively" in line:
        native["driver_calls"], native["host_waits"] = line["natively"]
    if attempt.session.stand_in and variables.get("SIM_KERNELS"):
        line["result"] = "not compared: no kernel runs here"
    else:
        judge_result(attempt, way, line, native, variables)
