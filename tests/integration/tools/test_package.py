#!/usr/bin/env python3
"""The wheel: built, installed by pip into an environment of its own, and used over the stand-in GPU.

With MICROHTTPD, a folder that packaging/microhttpd made, it has the exporter; nothing is fetched for it here."""

import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import zipfile

ROOT, SIM = os.environ["SOURCE_ROOT"], os.environ["SIM_DIR"]
MICROHTTPD = os.environ.get("MICROHTTPD", "")
PROGRAM = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
for _ in range(1000):
    assert cuda.cuMemAlloc_v2(ctypes.byref(pointer), 1 << 20) == 0 and cuda.cuMemFree_v2(pointer) == 0
"""
MODULE = PROGRAM + """
import os
import bfcpreload
stats = bfcpreload.stats()
assert (stats.allocations, stats.in_use) == (1000, 0), stats
assert bfcpreload.stats(os.getpid()).allocations == 1000
assert bfcpreload.library() in open("/proc/self/maps").read()
"""


def run(*command, **changes):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("BFC_", "PYTHON", "MESON"))} | changes
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def install(wheel, folder):
    """Into an environment of venv's, with its Python; or where there is no venv, into a plain folder."""
    python = os.path.join(folder, "bin", "python3")
    pip = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-warn-script-location"]
    if subprocess.run([sys.executable, "-m", "venv", folder], capture_output=True).returncode == 0:
        run(python, *pip, wheel)
        assert run(python, "-m", "bfcpreload", "library").strip().startswith(folder)
        for arguments in (["run", "--version"], ["--version"]):
            assert run(python, "-m", "bfcpreload", *arguments).startswith("bfcrun ")
        run(python, "-m", "bfcpreload", "run", python, "-c", MODULE, LD_LIBRARY_PATH=SIM)
    else:
        run(sys.executable, *pip, "--prefix", folder, wheel)
    (bfcrun,) = glob.glob(folder + "/**/bin/bfcrun", recursive=True)
    return bfcrun


# Finds the interface by the header and pkg-config, links nothing, and asks while it is preloaded.
CLIENT = """
#define BFCPRELOAD_WEAK
#include <bfcpreload.h>
#include <stdio.h>
int main(void) { return printf("%s\\n", bfc_interface ? "preloaded" : "alone") < 0; }
"""


def check_header(bfcrun, folder):
    """The file for pkg-config, wherever the packages' folders were unpacked."""
    if not (shutil.which("pkg-config") and shutil.which("cc")):
        return
    (place,) = glob.glob(folder + "/**/pkgconfig", recursive=True)
    with open(os.path.join(folder, "client.c"), "w", encoding="utf-8") as file:
        file.write(CLIENT)

    def ask(option):
        return run("pkg-config", option, "bfcpreload", PKG_CONFIG_PATH=place).split()

    assert ask("--modversion") == [os.environ["VERSION"]]
    assert os.path.samefile(*ask("--variable=library"), glob.glob(folder + "/**/libbfcpreload.so", recursive=True)[0])
    program = os.path.join(folder, "client")
    run("cc", *ask("--cflags"), "-o", program, program + ".c", *ask("--libs"))
    assert run(program) == "alone\n" and run(bfcrun, "--", program) == "preloaded\n"


def check_bill(wheel):
    """It names each of the wheel's files, with its hash, but itself and what is written after it."""
    with zipfile.ZipFile(wheel) as archive:
        files = {"./" + name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}
        (place,) = (name for name in files if name.endswith("/sboms/bfcpreload.spdx.json"))
        bill = json.loads(archive.read(place[2:]))
    assert {p["name"] for p in bill["packages"]} >= {"bfcpreload", "uPlot"}, bill["packages"]
    listed = {f["fileName"]: c["checksumValue"] for f in bill["files"] for c in f["checksums"]
              if c["algorithm"] == "SHA256"}
    written_after = {place, place.replace("sboms/bfcpreload.spdx.json", "RECORD")}
    assert listed == {name: digest for name, digest in files.items() if name not in written_after}


def check_size(folder):
    """Tables of zeros belong where they take no room in the file."""
    library = glob.glob(folder + "/**/libbfcpreload.so", recursive=True)[0]
    assert os.path.getsize(library) < 4 << 20, os.path.getsize(library)


def check_removal(folder):
    python = os.path.join(folder, "bin", "python3")
    if os.path.exists(python):
        run(python, "-m", "pip", "uninstall", "--yes", "bfcpreload")
        # pip leaves an emptied folder at times.
        found = [path for name in ("/**/*bfc*", "/**/*bfc*/**") for path in glob.glob(folder + name, recursive=True)]
        left = [path for path in found if not os.path.isdir(path)]
        assert left == [], left


def check_documents(bfcrun, folder):
    """Each page that a tool's help names is there."""
    (documents,) = glob.glob(folder + "/**/share/doc/bfcpreload", recursive=True)
    for tool in ("bfcstat", "bfcplan", "bfcreplay", "bfcrun"):
        for page in re.findall(r"docs/[\w-]+\.md", run(os.path.join(os.path.dirname(bfcrun), tool), "--help")):
            assert os.path.exists(os.path.join(documents, page)), page


def check_exporter(bfcrun, folder):
    """It answers, and what belongs to it is there."""
    command = [os.path.join(os.path.dirname(bfcrun), "bfcstat"), "serve", "--listen=127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as exporter:
        said = exporter.stdout.readline()
        if MICROHTTPD:
            with urllib.request.urlopen(said.split()[-1]) as answer:
                assert b"\nbfcpreload_jobs " in answer.read()
        exporter.terminate()
    assert MICROHTTPD or said == "bfcstat: built without libmicrohttpd, which serve needs\n", said
    for name in ("bfcstat.service", "alerts.yml", "dashboard.json") if MICROHTTPD else ():
        assert glob.glob(f"{folder}/**/share/bfcpreload/{name}", recursive=True), name


def check(bfcrun):
    assert run(bfcrun, "--version").split() == ["bfcrun", os.environ["VERSION"]]
    said = run(bfcrun, "--summary=1", "--", sys.executable, "-c", PROGRAM, LD_LIBRARY_PATH=SIM)
    assert "1000 allocations" in said.replace(",", ""), said
    for tool in ("bfcstat", "bfcrun"):
        assert run(os.path.join(os.path.dirname(bfcrun), tool), "--help").startswith("usage: " + tool)


def check_refusals(folder):
    """What the machine lacks is one line."""
    for kind, line in ("deb", "no .deb is made: dpkg-deb is not installed\n"), \
                      ("wheel", "meson is not installed; scripts/setup --build installs what building needs\n"):
        refused = subprocess.run([sys.executable, os.path.join(ROOT, "scripts", "package"), "--only", kind, folder],
                                 env={"PATH": folder, "MICROHTTPD": folder}, capture_output=True, text=True, timeout=60)
        assert (refused.returncode, refused.stdout, refused.stderr) == (1, "", "package: " + line), refused


def main():
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode:
        print("no pip here")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="bfc-package-") as folder:
        check_refusals(folder)
        said = run(os.path.join(ROOT, "scripts", "package"), "--only", "wheel", "--draft", folder, JOBS="2", MICROHTTPD=MICROHTTPD)
        wheel = said.splitlines()[0]
        assert ("have no exporter (bfcstat serve)" in said) == (not MICROHTTPD), said
        environment = os.path.join(folder, "environment")
        bfcrun = install(wheel, environment)
        check(bfcrun)
        check_header(bfcrun, environment)
        check_documents(bfcrun, environment)
        check_exporter(bfcrun, environment)
        check_bill(wheel)
        check_size(environment)
        check_removal(environment)


if __name__ == "__main__":
    main()
