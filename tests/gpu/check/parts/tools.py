"""A preloaded program under each debugger and profiler ends and prints as the native one does."""

import os

from .. import machine
from ..session import pooled_of
from . import routes

DEBUGGER = ("-q", "-batch", "-nx", "-return-child-result", "-ex", "run", "--args")


def tools(work):
    """The arguments of each, before the program."""
    return {
        "compute-sanitizer": ("--tool", "memcheck", "--error-exitcode", "9"),
        "cuda-gdb": DEBUGGER,
        "nsys": ("profile", "-o", os.path.join(work, "report"), "--force-overwrite", "true"),
        "ncu": ("--clock-control", "none", "--launch-count", "1"),  # the clocks are not ours
        "gdb": DEBUGGER,
        "strace": ("-f", "-o", "/dev/null"),
        "perf": ("stat", "-e", "task-clock", "-o", os.path.join(work, "stat")),
        "valgrind": ("--leak-check=no",),
    }


def run(session):
    program = os.path.join(session.work, "driver_linked")
    if not os.path.exists(program):
        program = routes.build_driver_linked(session)
    expected = session.run([program])[1].splitlines() if program else []
    if not expected:
        session.skip("tools", "all", "the program itself does not work natively")
        return
    known = tools(session.work)
    left = [name for name in known if not session.has("tools", name)]
    here = {name: tool for name in left if (tool := machine.find_tool(name, session.toolkit.home))}
    for name in left:
        if name not in here:
            session.skip("tools", name, "missing")
    for number, (name, tool) in enumerate(here.items()):
        limit = session.clock.left() / (len(here) - number)  # of two runs
        beside(session, name, [tool, *known[name], program], expected, limit)


def beside(session, name, command, expected, limit):
    """Under compute-sanitizer the library must step aside."""
    native = session.run(command, limit)
    if session.had_no_time(native[0], limit):
        return session.skip_for_time("tools", name)
    if [line for line in native[1].splitlines() if line in expected] != expected:
        return session.skip("tools", name, f"does not work natively: {native}")
    aside = name == "compute-sanitizer"
    report_by = {} if aside else {"ROUTE_REPORT": session.report_command()}
    found = session.preloaded(command, "sync", limit, **report_by)
    if session.had_no_time(found[0], limit):
        return session.skip_for_time("tools", name)
    lines = [line for line in found[1].splitlines() if line in expected]
    stepped = "stepping aside" in found[1] + found[2]
    pooled = pooled_of(found[1] + found[2])
    if (found[0], lines, stepped) != (native[0], expected, aside) or not (aside or pooled):
        return session.fail("tools", name, f"preloaded {found}, natively {native}")
    return session.note("tools", name, "ok, stepped aside" if aside else f"ok, {pooled} pooled")
