#!/usr/bin/env python3
"""cudaMalloc and cudaFree of a shared runtime: what the pool has is answered before the runtime is
entered, everything else by the runtime; with one and the same outcome as natively.
usage: test_runtime.py LIBRARY CALLS PLUGIN12 COPY12 COPY13 INTERPOSER CUPTI PROBES PROBES_LINKED
BFCSTAT, and $RUNTIMES: the folders of the runtimes and the driver"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

PLACES = ("LIBRARY CALLS PLUGIN12 COPY12 COPY13 INTERPOSER CUPTI PROBES PROBES_LINKED "
          "BFCSTAT").split()
AT = {}
# What a device that no other program has is kept in: on another, programs ask each other for memory.
FOLDER = tempfile.TemporaryDirectory()

ALL = 200  # calls in "100 pairs"


def run(command, preload="", **variables):
    env = {n: v for n, v in os.environ.items() if not n.startswith("BFC_")}
    env.update(variables, LD_PRELOAD=preload, BFC_LOG="off", LD_LIBRARY_PATH=env["RUNTIMES"],
               SIM_SHARE=os.path.join(FOLDER.name, "device"))
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (command, done.returncode, done.stdout, done.stderr)
    return done.stdout.splitlines()


def outcome(lines):
    return [line for line in lines if not line.startswith("~ ")]


def entries(lines):
    """How often each step entered the runtime."""
    counts = (line[2:].rsplit(": ", 1) for line in lines if line.startswith("~ "))
    return {step: int(count) for step, count in counts}


class Runtime(unittest.TestCase):
    maxDiff = None

    def scene(self, *arguments, preload=None, **variables):
        """Entries natively and preloaded; all else must be equal."""
        command = [AT["CALLS"], *arguments]
        native = run(command)
        preloaded = run(command, preload or AT["LIBRARY"], **variables)
        self.assertEqual(outcome(native), outcome(preloaded))
        return entries(native), entries(preloaded)

    def check(self, expected, *arguments, **variables):
        _, preloaded = self.scene(*arguments, **variables)
        preloaded.pop("first", None)
        self.assertEqual(preloaded, expected)

    def test_reasons(self):
        """Hits do not enter it; each other kind of call does, once."""
        for mode, gate in ("sync", "off"), ("lazy", "off"), ("lazy", "on"), ("ordered", "off"), ("ordered", "on"):
            native, preloaded = self.scene("reasons", BFC_FREE=mode, BFC_GATE=gate)
            fenced = mode == "lazy" and gate == "off"
            hits = {"its free", "100 pairs", "the free of what missed", "a hit of what missed",
                    "free", "100 pairs with a last error"}
            if fenced:  # fences are asked after on the long way only
                hits.remove("a hit of what missed")
            for step, times in preloaded.items():
                if step == "a hit" or (fenced and "100 pairs" in step):
                    continue  # the second call of all; and as before
                self.assertEqual(times, 0 if step in hits else native[step], (mode, gate, step))
            self.assertLess(preloaded["100 pairs"], ALL / 4, mode)

    def test_contexts(self):
        """The first call in a context, and after anything that could change it, is its."""
        self.check({"first of device 0": 2, "hits of device 0": 0, "first of device 1": 1,
                    "hits of device 1": 0, "free of device 0's": 1, "again of device 0": 1,
                    "hits again of device 0": 0, "after a device that is none": 1,
                    "hits after that": 0, "first of an own context": 1,
                    "hits of an own context": 0, "back": 1, "no context": 1,
                    "hits with the runtime's context": 0, "free of what is gone": 1,
                    "first after the reset": 1, "hits after the reset": 0}, "contexts")

    def test_captures(self):
        self.check({"in a relaxed capture": 1, "a free in it": 1, "pairs after it": 0,
                    "in a global capture": 1, "pairs after that": 0}, "captures")

    def test_threads(self):
        self.check({"first of another thread": 1, "hits of another thread": 0, "hits": 0},
                   "threads")

    def test_fatal_error(self):
        """The error of an earlier kernel is the runtime's last error too."""
        self.check({"free": 1, "malloc": 1}, "fatal")

    def test_fork_and_exit(self):
        self.check({"in the child": 1, "in the parent": 0}, "fork")
        self.check({"hits": 0, "at exit": 1}, "exit")

    def test_names(self):
        """Found by name it is the same function, and answers as the linked one does."""
        _, preloaded = self.scene("names")
        del preloaded["first"]
        self.assertEqual(set(preloaded.values()), {0}, preloaded)

    def test_switches(self):
        for variables, times in (
                ({}, 0), ({"BFC_RUNTIME": "auto"}, 0), ({"BFC_RUNTIME": "on"}, 0),
                ({"BFC_RUNTIME": "off"}, ALL), ({"BFC_DISABLE": "1"}, ALL),
                ({"BFC_NOT": "calls"}, ALL), ({"BFC_BYPASS_ABOVE": "0"}, ALL),
                ({"CUDA_INJECTION64_PATH": "libtool.so"}, ALL),
                ({"CUDA_INJECTION64_PATH": "libtool.so", "BFC_RUNTIME": "on"}, 0)):
            self.assertEqual(self.scene("pairs", **variables)[1]["100 pairs"], times, variables)

    def test_profiler(self):
        """From the moment when CUPTI is used, a profiler may want to see every call."""
        steps = "before", "with it", "still with it", "without it"
        for variables, expected in ({}, [0, 1, 20, 20]), ({"BFC_RUNTIME": "on"}, [0, 1, 1, 0]):
            _, preloaded = self.scene("guest", AT["CUPTI"], **variables)
            self.assertEqual([preloaded[step] for step in steps], expected)

    def test_two_runtimes(self):
        """Each caller's own runtime is the one that is entered, and has the errors."""
        native, preloaded = self.scene("guest", AT["PLUGIN12"])
        self.assertEqual((native["plug-in, pairs"], native["plug-in, free again"]), (19, 1))
        self.assertLessEqual(preloaded["plug-in, pairs"], 1)
        self.assertEqual(preloaded["plug-in, free again"], 1)
        self.assertLessEqual(preloaded["with it"] + preloaded["still with it"], 2)

    def test_two_copies(self):
        """Of one version: nobody knows whose a caller means, so all goes to the one in its scope."""
        native, preloaded = self.scene("guest", AT["COPY13"])
        for step in "with it", "plug-in, pairs", "plug-in, free again", "still with it":
            self.assertEqual(preloaded[step], native[step], step)
        self.assertEqual(preloaded["without it"], 0)
        native, preloaded = self.scene("guest", AT["PLUGIN12"], AT["COPY12"])
        for step in "plug-in, first", "plug-in, pairs", "plug-in, free again":
            self.assertEqual(preloaded[step], native[step], step)
        self.assertLessEqual(preloaded["still with it"], 1)

    def test_tool_before_the_runtime(self):
        """A preloaded tool with a cudaMalloc sees every call, on either side of us."""
        command = [AT["CALLS"], "pairs"]
        native = run(command, AT["INTERPOSER"])
        self.assertIn("the tool saw 101 allocations", native)
        for order in (AT["LIBRARY"], AT["INTERPOSER"]), (AT["INTERPOSER"], AT["LIBRARY"]):
            preloaded = run(command, ":".join(order))
            self.assertEqual(outcome(native), outcome(preloaded))

    def test_loads(self):
        """Threads at work while a library with another runtime comes and goes."""
        command = [AT["CALLS"], "loads", AT["PLUGIN12"]]
        self.assertEqual(outcome(run(command)), outcome(run(command, AT["LIBRARY"])))

    def report(self, folder, mode):
        """All that lasts of what the segment says, and the length of the trace."""
        text, trace = os.path.join(folder, "json"), os.path.join(folder, "trace")
        run([AT["CALLS"], "reasons"], AT["LIBRARY"], BFC_RUNTIME=mode, BFC_RECORD=trace, BFC_STACKS="off",
            CALLS_REPORT=f"unset LD_PRELOAD; {AT['BFCSTAT']} --json $PPID >{text}")
        with open(text, encoding="utf-8") as file:
            said = json.load(file)
        for key in "segment", "pid", "created_ns", "configuration":
            del said[key]
        return self.lasting(said), os.path.getsize(trace)

    # Times, addresses, and what the job is asked for while it goes on.
    PASSING = {"us", "address", "start", "map", "largest_free", "largest_request", "too_small",
               "fragmentation"}

    def lasting(self, said):
        if isinstance(said, dict):
            return {key: self.lasting(value) for key, value in said.items()
                    if not key.endswith("_ns") and key not in self.PASSING}
        return [self.lasting(one) for one in said] if isinstance(said, list) else said

    def test_counted_once(self):
        with tempfile.TemporaryDirectory() as folder:
            on, on_trace = self.report(folder, "on")
            off, off_trace = self.report(folder, "off")
        self.assertEqual(on, off)
        self.assertEqual(on["pools"][0]["allocations"], 204)
        self.assertLess(abs(on_trace - off_trace), 200)  # it is packed, times and all

    def test_weak_references(self):
        """Neither a runtime nor a driver is there for those who ask and have none."""
        native = run([AT["PROBES"]])
        self.assertEqual(native, ["weak cudaMalloc 0, cudaFree 0, cudaSetDevice 0",
                                  "no driver was linked"])
        self.assertEqual(native, run([AT["PROBES"]], AT["LIBRARY"]))
        native = run([AT["PROBES_LINKED"]])
        self.assertIn("before cuInit: allocate 3, free 3", native)
        self.assertEqual(native, run([AT["PROBES_LINKED"]], AT["LIBRARY"]))


if __name__ == "__main__":
    AT.update(zip(PLACES, map(os.path.realpath, sys.argv[1:])))
    unittest.main(argv=sys.argv[:1])
