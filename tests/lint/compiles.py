#!/usr/bin/env python3
"""Every source compiles without a warning: compiles.py BUILD-FOLDER.

For a build folder in which only some targets were built: each source file of which it has no object is
compiled once, as the first target that has it would, for the compiler's messages alone. That finds what a
whole build with this compiler would find, without its objects and links, and without a file that many
targets share being compiled for each of them. Prints the messages; exit status 1 if there are any errors
(with -Werror: or warnings), 2 for a wrong command line.
"""

import concurrent.futures
import json
import os
import shlex
import subprocess
import sys


def load(build, name):
    with open(os.path.join(build, name), encoding="utf-8") as file:
        return json.load(file)


def make_generated_sources(build):
    names = [os.path.relpath(name, build)
             for target in load(build, "meson-info/intro-targets.json") if target["type"] == "custom"
             for name in target["filename"] if name.endswith((".c", ".h"))]
    if names:
        subprocess.run(["ninja", "--quiet", "-C", build, *names], check=True)


def commands(build):
    """{source: its first compile command} for the sources without an object."""
    first, made = {}, set()
    for entry in load(build, "compile_commands.json"):
        source = entry["file"]
        first.setdefault(source, entry)
        if os.path.exists(os.path.join(build, entry["output"])):
            made.add(source)
    return {source: entry for source, entry in first.items() if source not in made}


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
    found = commands(build)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        for text, bad in threads.map(compile_entry, found.values()):
            print(text, end="")
            failed += bad
    print(f"{len(found)} sources compiled, {failed} with errors")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
