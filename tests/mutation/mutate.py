#!/usr/bin/env python3
"""Takes a safeguard out of the library, by a patch that finds its place itself.

usage: mutate.py check PATCH...              whether each still applies
       mutate.py diff PATCH...               what each changes now, as a unified diff
       mutate.py build OUTPUT LIBRARY PATCH  links LIBRARY once more as OUTPUT, with the patch applied;
                                             in the build folder, where both are

A patch is a line that says which safeguard it removes, and hunks as of a unified diff. But a hunk
names its function in place of lines of a file, so that it goes with the function wherever that is
moved:

    @@ FUNCTION @@
         a line that stays
    -    a line that goes
    +    a line that comes

The lines that stay and go must be found exactly once, but for their indentation, in the functions of
that name in the .c files of interpose/ and pool/. A hunk of lines that come alone has its place where
the body begins, and only one function may have the name.

`build` always makes OUTPUT: where it cannot be the library, it is a text that says why, and the test
that uses it fails with that text.
"""

import difflib
import glob
import os
import re
import shlex
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROOMS = ("interpose", "pool")
ADVICE = (
    "Write the patch anew for the code as it is now (tests/README.md, Mutants), or delete it with its"
    " tests if the safeguard is gone."
)


class Misfit(Exception):
    """A patch that does not apply, or whose result does not compile."""


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def name_of(patch):
    return os.path.splitext(os.path.basename(patch))[0]


# ---- reading ----


def hunks_of(text):
    """The (function, [(sign, line)]) of a patch."""
    first, *lines = text.splitlines()
    if not first.startswith("Without "):
        raise Misfit("the first line does not say which safeguard is removed: Without ...")
    hunks = []
    for line in lines:
        head = re.fullmatch(r"@@ (\w+) @@", line)
        if head:
            hunks.append((head[1], []))
        elif line and line[0] in " -+" and hunks:
            hunks[-1][1].append((line[0], line[1:]))
        elif line:
            raise Misfit(f"neither a hunk's head nor a line of one: {line}")
    if not hunks or not all(any(sign != " " for sign, _ in lines) for _, lines in hunks):
        raise Misfit("a hunk changes nothing, or there is none")
    return hunks


def read_sources(root):
    """The lines of each source by its path."""
    paths = [p for room in ROOMS for p in glob.glob(f"{root}/{room}/**/*.c", recursive=True)]
    return {os.path.relpath(path, root): read(path).splitlines() for path in sorted(paths)}


# ---- applying ----


def definitions(lines, function):
    """The (first line of the body, its closing brace) of each definition in a file."""
    for at, line in enumerate(lines):
        if not re.match(r"([a-zA-Z_].*\W)?" + function + r"\(", line):
            continue
        opening = at
        while opening < len(lines) and lines[opening][-1:] not in ("{", ";", "}"):
            opening += 1
        if opening < len(lines) and lines[opening].endswith("{"):
            yield opening + 1, lines.index("}", opening)


def places_of(lines, begin, end, wanted):
    """Where the wanted lines are in this body; if there are none, at its beginning."""
    body = [line.strip() for line in lines[begin:end]]
    if not wanted:
        return [begin]
    return [begin + at for at in range(len(body)) if body[at : at + len(wanted)] == wanted]


def find(sources, function, wanted):
    """The one (path, line) where a hunk applies. Several files may have a function of the name."""
    bodies = [(path, *body) for path, lines in sources.items() for body in definitions(lines, function)]
    if not bodies:
        raise Misfit(f"no .c file of {' or '.join(ROOMS)} defines {function}")
    places = [(p, at) for p, begin, end in bodies for at in places_of(sources[p], begin, end, wanted)]
    if len(places) != 1:
        what = "these lines are there" if wanted else "that function is there"
        where = ", ".join(sorted({path for path, *_ in bodies}))
        raise Misfit("\n".join([f"{function} ({where}): {what} {len(places)} times, not once", *wanted]))
    return places[0]


def apply_hunk(sources, function, hunk):
    """Changes the sources; returns the path of the one that is changed."""
    wanted = [line.strip() for sign, line in hunk if sign != "+"]
    path, at = find(sources, function, wanted)
    lines = sources[path]
    kept = iter(lines[at : at + len(wanted)])
    result = []
    for sign, line in hunk:
        old = next(kept) if sign != "+" else line
        if sign != "-":
            result.append(old)
    sources[path] = lines[:at] + result + lines[at + len(wanted) :]
    return path


def mutate(patch, root=ROOT):
    """The text of each source that the patch changes, by its path."""
    sources = read_sources(root)
    changed = {apply_hunk(sources, *hunk) for hunk in hunks_of(read(patch))}
    return {path: "\n".join(sources[path]) + "\n" for path in sorted(changed)}


def complaint(patch, misfit):
    return f"mutant {name_of(patch)}: {os.path.relpath(patch, ROOT)} does not fit: {misfit}\n{ADVICE}"


# ---- building ----


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise Misfit(f"{shlex.join(command)}\n{done.stdout}")
    return done.stdout


def commands_of(library):
    """The commands by which the library is built, the last of which links it."""
    ninja = os.environ.get("NINJA", "ninja")
    return [shlex.split(line) for line in run([ninja, "-t", "commands", os.path.relpath(library)]).splitlines()]


def after(command, option):
    return command[command.index(option) + 1] if option in command else None


def compile_as(command, source, output):
    """The compiler's command for another source and output. A mutant may leave things unused."""
    command = [word for word in command if word != "-Werror"] + ["-w"]
    for option, value in (("-c", source), ("-o", output), ("-MF", output + ".d"), ("-MQ", output)):
        if option in command:
            command[command.index(option) + 1] = value
    return command


def compile_mutated(commands, path, text, folder):
    """Compiles a changed source; returns the object that it replaces, and its own."""
    original = os.path.join(ROOT, path)
    found = [c for c in commands if os.path.realpath(after(c, "-c") or "") == os.path.realpath(original)]
    if len(found) != 1:
        raise Misfit(f"{path} is compiled {len(found)} times for the library, not once")
    source = os.path.join(folder, path)
    write(source, text)
    run(compile_as(found[0], source, source + ".o"))
    return after(found[0], "-o"), source + ".o"


def link_as(command, objects, output):
    """The linker's command for another output. An archive's object is not taken beside its mutant."""
    own = [objects.pop(word) if word in objects else word for word in command]
    at = own.index("-o")
    own[at + 1] = output
    own[at + 2 : at + 2] = objects.values()
    return [re.sub(r"^-Wl,-soname,.*", "-Wl,-soname," + os.path.basename(output), word) for word in own]


def build(output, library, patch):
    commands = commands_of(library)
    objects = dict(compile_mutated(commands, *item, output + ".p") for item in mutate(patch).items())
    run(link_as(commands[-1], objects, output))


# ---- commands ----


def check_all(patches):
    misfits = 0
    for patch in patches:
        try:
            mutate(patch)
        except Misfit as misfit:
            print(complaint(patch, misfit))
            misfits += 1
    return 1 if misfits else 0


def print_diffs(patches):
    for patch in patches:
        for path, text in mutate(patch).items():
            old, new = (t.splitlines(True) for t in (read(os.path.join(ROOT, path)), text))
            sys.stdout.writelines(difflib.unified_diff(old, new, "a/" + path, "b/" + path))
    return 0


def build_or_say_why(output, library, patch):
    try:
        build(output, library, patch)
    except Misfit as misfit:
        text = complaint(patch, misfit) + "\n"
        sys.stderr.write(text)
        if os.path.exists(output):
            os.remove(output)
        write(output, text)
    return 0


def main(arguments):
    if len(arguments) >= 2 and arguments[0] == "check":
        return check_all(arguments[1:])
    if len(arguments) >= 2 and arguments[0] == "diff":
        return print_diffs(arguments[1:])
    if len(arguments) == 4 and arguments[0] == "build":
        return build_or_say_why(*arguments[1:])
    sys.stderr.write(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
