#!/usr/bin/env python3
"""Arrows between files point one way: arrows.py SOURCE-ROOT BUILD-ROOT.

An arrow goes from a file to what it imports: by #include, or by using a symbol that the other
defines (read from the objects that the build made, with nm). A header and the source file of the
same name are one file. None may go up a floor or to another room on the same floor (tests/lint/floors),
and no files may import each other in a circle: the shortest circle is printed, and what makes each
arrow. Exit status as lint.py.
"""

import collections
import json
import os
import re
import subprocess
import sys

import lint

# The linker's, wherever it is defined; and the C library's, before which the library puts its own.
RESERVED = {"__dso_handle", "dlopen", "dlsym", "dlvsym"}
FEATURES = "interpose/features/"
COMMON = "interpose/features/common"  # what several features use
SUFFIX = re.compile(r"\.(c|h|S)$")


def unit_of(name):
    return SUFFIX.sub("", name)


class Floors:
    """The table: which room a file belongs to, how high it stands, which may have circles."""

    def __init__(self, text):
        self.height = {}
        self.with_cycles = set()
        lines = [line.split() for line in text.splitlines() if line and line[0] != "#"]
        for depth, words in enumerate(lines):
            if words[0] == "cycles":
                self.with_cycles.update(words[1:])
            else:
                self.height.update({room: -depth for room in words})

    def room(self, name):
        while name and name not in self.height:
            name = name.rpartition("/")[0]
        return name

    def allows(self, start, end):
        start, end = self.room(start), self.room(end)
        return start == end or self.height[start] > self.height[end]


class Arrows:
    """{file: {imported file: how}}"""

    def __init__(self):
        self.of = collections.defaultdict(dict)

    def add(self, start, end, how):
        if start != end:
            self.of[start].setdefault(end, how)


def add_includes(arrows, root, names):
    known = set(names)
    for name in names:
        text = lint.read(root, name)
        for quoted in re.findall(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', text, re.MULTILINE):
            if quoted in known:
                arrows.add(unit_of(name), unit_of(quoted), f'includes "{quoted}"')


def objects(root, build, names):
    """(file, target, object) of what the build has compiled."""
    known = set(names)
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        for entry in json.load(file):
            folder = entry["directory"]
            source = os.path.relpath(os.path.join(folder, entry["file"]), root)
            path = os.path.join(folder, entry["output"])
            if source in known and os.path.exists(path):
                yield unit_of(source), entry["output"].split(".p/")[0], path


def symbols(found):
    """{object: (defined, undefined)}"""
    table = collections.defaultdict(lambda: (set(), set()))
    paths = [path for _, _, path in found]
    for i in range(0, len(paths), 500):
        for line in lint.run("nm", "-A", "-g", *paths[i:i + 500]).stdout.splitlines():
            path, _, rest = line.partition(":")
            kind, name = rest.split()[-2:]
            table[path][kind in "Uw"].add(name)
    return table


def add_calls(arrows, floors, found):
    """A symbol is of the target's own objects, else of the product's. What a test defines for others is no
    arrow: it stands in for a part that the test leaves out."""
    table = symbols(found)
    own, product = collections.defaultdict(set), collections.defaultdict(set)
    for unit, target, path in found:
        for name in table[path][0]:
            own[target, name].add(unit)
            if not unit.startswith("tests/"):
                product[name].add(unit)
    for unit, target, path in found:
        for name in table[path][1] - RESERVED:
            definers = own.get((target, name))
            if not definers and not unit.startswith("tests/"):
                definers = product.get(name)
            for definer in definers if definers and len(definers) == 1 else ():
                if floors.room(definer) != "tests" or floors.room(unit) == "tests":
                    arrows.add(unit, definer, f"uses {name}")


def chain_back(arrows, start, inside):
    """The shortest way from a file back to itself within `inside`, or None."""
    before, queue = {}, collections.deque([start])
    while queue:
        at = queue.popleft()
        for end in sorted(arrows.of[at]):
            if end == start:
                chain = [start]
                while at != start:
                    chain.append(at)
                    at = before[at]
                return [start] + chain[:0:-1] + [start]
            if end in inside and end not in before:
                before[end] = at
                queue.append(end)
    return None


def shown(arrows, chain):
    steps = [f"  {start} {arrows.of[start][end]}" for start, end in zip(chain, chain[1:])]
    return "\n".join(steps)


def misplaced(floors):
    """The core may call no feature, and no feature another: these share a floor, and the core is below it."""
    features = {room: height for room, height in floors.height.items() if room.startswith(FEATURES) and room != COMMON}
    for room, height in sorted(floors.height.items()):
        if room in features and height != min(features.values()):
            yield f"{room} is not on the floor of the other features"
        elif features and room not in features and room.startswith("interpose/") and height >= min(features.values()):
            yield f"{room} is of the core, and not below the features"


def faults(arrows, floors):
    for start in sorted(arrows.of):
        for end, how in sorted(arrows.of[start].items()):
            if not floors.allows(start, end):
                yield (f"{start} {how}: an arrow from {floors.room(start)} "
                       f"to {floors.room(end)}, which is not below it:\n  {start} -> {end}")
    told = set()
    for start in sorted(arrows.of):
        if start in told or floors.room(start) in floors.with_cycles:
            continue
        inside = {unit for unit in arrows.of if floors.room(unit) == floors.room(start)}
        chain = chain_back(arrows, start, inside)
        if chain:
            told.update(chain)
            yield "files import each other:\n" + shown(arrows, chain)


def main(root, build):
    lint.need("nm")
    floors = Floors(lint.read(root, "tests/lint/floors"))
    names = [name for name in lint.sources(root) if SUFFIX.search(name)]
    homeless = [name for name in names if not floors.room(name)]
    arrows = Arrows()
    add_includes(arrows, root, names)
    found = list(objects(root, build, names))
    add_calls(arrows, floors, found)
    told = [f"{name} is in no room of tests/lint/floors" for name in homeless]
    told = told or [*misplaced(floors), *faults(arrows, floors)]
    print(f"{len(names)} files, {len(found)} objects, "
          f"{sum(map(len, arrows.of.values()))} arrows")
    print("\n".join(told))
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
