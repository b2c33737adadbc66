"""scripts/demo, but for its setting up and building: with what was built here. On a device it does less, since part
`programs` has PyTorch, and the counts of an iteration are always the same."""

import json
import os
import sys

from ..toolkit import ROOT

PROGRAMS = "tests/integration/demo"
ITERATIONS, FEW = "100", "30"  # FEW: over the stand-in, where CI runs the demo as well


def run(session):
    check(session, "demo")


def check(session, part, **variables):
    build = session.built or lay_out(session, os.path.join(session.work, "demo"))
    settings = [f"{name}={value}" for name, value in variables.items()]
    status, out, error = session.run([sys.executable, os.path.join(ROOT, "scripts/demo.py"), build,
                                      FEW if session.stand_in else ITERATIONS, *settings], 120,
                                     DEMO_PYTORCH=None if session.stand_in else "0")
    try:
        figures = json.loads(out.strip().splitlines()[-1])
    except (ValueError, IndexError):
        session.fail(part, "demo", f"exit status {status}: {out}{error}")
        return
    for name, figure in figures.items():
        session.note(part, name, figure)
    if status:
        session.fail(part, "demo", error)
    else:
        session.note(part, "demo", "ok")


def lay_out(session, build):
    """As a build folder is. Over the stand-in, its libraries and program are Meson's."""
    links = {"interpose/libbfcpreload.so": session.library, "tools/bfcstat": session.bfcstat}
    if session.stand_in:
        links.update({name: os.path.join(session.stand_in.build, name) for name in ("sim", PROGRAMS + "/train")})
    os.makedirs(os.path.join(build, PROGRAMS), exist_ok=True)
    for name, made in links.items():
        place = os.path.join(build, name)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if not os.path.lexists(place):
            os.symlink(made, place)
    return build
