#!/usr/bin/env python3
"""The figures on users' pages, which tools print of files in the repository.

usage: figures.py check|update SOURCE-ROOT BFCREPLAY BFCPLAN

After a line `<!-- figures -->` a block of console has commands, `$ bfcplan ...`, and what they print;
what depends on the machine (times) is not compared. After `<!-- figures: COMMAND : KEY ... -->` each row
of a table has in its first cell, in backquotes, what is added to that command, and in the next cells
these keys of the JSON that it prints. `check` fails where a page says anything else; `update` (ninja
figures) writes what it should say. So it is with the plot of what the benchmark `scale` has measured.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

MIB = 1 << 20
BLOCK = re.compile(r"(<!-- figures -->\n```console\n)(.*?)(```)", re.DOTALL)
TABLE = re.compile(r"(<!-- figures: ([^\n]*?) -->\n\|[^\n]*\n\|[-|]*\n)((?:\|[^\n]*\n)+)")
# (pattern, replacement): figures that another machine, or another moment, would not repeat.
OF_THE_MACHINE = [
    (re.compile(r"^(time +)[\d.]+ s$", re.MULTILINE), r"\1… s"),
    (re.compile(r"(  pairs +\d+) .*"), r"\1"),
    (re.compile(r"^((?:bfc|tf|pytorch) .*%.* [\d.]+) +\d+( +\d+)$", re.MULTILINE), r"\1        …\2"),
]


class Tools:
    """Runs the tools in the repository, with files that they write kept apart."""

    def __init__(self, root, bfcreplay, bfcplan):
        self.root = root
        self.paths = {"bfcreplay": os.path.abspath(bfcreplay), "bfcplan": os.path.abspath(bfcplan)}
        self.written = {}
        self.folder = tempfile.TemporaryDirectory()

    def place(self, word, earlier):
        """A file that a command writes, or that an earlier one wrote, lies in our folder."""
        if earlier in ("-o", "--offsets"):
            self.written[word] = os.path.join(self.folder.name, os.path.basename(word))
        return self.written.get(word, word)

    def run(self, command):
        words = shlex.split(command)
        words = [self.paths[words[0]]] + [self.place(word, words[i]) for i, word in enumerate(words[1:])]
        result = subprocess.run(words, cwd=self.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, check=False)
        return result.stdout

    def block(self, text):
        """The block with what its commands print now."""
        lines = []
        for command in re.findall(r"^\$ (.*)$", text, re.MULTILINE):
            printed = self.run(command)
            for pattern, replacement in OF_THE_MACHINE:
                printed = pattern.sub(replacement, printed)
            lines.append(f"$ {command}\n{printed}")
        return "".join(lines)

    def row(self, line, command, keys):
        """The row with its figures as they are now."""
        cells = line.strip().strip("|").split("|")
        more = re.findall(r"`([^`]*)`", cells[0])
        values = json.loads(self.run(f"{command} {' '.join(more)} --json"))
        shown = [show(key, values) for key in keys]
        return "|" + "|".join([cells[0], *(f" {value} " for value in shown), *cells[1 + len(keys):]]) + "|\n"

    def table(self, text, command):
        command, keys = command.split(" : ")
        return "".join(self.row(line, command, keys.split()) for line in text.splitlines())


def show(key, values):
    """A figure of the tools' JSON as pages have it."""
    value = values[key]
    if key == "waste":
        return f"{100 * value:.1f} %"
    if key.startswith("peak"):
        return f"{value / MIB:,.1f} MiB"
    return f"{value:,}"


def renewed(tools, text):
    text = BLOCK.sub(lambda m: m[1] + tools.block(m[2]) + m[3], text)
    return TABLE.sub(lambda m: m[1] + tools.table(m[3], m[2]), text)


def plotted(root):
    """The plot's file, and what should be in it."""
    folder = os.path.join(root, "tests/bench/scale")
    sys.path.insert(0, folder)
    import plot  # noqa: E402  beside what it draws
    return os.path.join(root, "docs/pictures/scale.svg"), plot.svg(os.path.join(folder, "rows.json"))


def pages(root):
    for folder, _, names in os.walk(os.path.join(root, "docs")):
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(".md"))
    yield os.path.join(root, "README.md")


def main(what, root, bfcreplay, bfcplan):
    tools = Tools(root, bfcreplay, bfcplan)
    stale = 0
    picture, drawing = plotted(root)
    for page in [picture, *pages(root)]:
        with open(page, encoding="utf-8") as file:
            old = file.read()
        new = drawing if page == picture else renewed(tools, old)
        if new == old:
            continue
        stale += 1
        if what == "update":
            with open(page, "w", encoding="utf-8") as file:
                file.write(new)
        else:
            for before, after in zip(old.splitlines(), new.splitlines()):
                if before != after:
                    print(f"{page} says {before}\n  and should say {after}")
                    break
    if stale and what == "check":
        print("run ninja figures, and read whether the text still agrees with them")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
