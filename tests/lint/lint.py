#!/usr/bin/env python3
"""Checks rules for the sources: lint.py CHECK SOURCE-ROOT [ARGUMENT...].

Each CHECK is one of the functions below that are named check_...; it yields one line a fault. Exit
status 0 when there is none, 1 when there is, 77 when the tool that the check needs is not there.
"""

import os
import re
import shutil
import subprocess
import sys

SKIPPED = 77
C_SUFFIXES = (".c", ".h")


def sources(root):
    """All files of the project, relative to its root: those that git tracks or would add; without git all."""
    try:
        listed = subprocess.run(
            ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
        ).stdout.decode()
        names = [name for name in listed.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        names = [
            os.path.relpath(os.path.join(folder, name), root)
            for folder, _, files in os.walk(root)
            for name in files
        ]
        names = [n for n in names if not re.match(r"build[^/]*/|\.git/", n)]
    return sorted(n for n in set(names) if os.path.isfile(os.path.join(root, n)))


def read(root, name):
    with open(os.path.join(root, name), encoding="utf-8", errors="replace") as file:
        return file.read()


def c_sources(root):
    return [name for name in sources(root) if name.endswith(C_SUFFIXES)]


def need(program):
    if not shutil.which(program):
        print(f"{program} is not installed")
        sys.exit(SKIPPED)


def run(*command, **more):
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more
    )


def check_format(root):
    """clang-format has nothing to change."""
    need("clang-format")
    result = run("clang-format", "--dry-run", "-Werror", "--style=file", *c_sources(root), cwd=root)
    if result.returncode:
        yield from sorted({line.split(": error")[0] for line in result.stdout.splitlines()
                           if ": error" in line})


def check_headers(root, *compiler):
    """Every header compiles alone. One that a source includes before anything else does so whenever that is built."""
    first = {re.search(r'#include "([^"]+)"', text)[1] for name in c_sources(root) if name.endswith(".c")
             for text in [read(root, name)] if re.match(r'[^#]*#include "', text)}
    for name in c_sources(root):
        if not name.endswith(".h") or name in first:
            continue
        result = run(*compiler, "-std=c17", "-D_GNU_SOURCE", "-I", root, "-fsyntax-only", "-Wall",
                     "-Werror", "-Wno-unused", "-x", "c", "-include", os.path.join(root, name),
                     os.devnull)
        if result.returncode:
            yield f"{name} does not compile alone:\n{result.stdout}"


POOL_HEADERS = {
    "assert.h", "errno.h", "limits.h", "pthread.h", "stdalign.h", "stdatomic.h", "stdbool.h",
    "stddef.h", "stdint.h", "stdlib.h", "string.h", "time.h", "sys/mman.h", "unistd.h", "sched.h",
}


def check_includes(root):
    """Includes are relative to the root, and the pool's are few: it knows neither CUDA nor the system."""
    for name in c_sources(root):
        for quoted, system in re.findall(
            r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', read(root, name), re.MULTILINE
        ):
            if name.startswith("pool/") and system and system not in POOL_HEADERS:
                yield f"{name} includes <{system}>: the pool knows neither CUDA nor the system"
            if "/" in quoted and not os.path.exists(os.path.join(root, quoted)):
                yield f'{name} includes "{quoted}", which is not relative to the root'


# Written so that this file does not contain them.
FORBIDDEN = [
    r"/wor" + r"k/",
    r"pypi\." + r"org", r"pythonhosted\." + r"org", r"deb\.debian\." + r"org",
    r"pypi\.nvidia\." + r"com", r"pypi\.ngc\." + r"nvidia",
    r"\bTO" + r"DO\b", r"\bFIX" + r"ME\b", r"\bX" + r"XX\b",
]
SHARED = r"\.\./sha" + r"red"


def check_words(root):
    """Nothing refers to places or notes of one workplace; only tests may look for shared data."""
    for name in sources(root):
        if name == "LICENSE":
            continue
        for number, line in enumerate(read(root, name).splitlines(), 1):
            for pattern in FORBIDDEN + ([] if name.startswith("tests/") else [SHARED]):
                if re.search(pattern, line):
                    yield f"{name}:{number}: {line.strip()}"


BANNED = {
    "exit", "_exit", "_Exit", "quick_exit", "umask", "signal", "sigaction", "sigset", "system",
    "popen", "printf", "__printf_chk", "vprintf", "puts", "putchar", "stdout",
}


def check_banned(root, library):
    """The library never ends its host, changes its umask or signals, or writes to its stdout."""
    need("nm")
    lines = run("nm", "-D", "--undefined-only", library).stdout.splitlines()
    used = {line.split()[-1].split("@")[0] for line in lines if line.strip()}
    for name in sorted(used & BANNED):
        yield f"the library uses {name}"


MARKED = re.compile(r"(<!-- bfcopts markdown ([^\n]*)-->\n)(.*?)(<!-- end -->)", re.DOTALL)


def with_table(text, bfcopts):
    """The page with the rows of the variables that its mark names, as bfcopts prints them."""
    lines = run(bfcopts, "markdown").stdout.splitlines(keepends=True)
    rows = dict((re.match(r"\| `(\w+)`", line)[1], line) for line in lines[2:])

    def table(mark):
        return mark[1] + "".join(lines[:2] + [rows[name] for name in mark[2].split()]) + mark[4]

    return MARKED.sub(table, text)


def check_table(root, bfcopts):
    """The table of everyday variables in docs/settings.md is the table in the code."""
    text = read(root, "docs/settings.md")
    if not MARKED.search(text) or with_table(text, bfcopts) != text:
        yield "docs/settings.md does not hold what `bfcopts markdown` prints: run ninja settings"


def check_update(root, bfcopts):
    """Not a check: writes the table into docs/settings.md, between the lines that mark its place."""
    text = with_table(read(root, "docs/settings.md"), bfcopts)
    with open(os.path.join(root, "docs/settings.md"), "w", encoding="utf-8") as file:
        file.write(text)
    return []


def check_segment(root, parts):
    """docs/internals/segment.md has the header's sizes."""
    page = read(root, "docs/internals/segment.md").splitlines()
    for line in run(parts).stdout.splitlines():
        if not any(line in there for there in page):
            yield f"docs/internals/segment.md does not hold: {line}"


def check_help(root, bfcopts):
    """bfcrun --help lists every variable, and nothing that is none."""
    build = os.path.dirname(os.path.dirname(os.path.abspath(bfcopts)))
    env = dict(os.environ, BFC_BUILD=build)
    shown = run(os.path.join(root, "scripts", "bfcrun"), "--help", env=env).stdout
    listed = set(re.findall(r"^  (--[a-z-]+)=VALUE$", shown, re.MULTILINE))
    for flag in sorted(listed ^ set(run(bfcopts, "flags").stdout.split())):
        yield f"{flag} is not both in the table and in bfcrun --help"


ALL_ROUTES, ALL_MODES = ("shared", "static", "driver"), ("sync", "lazy", "ordered")


def only(words, names):
    """Those of the names that are among the words, or all of them where none is."""
    return ",".join(name for name in names if name in words) or ",".join(names)


def check_cases(root):
    """docs/internals/conformance.md has the cases that tests/conformance/list has, by the same routes."""
    shown = {}
    for line in read(root, "docs/internals/conformance.md").split("\n"):
        case = re.match(r"- \*\*(\d+)\*\* [^:]*?(?:\(only ([\w,; ]+)\))?:", line)
        if case:
            words = re.findall(r"\w+", case[2] or "")
            shown[int(case[1])] = f"{only(words, ALL_ROUTES)} {only(words, ALL_MODES)}"
    listed = {}
    for line in read(root, "tests/conformance/list").split("\n"):
        if line and not line.startswith("#"):
            number, routes, modes = line.split(" ")[:3]
            listed[int(number)] = f"{routes} {modes}"
    for number in sorted({*range(1, 49), *listed, *shown}):
        if number not in listed or listed[number] != shown.get(number):
            yield (f"case {number}: listed as {listed.get(number)}, "
                   f"in docs/internals/conformance.md as {shown.get(number)}")


def named_paths(page, text):
    """(line, path) of each path in backticks, from the root, and of each relative link."""
    for number, line in enumerate(text.splitlines(), 1):
        for path in re.findall(r"`([\w.-]+/[\w./-]*)`", line):
            yield number, path
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", line):
            yield number, os.path.normpath(os.path.join(os.path.dirname(page), link))


def check_paths(root):
    """Files and folders that documents name exist; of a built program, its source does."""
    names = sources(root)
    there = {os.path.dirname(name)[:end] for name in names
             for end in [None, *(m.start() for m in re.finditer("/", name))]} | set(names)
    tops = {name.split("/")[0] for name in names if "/" in name}
    for page in names:
        if not page.endswith(".md"):
            continue
        here = os.path.dirname(page) + "/"
        for number, path in named_paths(page, read(root, page)):
            path = path.rstrip("/")
            known = {path, path + ".c", here + path, here + path + ".c"} & there
            if path.split("/")[0] in tops and not known:
                yield f"{page}:{number}: there is no {path}"


def anchors(text):
    """The anchors of a page's headings, as GitHub makes them."""
    seen = {}
    for heading in re.findall(r"^#+ +(.*?) *$", without_code(text), re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w -]", "", plain).replace(" ", "-")
        count = seen[anchor] = seen.get(anchor, -1) + 1
        yield anchor if count == 0 else f"{anchor}-{count}"


def without_code(text):
    """The page with its blocks and spans of code blank, so that nothing in them counts as a link or heading."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def linked_pages(root, name, text):
    """(page, anchor) of each link of a page, and of each page of docs/ that any other file names."""
    if name.endswith(".md"):
        for link, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)", without_code(text)):
            yield os.path.normpath(os.path.join(os.path.dirname(name), link)) if link else name, anchor
    elif name != "tests/lint/lint.py":
        yield from re.findall(r"(?<![\w/-])(docs/[\w./-]*\.md)(?:#([\w-]+))?", text)


def check_links(root):
    """Links within the documents lead to a file and a heading, and pages that sources name exist."""
    pages = {}
    for name in sources(root):
        for page, anchor in linked_pages(root, name, read(root, name)):
            if not os.path.exists(os.path.join(root, page)):
                yield f"{name}: there is no {page}"
            elif anchor and page.endswith(".md"):
                if page not in pages:
                    pages[page] = set(anchors(read(root, page)))
                if anchor not in pages[page]:
                    yield f"{name}: {page} has no heading for #{anchor}"


HACKING = "docs/internals/HACKING.md"


def defines(code, name):
    """Whether C code has the function's body."""
    return re.search(rf"^[A-Za-z][^;{{}}=]*\b{name}\([^;{{}}]*\)\s*{{", code, re.MULTILINE)


def check_hacking(root):
    """Files that HACKING names without their folder exist; the functions that it names are defined somewhere, and where
    a file stands after one ("`f()` in `file`", "`f()`, `file`"), in that file."""
    page = read(root, HACKING)
    names = {os.path.basename(name) for name in sources(root)}
    for name in sorted(set(re.findall(r"`([\w.-]+\.(?:c|h|js|py|list|inc))`", page)) - names):
        yield f"{HACKING} names {name}, and there is no such file"
    code = "".join(read(root, name) for name in c_sources(root) if not name.startswith("tests/"))
    for name in sorted(set(re.findall(r"`(\w+)\(\)`", page))):
        if not defines(code, name):
            yield f"{HACKING} names {name}(), and there is no such function"
    for name, path in sorted(set(re.findall(r"`(\w+)\(\)`(?: in|,) `([\w./-]+/[\w.-]+\.[ch])`", page))):
        if not defines(read(root, path), name):
            yield f"{HACKING} says that {name}() is in {path}, and it is not"


ROOM_TREES = ("base", "interpose", "layout", "planner", "pool", "segment", "tools")


def rooms_of(root):
    """Every folder below ROOM_TREES with sources of its own."""
    endings = (".c", ".h", ".S", ".py", ".js", "bfcplan-import")
    return {os.path.dirname(name) for name in sources(root)
            if name.split("/")[0] in ROOM_TREES and name.endswith(endings)}


def check_rooms(root):
    """The lists of rooms in HACKING have every folder with sources, and none that is not there."""
    page = HACKING
    rows = re.findall(r"^- ((?:`[\w./-]+/`(?:, )?)+): ", read(root, page), re.MULTILINE)
    shown = [room.rstrip("/") for row in rows for room in re.findall(r"`([^`]+)`", row)
             if room.split("/")[0] in ROOM_TREES]
    for room in sorted({room for room in shown if shown.count(room) > 1}):
        yield f"{page} has {room} twice"
    for room in sorted(set(shown) ^ rooms_of(root)):
        yield f"{page} lacks {room}" if room not in shown else f"{page} has {room}, which is no folder with sources"


MOST_WORDS = 40000


def check_length(root):
    """README and docs/ together stay short enough to be read."""
    pages = ["README.md", *(n for n in sources(root) if n.startswith("docs/") and n.endswith(".md"))]
    words = sum(len(read(root, page).split()) for page in pages)
    if words > MOST_WORDS:
        yield f"README.md and docs/ have {words} words, at most {MOST_WORDS} are wanted: cut or link"


TWO_WORD_TREES = ("base/", "interpose/", "layout/", "planner/", "pool/", "segment/", "tools/")


def check_names(root):
    """No static function's name is one bare word: `take` says too little where it is called."""
    for name in c_sources(root):
        if name.startswith(TWO_WORD_TREES):
            for word in re.findall(r"^static [^=;(]*?\b([a-z0-9]+)\(", read(root, name), re.MULTILINE):
                if word not in ("main", "assert"):
                    yield f"{name}: static function {word}() is one bare word: name it verb_noun"


def is_script(root, name, interpreter):
    first = read(root, name).split("\n", 1)[0]
    return first.startswith("#!") and re.search(rf"\b{interpreter}\b", first)


def check_shell(root):
    """shellcheck has nothing to say."""
    need("shellcheck")
    names = [n for n in sources(root) if not n.endswith(C_SUFFIXES) and is_script(root, n, "(ba)?sh")]
    result = run("shellcheck", "--", *names, cwd=root)
    if result.returncode:
        yield result.stdout


def check_python(root):
    """All Python compiles."""
    for name in sources(root):
        if name.endswith(".py"):
            try:
                compile(read(root, name), name, "exec")
            except SyntaxError as error:
                yield f"{name}:{error.lineno}: {error.msg}"


def functions(text):
    """(name, lines) of each function of a formatted C file."""
    start = name = None
    for number, line in enumerate(text.splitlines(), 1):
        head = re.match(r"[A-Za-z_].*?\b(\w+)\(", line)
        if head and start is None and not line.rstrip().endswith(";"):
            start, name = number, head.group(1)
        if start and line.startswith("}"):
            yield name, number - start + 1
            start = None
        elif start and not line.startswith((" ", "\t", "}")) and line.endswith(";"):
            start = None


def check_size(root):
    """No function over 80 lines, no file over 700."""
    for name in c_sources(root):
        text = read(root, name)
        if text.count("\n") > 700:
            yield f"{name} has {text.count(chr(10))} lines"
        for function, lines in functions(text):
            if lines > 80:
                yield f"{name}: {function} has {lines} lines"


def main(arguments):
    check = globals()[f"check_{arguments[0]}"]
    faults = list(check(*arguments[1:]))
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
