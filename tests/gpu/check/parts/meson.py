"""The project's own build, which needs more than building the library alone does."""

import os
import sys

from ..toolkit import ROOT


def run(session):
    candidates = ["meson"], [sys.executable, "-m", "mesonbuild.mesonmain"]
    meson = next((command for command in candidates if session.run([*command, "--version"])[0] == 0), None)
    if not meson:
        return session.skip("meson", "meson", "missing")
    build = os.path.join(session.work, "meson")
    steps = (
        ([*meson, "setup", build, ROOT, "-Dtests=disabled",
          "-Dtoolkit_include=" + (session.toolkit.headers() or [""])[0]], 60),
        ([*meson, "compile", "-C", build], 180),
        ([os.path.join(ROOT, "tests/integration/invisible/exports.sh"),
          build + "/interpose/libbfcpreload.so", os.path.join(ROOT, "interpose/entry/symbols.list")], 60),
    )
    for command, limit in steps:
        status, out, error = session.run(command, limit)
        if status:
            return session.fail("meson", "meson", out + error)
    return session.note("meson", "meson", "ok")
