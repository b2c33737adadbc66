#!/usr/bin/env python3
"""Every source compiles without a warning: compiles.py BUILD-FOLDER.

For a build folder in which only some targets were built: each source of which it has no object, newer than
all sources, is compiled for the compiler's messages alone, once for each set of definitions with which any
target compiles it. That finds what a whole build with this compiler finds, without its objects and links,
and without compiling what many targets share for each of them. Prints the messages; exit status 1 if there
are any errors (with -Werror: or warnings), 2 for a wrong command line.
"""

import concurrent.futures
import json
import os
import shlex
import subprocess
import sys

import lint


def load(build, name):
    with open(os.path.join(build, name), encoding="utf-8") as file:
        return json.load(file)


def make_generated_sources(build):
    names = [os.path.relpath(name, build)
             for target in load(build, "meson-info/intro-targets.json") if target["type"] == "custom"
             for name in target["filename"] if name.endswith((".c", ".h"))]
    if names:
        subprocess.run(["ninja", "--quiet", "-C", build, *names], check=True)


def newest(root):
    return max(os.path.getmtime(os.path.join(root, name)) for name in lint.c_sources(root))


def meaning(entry):
    """What decides on the messages: the source, and what the command defines."""
    defines = [word for word in shlex.split(entry["command"]) if word.startswith("-D")]
    return entry["file"], tuple(sorted(defines))


def commands(build, since):
    """The first compile command of each meaning that has no object which was made after `since`."""
    first, made = {}, set()
    for entry in load(build, "compile_commands.json"):
        output = os.path.join(build, entry["output"])
        first.setdefault(meaning(entry), entry)
        if os.path.exists(output) and os.path.getmtime(output) > since:
            made.add(meaning(entry))
    return [entry for key, entry in first.items() if key not in made]


def compile_entry(entry):
    """The compiler's messages, and whether it failed."""
    command = [*shlex.split(entry["command"]), "-fsyntax-only"]
    del command[command.index("-o"):command.index("-o") + 2]
    result = subprocess.run(command, cwd=entry["directory"], text=True, check=False,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return result.stdout, result.returncode != 0


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    build = os.path.abspath(arguments[0])
    make_generated_sources(build)
    found = commands(build, newest(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        for text, bad in threads.map(compile_entry, found):
            print(text, end="")
            failed += bad
    print(f"{len(found)} compiled, {failed} with errors")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
