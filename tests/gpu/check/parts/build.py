"""Builds the library and bfcstat with the C compiler alone, and asks for the frameworks' versions."""

import concurrent.futures
import contextlib
import os
import platform
import re
import sys

from .. import machine, tree
from ..running import OutOfTime
from ..session import at_once, sources
from ..toolkit import ROOT
from .clients import CLIENTS, FRAMEWORKS, JAX_FLAGS


def run(session):
    limit = min(60, session.clock.left() / 4)  # of a framework that hangs
    with concurrent.futures.ThreadPoolExecutor() as pool:
        frameworks = [pool.submit(probe_framework, session, name, limit) for name in FRAMEWORKS]
        if not session.built:
            build_ours(session)
        for framework in frameworks:
            with contextlib.suppress(OutOfTime):
                framework.result()
    for path in session.library, session.bfcstat:
        if not os.path.exists(path):
            session.fail("build", os.path.basename(path), "it is not there")


def build_ours(session):
    """Unless they are there, of the sources as they are now."""
    version = tree.version()
    for made, build in (session.library, build_library), (session.bfcstat, build_bfcstat):
        name = os.path.basename(made)
        if session.stamps.has(name) and os.path.exists(made):
            session.note("build", name, "built before")
            continue
        with contextlib.suppress(FileNotFoundError):
            os.remove(made)
        if build(session, version):
            session.stamps.put(name)


def objects(session, paths, *flags):
    """Compiles them at once; objects, and what the compiler said of those that do not."""
    made = [os.path.join(session.work, re.sub("[^a-z0-9_]", "_", os.path.relpath(path, ROOT)) + ".o")
            for path in paths]
    done = at_once([(session.cc, "-c", path, "-o", out, *flags) for path, out in zip(paths, made)])
    return made, "".join(error for status, _, error in done if status)


LIBRARY_FLAGS = ("-fPIC", "-fvisibility=hidden", "-pthread")


def build_library(session, version, part="build", name="libbfcpreload.so", more=(), link=()):
    """As the meson.build of interpose, pool and planner do it; the linker leaves the planner's solve.c out there.
    `more`: objects that are linked into it too."""
    assembly = f"interpose/*/thunk_{platform.machine()}.S", f"interpose/features/*/table_stubs_{platform.machine()}.S"
    flags = [*LIBRARY_FLAGS, f'-DBFC_VERSION="{version}"']
    made, error = objects(session, sources("interpose/*/*.c", "interpose/features/*/*.c", "interpose/features/*/*/*.c", "segment/*.c", "base/*.c", *assembly), *flags)
    planner = [path for path in sources("planner/*/*.c") if not path.endswith("/solve.c")]
    pool, complaints = objects(session, sources("pool/*/*.c") + planner, *flags, *([] if session.stand_in else ["-O3"]))
    if error + complaints:
        return session.fail(part, name, error + complaints)
    return session.compile(part, name, [*made, *pool, *more], "-shared", "-pthread", *link,
                           "-Xlinker", "--version-script=" + os.path.join(ROOT, "interpose/entry/symbols.map"),
                           "-Wl,--no-undefined,-z,nodelete,-z,lazy,-z,relro,-z,start-stop-visibility=hidden", "-nostartfiles")


def build_observed(session):
    """The library with tests/gpu/observer.c in it; its path, or None."""
    path = os.path.join(session.work, "libbfcpreload-observed.so")
    if session.stamps.has("observed") and os.path.exists(path):
        return path
    headers = [folder for folder in (*session.toolkit.headers(), session.toolkit.home + "/extras/CUPTI/include",
                                     *(wheel + "/include" for wheel in machine.nvidia_packages()))
               if os.path.exists(folder + "/cupti.h")]
    if not headers:
        return session.skip("submissions", "the library that observes", "missing: no cupti.h")
    made, error = objects(session, sources("tests/gpu/observer.c"), *LIBRARY_FLAGS, "-idirafter", headers[0])
    if error:
        return session.skip("submissions", "the library that observes", error)
    built = build_library(session, tree.version(), "submissions", os.path.basename(path), made,
                          ["-Wl,--wrap=bfc_only_stream_hide", "-ldl"])
    if built:
        session.stamps.put("observed")
    return built


def build_bfcstat(session, version):
    """Without `top`, which needs ncurses, and `serve`, which needs libmicrohttpd."""
    folder = os.path.join(ROOT, "tools/report")
    with open(os.path.join(folder, "meson.build"), encoding="utf-8") as file:
        parts = re.findall("'([^']+)'", re.search(r"report_parts = files\((.*?)\)", file.read(), re.S)[1])
    session.run([sys.executable, os.path.join(folder, "embed.py"), os.path.join(session.work, "report_page.h"),
                 *(os.path.join(folder, part) for part in parts)], 60)
    paths = sources("tools/bfcstat/*.c", "tools/bfcstat/*/*.c", "tools/report/*.c",
                    "tools/snapshot/*.c", "tools/text/*.c", "tools/job/*.c", "tools/symbols/*.c", "tools/plan/common/*.c",
                    "planner/common/*.c", "planner/image/*.c", "planner/model/*.c", "segment/*.c", "base/*.c",
                    "interpose/config/options.c", "interpose/config/option_table.c", "interpose/config/configure.c")
    made, error = objects(session, [path for path in paths if not path.endswith(("/top.c", "/serve_metrics.c"))],
                          f'-DBFC_VERSION="{version}"', "-I" + session.work)
    if error:
        return session.fail("build", "bfcstat", error)
    return session.compile("build", "bfcstat", made, "-lm", "-ldl")


def probe_framework(session, name, limit):
    """Notes its version, or that it is missing. Its libraries are in memory afterwards, so that the
    first client's run is no slower than the others."""
    module = FRAMEWORKS[name]
    session.results.machine[name] = "does not start: cut off after the time that there was"
    status, out, error = session.run(
        [sys.executable, "-c", f"import {module}; print(getattr({module}, '__version__', 'there'))"], limit)
    missing = f"No module named '{module}'" in error
    version = out.strip().splitlines()[-1:] or [""]
    session.results.machine[name] = version[0] if status == 0 else \
        "missing" if missing else "does not start: " + (error.strip()[-200:] or f"exit status {status}")
    if name == "jax" and status == 0:
        probe_jax_flags(session, limit)


def probe_jax_flags(session, limit):
    """A flag that JAX does not know ends the program. Of several lists of flags, the first that it knows is used."""
    always = CLIENTS["jax"].always
    for flags in JAX_FLAGS:
        session.flags["jax"] = {**always, "XLA_FLAGS": flags}
        status, _, _ = session.run([sys.executable, "-c", "import jax; jax.devices()"], limit,
                                   JAX_PLATFORMS="cpu", **session.flags["jax"])
        if status == 0:
            return
    session.surprise("build", "jax", "does not know all of " + "; nor of ".join(JAX_FLAGS))
    session.flags["jax"] = {}
