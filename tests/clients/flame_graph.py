#!/usr/bin/env python3
"""A reader of collapsed stacks takes those of bfcstat who --collapsed, and comes to the sums of who --json.

usage: flame_graph.py BFCSTAT LIBRARY HOLDER FOLDER   The reader is kept in FOLDER; without it, and without PyPI, the test is skipped.
"""
import glob
import html
import importlib.machinery
import importlib.util
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def reader(folder):
    """The extension alone: the package around it wants more, which nothing here needs."""
    def find():
        return glob.glob(os.path.join(folder, "pyinferno", "pyinferno.*.so"))
    if not find():
        done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes",
                               "--only-binary=:all:", "--target", folder, "-r", os.path.join(HERE, "flame_graph.txt")],
                              stderr=subprocess.DEVNULL, check=False)
        if done.returncode or not find():
            skip("pip cannot install pyinferno, of which there are wheels for Python 3.11 on x86-64")
    loader = importlib.machinery.ExtensionFileLoader("pyinferno", find()[0])
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("pyinferno", loader))
    loader.exec_module(module)
    return module


def main(bfcstat, library, holder, folder):
    inferno = reader(folder)
    env = dict(os.environ, LD_PRELOAD=library, SIM_MEMORY="4G", BFC_STACKS="all")
    job = subprocess.Popen([holder, "plain"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    job.stdout.readline()
    lines, figures = (subprocess.run([bfcstat, "who", how, str(job.pid)], stdout=subprocess.PIPE, text=True,
                                     check=True).stdout for how in ("--collapsed", "--json"))
    job.communicate()
    picture = inferno.flamegraph_from_lines(lines.splitlines())
    drawn = {html.unescape(name): int(figure.replace(",", ""))
             for name, figure in re.findall(r"<title>([^<]*) \(([0-9,]+) samples", picture)}
    figures = json.loads(figures)
    assert drawn["all"] == figures["all"]["bytes"], drawn
    for site in figures["sites"]:
        frames = [f"{os.path.basename(site['library'])}`{frame['function']}" for frame in site["frames"]]
        assert site["bytes"] in [drawn.get(frame, 0) for frame in frames], (frames, site["bytes"], drawn)


if __name__ == "__main__":
    main(*sys.argv[1:])
