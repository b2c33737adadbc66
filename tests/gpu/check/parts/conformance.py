"""The conformance programs, built against the machine's own CUDA; natively and in each mode."""

import collections
import os
import re

from ..running import OutOfTime
from ..session import at_once
from ..toolkit import ROOT

SCRIPTS = os.path.join(ROOT, "tests/conformance")
# These look at how much of the device is free, or fill it, so that others beside them would find none.
ALONE = {"14", "15", "16", "17", "35", "55", "56"}

Where = collections.namedtuple("Where", "session part log folder variables")


def run(session):
    check(session, "conformance", ["driver"])


def run_runtimes(session):
    check(session, "runtimes", ["shared", "static"])


def check(session, part, routes, **variables):
    """By these routes, the preloaded runs with these variables."""
    folder = os.path.join(session.work, "conformance")
    build(session, part, folder)
    todo = [row for row in programs(session, folder) if row[1] in routes and not session.has(part, name_of(*row))]
    with open(session.results.path(part + ".log"), "a", encoding="utf-8") as log:
        where = Where(session, part, log, folder, variables)
        at_once([(case, where, *row) for row in todo if row[0] not in ALONE], session.workers(16))
        for row in todo:
            if row[0] in ALONE:
                case(where, *row)


def build(session, part, folder):
    """Once for all parts."""
    stamp = "-".join(["conformance", *session.cases])
    if session.stamps.has(stamp):
        return
    for number, route, _ in programs(session, folder):  # of other sources; one that does not build is not to be run
        os.remove(path_of(folder, number, route))
    status, out, error = session.run([SCRIPTS + "/build", folder, session.toolkit.home, *session.cases], 240,
                                     LIBCUDA=session.driver()[0])
    if status:
        session.surprise(part, "build", f"exit status {status}: {out}{error}")
        return
    session.stamps.put(stamp)


def rows():
    with open(SCRIPTS + "/list", encoding="utf-8") as file:
        return [line.split(" ", 3) for line in file if line[0].isdigit()]


def numbers():
    return [number for number, *_ in rows()]


def programs(session, folder):
    """Number, route and modes of those that are to run and were built."""
    for number, routes, modes, _ in rows():
        if not session.cases or number in session.cases:
            for route in routes.split(","):
                if os.path.exists(path_of(folder, number, route)):
                    yield number, route, modes


def path_of(folder, number, route):
    return os.path.join(folder, name_of(number, route))


def name_of(number, route, _=None):
    return f"case{number}-{route}"


def expected_output(number, route):
    path = f"{SCRIPTS}/expected/case{number}"
    by_driver = path + "-driver.txt"
    return by_driver if route == "driver" and os.path.exists(by_driver) else path + ".txt"


def case(where, number, route, modes):
    """One program, natively and in each mode; see `run --modes`."""
    name = name_of(number, route)
    try:
        status, out, error = where.session.run(
            [SCRIPTS + "/run", "--modes", path_of(where.folder, number, route), expected_output(number, route),
             where.session.library, *modes.split(",")], 150,
            CONFORMANCE_SECONDS="30", CUDA_MODULE_LOADING="EAGER",  # not beside a kernel that waits
            **where.variables)
    except OutOfTime:
        where.session.skip_for_time(where.part, name)
        return
    where.log.write(f"== {name}: exit status {status}\n{out}{error}\n")
    where.log.flush()
    judge(where.session, where.part, name, modes.split(","), status, out, error)


def judge(session, part, name, modes, status, out, error):
    verdicts = dict(re.findall(r"^(\w+): (.*)$", out, re.MULTILINE))
    native = verdicts.get("native", "")
    if status == 77:
        return session.skip(part, name, native)
    if native.startswith("cut off"):
        return session.surprise(part, name, "natively " + native)
    if status == 124:
        return session.fail(part, name, out + error)
    if native != "ok":
        session.surprise(part, name, "natively not as expected: " + out)
    if any(verdicts.get(mode) != "ok" for mode in modes):
        return session.fail(part, name, "preloaded not as natively: " + out)
    return session.note(part, name, "ok" if status == 0 else
                        "preloaded as natively; natively see surprises")
