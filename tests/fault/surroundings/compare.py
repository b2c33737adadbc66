#!/usr/bin/env python3
"""Runs each scene of a program natively and preloaded, in each mode of BFC_FREE: what it reports and
how it ends must be the same. usage: compare.py LIBRARY PROGRAM [SCENE...]"""

import difflib
import os
import signal
import struct
import subprocess
import sys
import tempfile

REPORT_SIZE = 1 << 16
LIMIT = 200  # seconds; only a hang takes so long
SKIPPED = 77


def run(program, scene, folder, settings):
    """The end and the report."""
    path = os.path.join(folder, "report")
    with open(path, "wb") as file:
        file.truncate(REPORT_SIZE)
    work = tempfile.mkdtemp(dir=folder)
    environment = {n: v for n, v in os.environ.items() if not n.startswith(("BFC_", "LD_PRELOAD"))}
    environment.update(REPORT=path, FOLDER=work, SIM_MEMORY="256M", LC_ALL="C", **settings)
    with subprocess.Popen([program, scene], env=environment, stdin=subprocess.DEVNULL, cwd=work,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        try:
            said = process.communicate(timeout=LIMIT)
            end = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            said = process.communicate()
            end = "hangs"
    with open(path, "rb") as file:
        used, = struct.unpack("I", file.read(4))
        text = file.read(used).decode(errors="replace")
    return end, text, said[0].decode(errors="replace"), said[1].decode(errors="replace")


def compare(library, program, scene, folder):
    """Whether the scene is the same, preloaded; None: this machine cannot show it."""
    native = run(program, scene, folder, {})
    if native[0] == SKIPPED:
        print(f"{scene}: {native[1].strip()}")
        return None
    if native[0] != 0:
        print(f"{scene}: fails natively: {native}")
        return False
    same = True
    for mode in "sync", "lazy", "ordered":
        preloaded = run(program, scene, folder, {"LD_PRELOAD": library, "BFC_FREE": mode})
        if preloaded[:3] != native[:3]:
            print(f"{scene}, {mode}: ends {preloaded[0]}, natively {native[0]}")
            print("\n".join(difflib.unified_diff(native[1].splitlines(), preloaded[1].splitlines(), "native",
                                                 "preloaded", lineterm="", n=1)))
            print("".join(preloaded[2:]))
            same = False
    print(f"{scene}: {'same' if same else 'NOT the same'}", flush=True)
    return same


def main():
    library, program, *scenes = sys.argv[1:]
    library, program = os.path.realpath(library), os.path.realpath(program)
    scenes = scenes or subprocess.run([program, "list"], check=True, capture_output=True,
                                      text=True).stdout.split()
    with tempfile.TemporaryDirectory(prefix="bfc-scenes-") as folder:
        os.chmod(folder, 0o755)
        results = [compare(library, program, scene, folder) for scene in scenes]
    if False in results:
        return 1
    return 0 if True in results else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
