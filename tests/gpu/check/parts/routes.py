"""Every route of tests/integration/routes: preloaded, the same output as natively, and pooled."""

import os
import sys

from ..session import at_once, pooled_of, sources
from ..toolkit import ROOT, rpath

FOLDER = "tests/integration/routes/"
PLUGIN = ("-shared", "-fPIC")
PLUGIN_WAYS = (("bare", "handle", ""), ("bare", "handle", "deepbind"), ("linked", "linked", ""),
               ("linked", "default", ""), ("linked", "next", ""), ("linked", "linked", "deepbind"),
               ("linked", "default", "global"), ("runpath", "helper", ""),
               ("runpath", "helper", "deepbind"))


def run(session):
    todo = [(route, session, name, command) for name, command in commands(build_programs(session)).items()
            if all(command)]
    at_once(todo, session.workers())


def programs(session):
    """Name, source and flags of each."""
    driver = session.driver()
    linked = ("-DROUTE_LINKED", *PLUGIN, "-Wl,--no-as-needed", *driver)
    warn = "-Wno-deprecated-declarations"
    static = session.toolkit.libraries() + "/libcudart_static.a"
    return {
        "driver": ("driver_linked", "driver_linked.c", *driver),
        "name": ("by_name", "by_name.c", "-ldl"),
        "shared": ("runtime_shared", "runtime.c", warn, *session.toolkit.runtime()),
        "static": ("runtime_static", "runtime.c", warn, static, "-ldl", "-lrt", "-lpthread"),
        "host": ("host", "host.c", "-ldl"),
        "bare": ("plugin_bare.so", "plugin.c", *PLUGIN),
        "bypass": ("bypass", "bypass.c", "-ldl"),
        "linked": ("plugin_linked.so", "plugin.c", *linked),
        # Only the plug-in's own RUNPATH leads to the helper.
        "helper": ("helper/libroutehelper.so", "plugin.c", *linked),
        "runpath": ("plugin_runpath.so", "plugin.c", *PLUGIN,
                    "-Wl,--enable-new-dtags", *rpath(os.path.join(session.work, "helper"))),
    }


def build_programs(session):
    """The path of each, or None."""
    os.makedirs(os.path.join(session.work, "helper"), exist_ok=True)
    wanted = programs(session)
    made = at_once([(session.compile, "routes", name, sources(FOLDER + source, FOLDER + "route.c"), *flags)
                    for name, source, *flags in wanted.values()])
    return dict(zip(wanted, made))


def build_driver_linked(session):
    name, source, *flags = programs(session)["driver"]
    return session.compile("routes", name, sources(FOLDER + source, FOLDER + "route.c"), *flags)


def commands(b):
    """Each route's command line."""
    ctypes_route = os.path.join(ROOT, FOLDER, "ctypes_route.py")
    routes = {
        "driver linked": [b["driver"]],
        "shared runtime": [b["shared"]],
        "static runtime": [b["static"]],
        "past the pool, counted": [b["bypass"]],
        "ctypes on a handle": [sys.executable, ctypes_route, "handle"],
        "ctypes on the process": [sys.executable, ctypes_route, "process"],
    }
    for way in "entry", "version":
        routes[f"shared runtime, {way}"] = [b["shared"], way]
        routes[f"static runtime, {way}"] = [b["static"], way]
    for way in "handle", "default", "process", "versioned", "versioned-next", "resolver":
        routes["by name, " + way] = [b["name"], way]
    for plugin, way, flag in PLUGIN_WAYS:
        routes[f"plug-in {plugin}, {way} {flag}".strip()] = [b["host"], b[plugin], way] + ([flag] if flag else [])
    return routes


def route(session, name, command):
    native = session.run(command, 20)
    if native[0] != 0:
        return session.surprise("routes", name, f"natively: {native}")
    found = session.preloaded(command, limit=20, ROUTE_REPORT=session.report_command())
    if found[:2] != native[:2]:
        return session.fail("routes", name, f"preloaded {found}, natively {native}")
    pooled = pooled_of(found[2])
    if pooled is None and not name.startswith(("ctypes", "past")):  # which do not report
        return session.fail("routes", name, "no report of how much was pooled: " + found[2])
    if pooled is not None and pooled < 200:
        return session.fail("routes", name, f"only {pooled} allocations were pooled")
    return session.note("routes", name, "ok" if pooled is None else f"ok, {pooled} pooled")
