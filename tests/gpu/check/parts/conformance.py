"""The conformance programs, built against the machine's own CUDA; natively and in each mode."""

import os
import re

from ..running import OutOfTime
from ..session import at_once
from ..toolkit import ROOT

SCRIPTS = os.path.join(ROOT, "tests/conformance")
# These look at how much of the device is free, or take all of it.
ALONE = {"14", "15", "16", "17", "35"}


def run(session):
    folder = os.path.join(session.work, "conformance")
    status, out, error = session.run([SCRIPTS + "/build", folder, session.toolkit.home, *session.cases], 240,
                                     LIBCUDA=session.driver()[0])
    if status:
        session.surprise("conformance", "build", f"exit status {status}: {out}{error}")
    todo = list(programs(session, folder))
    with open(session.results.path("conformance.log"), "w", encoding="utf-8") as log:
        at_once([(case, session, log, folder, *row) for row in todo if row[0] not in ALONE],
                session.workers())
        for row in todo:
            if row[0] in ALONE:
                case(session, log, folder, *row)


def programs(session, folder):
    """Number, route and modes of those that are to run and were built."""
    with open(SCRIPTS + "/list", encoding="utf-8") as file:
        rows = [line.split(" ", 3) for line in file if line[0].isdigit()]
    for number, routes, modes, _ in rows:
        if not session.cases or number in session.cases:
            for route in routes.split(","):
                if os.path.exists(f"{folder}/case{number}-{route}"):
                    yield number, route, modes


def expected_output(number, route):
    path = f"{SCRIPTS}/expected/case{number}"
    by_driver = path + "-driver.txt"
    return by_driver if route == "driver" and os.path.exists(by_driver) else path + ".txt"


def case(session, log, folder, number, route, modes):
    """One program, natively and in each mode; see `run --modes`."""
    name = f"case{number}-{route}"
    try:
        status, out, error = session.run(
            [SCRIPTS + "/run", "--modes", f"{folder}/{name}", expected_output(number, route),
             session.library, *modes.split(",")], 150,
            CONFORMANCE_SECONDS="30", CUDA_MODULE_LOADING="EAGER")  # not beside a kernel that waits
    except OutOfTime:
        session.skip_for_time("conformance", name)
        return
    log.write(f"== {name}: exit status {status}\n{out}{error}\n")
    log.flush()
    judge(session, name, modes.split(","), status, out, error)


def judge(session, name, modes, status, out, error):
    verdicts = dict(re.findall(r"^(\w+): (.*)$", out, re.MULTILINE))
    native = verdicts.get("native", "")
    if status == 77:
        return session.skip("conformance", name, native)
    if native.startswith("cut off"):
        return session.surprise("conformance", name, "natively " + native)
    if status == 124:
        return session.fail("conformance", name, out + error)
    if native != "ok":
        session.surprise("conformance", name, "natively not as expected: " + out)
    if any(verdicts.get(mode) != "ok" for mode in modes):
        return session.fail("conformance", name, "preloaded not as natively: " + out)
    return session.note("conformance", name, "ok" if status == 0 else
                        "preloaded as natively; natively see surprises")
