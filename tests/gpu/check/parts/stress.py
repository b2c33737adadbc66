"""Random programs, which reuse memory with work under way: the same bytes as natively."""

import os
import sys

from ..session import sources
from ..toolkit import ROOT


def run(session):
    kernels = os.path.join(ROOT, "sim/kernels.ptx")
    program = session.compile("stress", "random_program", sources("tests/stress/programs/random_program.c"),
                              "-pthread", "-DROUTE_DRIVER", f'-DKERNELS_PTX="{kernels}"',
                              *session.driver(), "-ldl")
    if not program:
        return None
    seconds = min(float(os.environ.get("BFC_STRESS_SECONDS", 30)), session.clock.left() / 2)
    status, out, error = session.run(
        [sys.executable, os.path.join(ROOT, "tests/stress/programs/run.py"), "--usual", "--seconds",
         f"{seconds:.0f}", session.library, program],
        seconds + 60,  # what was begun in time is ended, also on a busy machine
        CUDA_MODULE_LOADING="EAGER", SIM_SHARE=None)  # each program has a simulated device of another size
    if status == 0:
        return session.note("stress", "random programs", out.strip())
    natively = "fails natively" in out or status == 124
    return (session.surprise if natively else session.fail)("stress", "random programs", out + error)
