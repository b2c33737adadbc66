#!/usr/bin/env python3
"""The tables of the driver's calls against the installed header, and against the newest one that scripts/fetch-runtimes
knows: each function is in calls.inc, with the version from which cuGetProcAddress gives it; and each that takes or
returns device memory or a stream has a hook, or a place in the list of considered ones, which gives the reason why it
needs none. A toolkit that is newer than the tables fails the test until they name what it brought.

usage: test_calls.py INTERPOSE_FOLDER CONSIDERED INCLUDE_FOLDER NEWEST_INCLUDE_FOLDER COMPILER [ARGUMENT...]"""

import os
import re
import subprocess
import sys

ROW = re.compile(r"^BFC_CALL\((\w+), (\d+), (\w+)\)$", re.M)
HOOK = re.compile(r"^(cu\w+)@BFC_BOUND$", re.M)
FUNCTION = re.compile(r"\bCUresult\s+(cu\w+)\s*\(([^;{]*?)\)\s*;")
TYPE = re.compile(r"\bPFN_(cu\w+?)_v(\d+)((?:_pt[ds]s|_ptsz)?)\b")
SYMBOL = re.compile(r"^(cu\w+?)(_v\d+)?(_ptds|_ptsz)?$")
VERSION = re.compile(r"^#define\s+CUDA_VERSION\s+(\d+)$", re.M)
RECORD = re.compile(r"typedef\s+(?:struct|union)\s+\w*\s*\{")
ALIAS = re.compile(r"\btypedef\s+(\w+)\s+(\w+)\s*;")
# Device memory and streams; records that hold one of them are found.
HANDLES = {"CUdeviceptr", "CUdeviceptr_v1", "CUdeviceptr_v2", "CUstream", "CUarray", "CUmipmappedArray", "CUmemoryPool",
           "CUmemGenericAllocationHandle", "CUipcMemHandle", "CUexternalMemory", "CUgraphicsResource"}
ADDRESS = re.compile(r"\bvoid\s*\*+\s*(\w*[aA]ddress\w*|pp?|ptr)\b")  # as the header names addresses


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def preprocessed(include, compiler):
    """The header with all variants, as the compiler sees it."""
    return subprocess.run(compiler + ["-E", "-P", "-I", include, "-D__CUDA_API_VERSION_INTERNAL", "-x", "c", "-"],
                          input="#include <cuda.h>\n", capture_output=True, text=True, check=True).stdout


def end_of_braces(text, begin):
    depth = 1
    while depth:
        depth += {"{": 1, "}": -1}.get(text[begin], 0)
        begin += 1
    return begin


def holders(text):
    """The types that are, or hold, device memory or a stream."""
    bodies = [(new, {old}) for old, new in ALIAS.findall(text)]
    for found in RECORD.finditer(text):
        end = end_of_braces(text, found.end())
        name = re.match(r"\s*(\w+)\s*;", text[end:])
        if name:
            bodies.append((name[1], set(re.findall(r"\w+", text[found.end():end]))))
    known, before = set(HANDLES), 0
    while len(known) > before:
        before = len(known)
        known |= {name for name, words in bodies if words & known}
    return known


class Header:
    """What a folder's cuda.h declares."""

    def __init__(self, include, compiler):
        text = preprocessed(include, compiler)
        self.functions = dict(FUNCTION.findall(text))
        known = holders(text)
        self.of_memory = {name for name, arguments in self.functions.items()
                          if set(re.findall(r"\w+", arguments)) & known or ADDRESS.search(arguments)}
        self.version = int(VERSION.search(read(os.path.join(include, "cuda.h")))[1])
        self.types = set(TYPE.findall(read(os.path.join(include, "cudaTypedefs.h"))))

    def name(self):
        return f"CUDA {self.version // 1000}.{self.version % 1000 // 10}"


class Tables:
    """What the library knows of the driver, and what was considered."""

    def __init__(self, interpose, considered):
        self.rows = ROW.findall(read(os.path.join(interpose, "driver", "calls.inc")))
        self.hooked = set(HOOK.findall(read(os.path.join(interpose, "entry", "symbols.list"))))
        self.considered = [word for line in read(considered).splitlines() if not line.startswith("#") for word in line.split()]

    def contradictions(self):
        symbols = [symbol for symbol, _, _ in self.rows]
        twice = {name for names in (symbols, self.considered) for name in names if names.count(name) > 1}
        return [f"{name} is there twice" for name in sorted(twice)] + \
            [f"{name} has a hook and is among the considered" for name in sorted(set(self.considered) & self.hooked)] + \
            [f"{name} is among the considered, and not in calls.inc" for name in sorted(set(self.considered) - set(symbols))]

    def lacks(self, header):
        """What the header has and the tables do not name."""
        symbols = {symbol for symbol, _, _ in self.rows}
        listed = {SYMBOL.match(symbol).group(1, 3) + (version,) for symbol, version, _ in self.rows}
        return [f"{symbol} is not in calls.inc: what may it need device memory for?"
                for symbol in sorted(set(header.functions) - symbols)] + \
            [f"{name}{ending}, version {version}: not in calls.inc" for name, version, ending in sorted(header.types)
             if (name, ending or None, version) not in listed] + \
            [f"{symbol} takes or returns device memory or a stream: has no hook, and is not among the considered"
             for symbol in sorted(header.of_memory - self.hooked - set(self.considered))]


def main():
    interpose, considered, include, newest, *compiler = sys.argv[1:]
    tables = Tables(interpose, considered)
    failures = tables.contradictions()
    print(f"{len(tables.rows)} calls, {len(tables.hooked)} hooks, {len(tables.considered)} considered", *failures, sep="\n  ")
    for folder in (include, newest):
        if not os.path.exists(os.path.join(folder, "cudaTypedefs.h")):
            print(f"{folder}: no headers there")
            continue
        header = Header(folder, compiler)
        lacks = tables.lacks(header)
        print(f"{header.name()}: {len(header.functions)} functions, {len(header.of_memory)} with device memory or streams;"
              f" {len(lacks)} unknown", *lacks, sep="\n  ")
        failures += lacks
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
