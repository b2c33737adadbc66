#!/usr/bin/env python3
"""The tables of the driver's calls against the installed header, and against the newest one that scripts/fetch-runtimes
knows: each function is in calls.inc, with the version from which cuGetProcAddress gives it; and each that takes or
returns device memory or a stream has a hook, or a place in the list of considered ones, which gives the reason why it
needs none; and each that takes a stream, or whose name says that it submits work, counts a submission to the stream
that it takes, or has a place in the list of those that submit nothing; and each that takes an address of device memory
or a graph is made with memory awake, or has a place in the list of those for which memory stays asleep. A toolkit that
is newer than the tables fails the test until they name what it brought.

usage: test_calls.py INTERPOSE_FOLDER CONSIDERED SUBMIT_NOTHING STAY_ASLEEP INCLUDE_FOLDER NEWEST_INCLUDE_FOLDER
                     COMPILER [ARGUMENT...]"""

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
# What may be, or hold, an address of device memory that the driver is told.
ADDRESSES = {"CUdeviceptr", "CUdeviceptr_v1", "CUdeviceptr_v2", "CUaccessPolicyWindow", "CUgraph", "CUgraphExec", "CUgraphNode"}
SUBMITS = re.compile(r"cu(Launch|Memcpy|Memset)")
# The rows of the tables whose hooks count a submission: name, parameters or their number, stream, per-thread or not.
COUNTED = """
#include "interpose/driver/submission_calls.h"
#define WORDS(name, words, stream, per_thread) <name @ words @ stream @ per_thread>
#define TYPED(name, parameters, arguments, stream, per_thread) <name @ parameters @ stream @ per_thread>
#define LEGACY(name, parameters, arguments, to, from, per_thread) <name @ parameters @ 0 @ per_thread>
#define BFC_IN(stream, per_thread) stream @ per_thread
#define place_of_launch(how, per_thread) how @ per_thread
#define PLACED(name, parameters, arguments, place) <name @ parameters @ place>
#define BYPASS(name, parameters, arguments, kind, bytes, place) <name @ parameters @ place>
the rows:
BFC_SUBMISSION_CALLS(WORDS) BFC_STREAM_CALLS(TYPED) BFC_SYNCHRONOUS_CALLS(LEGACY) BFC_INCIDENTAL_CALLS(PLACED)
BFC_BYPASS_CALLS(BYPASS)
"""
# The rows of the tables whose hooks wake memory that is asleep.
AWAKE = """
#include "interpose/driver/submission_calls.h"
#define NAMED(name, ...) <name>
#define MADE(name, parameters, call, then, place) <name @ place>
the rows:
BFC_AWAKE_CALLS(NAMED) BFC_SUBMISSION_CALLS(NAMED) BFC_STREAM_CALLS(NAMED) BFC_SYNCHRONOUS_CALLS(NAMED)
BFC_INCIDENTAL_CALLS(NAMED) BFC_BYPASS_CALLS(NAMED) BFC_MAKING_CALLS(MADE) BFC_CAPTURE_CALLS(NAMED)
BFC_ASKED_CALLS(NAMED)
"""
COUNTED_ROW = re.compile(r"<(\w+) @ ([^@]*) @ ([^@]*) @ (\w+)>")
ADDRESS = re.compile(r"\bvoid\s*\*+\s*(\w*[aA]ddress\w*|pp?|ptr)\b")  # as the header names addresses


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def rows_of(interpose, include, compiler, text):
    """What the preprocessor makes of tables of the library."""
    root = os.path.dirname(os.path.abspath(interpose))
    made = subprocess.run(compiler + ["-E", "-P", "-I", root, "-I", include, "-x", "c", "-"],
                          input=text, capture_output=True, text=True, check=True).stdout
    return made[made.index("the rows:"):]


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


def holders(text, handles):
    """The types that are, or hold, one of these handles."""
    bodies = [(new, {old}) for old, new in ALIAS.findall(text)]
    for found in RECORD.finditer(text):
        end = end_of_braces(text, found.end())
        name = re.match(r"\s*(\w+)\s*;", text[end:])
        if name:
            bodies.append((name[1], set(re.findall(r"\w+", text[found.end():end]))))
    known, before = set(handles), 0
    while len(known) > before:
        before = len(known)
        known |= {name for name, words in bodies if words & known}
    return known


class Header:
    """What a folder's cuda.h declares."""

    def __init__(self, include, compiler):
        text = preprocessed(include, compiler)
        self.functions = dict(FUNCTION.findall(text))
        known, streams, addresses = (holders(text, some) for some in (HANDLES, {"CUstream"}, ADDRESSES))
        self.of_memory = {name for name, arguments in self.functions.items()
                          if set(re.findall(r"\w+", arguments)) & known or ADDRESS.search(arguments)}
        self.of_address = {name for name, arguments in self.functions.items()
                           if set(re.findall(r"\w+", arguments)) & addresses or ADDRESS.search(arguments)}
        self.of_stream = {name: [at for at, argument in enumerate(arguments.split(","))
                                 if set(re.findall(r"\w+", argument)) & streams]
                          for name, arguments in self.functions.items()}
        self.version = int(VERSION.search(read(os.path.join(include, "cuda.h")))[1])
        self.types = set(TYPE.findall(read(os.path.join(include, "cudaTypedefs.h"))))

    def name(self):
        return f"CUDA {self.version // 1000}.{self.version % 1000 // 10}"


def names_in(path):
    return [word for line in read(path).splitlines() if not line.startswith("#") for word in line.split()]


class Submissions:
    """Which calls count a submission, and to which stream."""

    def __init__(self, interpose, nothing, include, compiler):
        rows = COUNTED_ROW.findall(rows_of(interpose, include, compiler, COUNTED))
        self.streams = {name: self.place(parameters.strip(), stream.strip()) for name, parameters, stream, _ in rows}
        self.per_thread = {name: per_thread in ("true", "1") for name, _, _, per_thread in rows}
        self.nothing = set(names_in(nothing))

    @staticmethod
    def place(parameters, stream):
        """The place of the stream among the parameters; none: a default stream, or several."""
        if parameters.isdigit():
            return [ord(stream) - ord("a")] if re.fullmatch("[a-i]", stream) else []
        return [at for at, parameter in enumerate(parameters.strip("()").split(","))
                if re.search(rf"\b{re.escape(stream)}$", parameter.strip())]

    def contradictions(self):
        return [f"{name} counts a submission and is among those that submit nothing"
                for name in sorted(self.nothing & set(self.streams))] + \
            [f"{name}: is its default stream the thread's own?" for name, own in sorted(self.per_thread.items())
             if own != bool(re.search("_pt[ds]s$|_ptsz$", name))]

    def lacks(self, header):
        """What the header has and no submission is counted of, or to another stream than it takes."""
        several = {"cuLaunchCooperativeKernelMultiDevice"}  # takes an array of launches
        needed = {name for name, streams in header.of_stream.items() if streams or SUBMITS.match(name)}
        return [f"{name} takes a stream or submits: counts no submission, and is not among those that submit nothing"
                for name in sorted(needed - set(self.streams) - self.nothing)] + \
            [f"{name} takes a stream at {header.of_stream[name]}, and counts a submission to {self.streams[name]}"
             for name in sorted(needed & set(self.streams) - several) if header.of_stream[name] != self.streams[name]]


class Awake:
    """Which calls are made with memory awake."""

    def __init__(self, interpose, asleep, include, compiler):
        rows = re.findall(r"<(\w+)( @ BFC_HERE_ASLEEP)?", rows_of(interpose, include, compiler, AWAKE))
        self.names = {name for name, sleeps in rows if not sleeps}
        self.asleep = set(names_in(asleep))

    def contradictions(self):
        return [f"{name} wakes, and is among those that let memory sleep" for name in sorted(self.names & self.asleep)]

    def lacks(self, header):
        return [f"{name} may take an address of device memory: does not wake, and is not among those that let memory sleep"
                for name in sorted(header.of_address - self.names - self.asleep)]


def unknown_of_others(interpose, include, known):
    """Functions of the headers beside cuda.h that the library takes for newer than its tables."""
    beginnings = re.search(r"beginnings\[\]\[\d+\] = {(.*?)}", read(os.path.join(interpose, "entry", "hooks.c")), re.S)
    beginnings = tuple(re.findall(r'"(\w+)"', beginnings[1]))
    names = set()
    for header in ("cudaGL.h", "cudaEGL.h", "cudaVDPAU.h", "cudaProfiler.h"):
        path = os.path.join(include, header)
        if os.path.exists(path):
            names |= set(re.findall(r"\bCUDAAPI\s+(cu[A-Z]\w+)\s*\(", read(path)))
    return [f"{name}, which no table names, turns the gate off"
            for name in sorted(names) if not name.startswith(beginnings) and name not in known]


class Tables:
    """What the library knows of the driver, and what was considered."""

    def __init__(self, interpose, considered):
        self.rows = ROW.findall(read(os.path.join(interpose, "driver", "calls.inc")))
        self.hooked = set(HOOK.findall(read(os.path.join(interpose, "entry", "symbols.list"))))
        self.considered = names_in(considered)

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
    interpose, considered, nothing, asleep, include, newest, *compiler = sys.argv[1:]
    tables = Tables(interpose, considered)
    submissions = Submissions(interpose, nothing, include, compiler)
    awake = Awake(interpose, asleep, include, compiler)
    failures = tables.contradictions() + submissions.contradictions() + awake.contradictions()
    print(f"{len(tables.rows)} calls, {len(tables.hooked)} hooks, {len(tables.considered)} considered, "
          f"{len(submissions.streams)} count submissions, {len(awake.names)} wake", *failures, sep="\n  ")
    for folder in (include, newest):
        if not os.path.exists(os.path.join(folder, "cudaTypedefs.h")):
            print(f"{folder}: no headers there")
            continue
        header = Header(folder, compiler)
        lacks = tables.lacks(header) + submissions.lacks(header) + awake.lacks(header) + \
            unknown_of_others(interpose, folder, {symbol for symbol, _, _ in tables.rows})
        print(f"{header.name()}: {len(header.functions)} functions, {len(header.of_memory)} with device memory or streams;"
              f" {len(lacks)} unknown", *lacks, sep="\n  ")
        failures += lacks
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
