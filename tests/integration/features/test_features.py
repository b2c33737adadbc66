#!/usr/bin/env python3
"""Each feature can be left out by itself, and all together. test_features.py LIBRARY PROGRAM DRIVER BFCSTAT

The library is linked again from the objects that were compiled for it, without those of a feature: what
another file calls of it is undefined then.
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../mutation"))
import mutate  # noqa: E402  how a library is linked again

LIBRARY, PROGRAM, DRIVER, BFCSTAT = sys.argv[1:5]

# What asks for each feature, and the value that holds without it.
ASKING = {
    "gate": ("BFC_GATE=on", "off"),
    "pages": ("BFC_BACKING=pages", "malloc"),
    "pitch": (None, None),  # pitched memory is the driver's
    "plan": ("BFC_PLAN=auto", "none"),
    "pressure": ("BFC_WAIT=2", "0"),
    "record": ("BFC_RECORD=/nowhere/trace", "none"),
    "share": (None, None),  # its absence is BFC_IPC=off
    "sleep": ("BFC_SLEEP_IDLE=5", "none"),
    "spill": ("BFC_SPILL=1G", "0"),
    "watch": ("BFC_TRIM_IDLE=1", "none"),
    "who": ("BFC_STACKS=all", "off"),
}

CALLS = """if True:
    import ctypes, sys
    calls, context = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p()
    assert calls.cuInit(0) == calls.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert calls.cuCtxSetCurrent(context) == 0
    def allocate(size):
        block = ctypes.c_uint64()
        return calls.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(size)), block
"""
WAITS = CALLS + """
    assert allocate(4096)[0] == 0
    print("ready", flush=True)
    sys.stdin.read()
"""
EXPORTS = CALLS + """
    blocks = [allocate(4096)[1] for _ in range(2)]
    handle = ctypes.create_string_buffer(64)
    print(*[calls.cuIpcGetMemHandle(handle, block) for block in blocks])
    print(calls.cuIpcGetMemHandle(handle, allocate(4096)[1]))
"""


def feature_of(word):
    found = re.search(r"\.p/features_([a-z]+)_", word)
    return found and found[1]


LINK = mutate.commands_of(LIBRARY)[-1]
BUILT = sorted({feature_of(word) for word in LINK} - {None, "common"})


class Features(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def link(self, *left_out):
        """The library without these features; without any, it does not need either what several of them use."""
        left_out += ("common",) if len(left_out) == len(BUILT) else ()
        output = f"{self.folder}/libbfcpreload-without-{'-'.join(left_out)}.so"
        mutate.run(mutate.link_as([w for w in LINK if feature_of(w) not in left_out], {}, output))
        return output

    def environment(self, library, variables=()):
        return dict(os.environ, SIM_MEMORY="1G", SIM_SHARE=f"{self.folder}/share", LD_PRELOAD=library,
                    **dict(v.split("=", 1) for v in variables))

    def run_program(self, library, *variables, program=(PROGRAM,)):
        done = subprocess.run(program, env=self.environment(library, variables), capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def complaints(self, done):
        """What is said, but for the out of memory that the program provokes."""
        return "".join(re.findall(r"^bfcpreload: BFC_.*\n", done.stderr, re.MULTILINE))

    def assert_told_once(self, done, setting, feature, without):
        line = re.escape(f"{setting}: this library was built without the feature {feature} ")
        self.assertRegex(self.complaints(done), f"^bfcpreload: {line}.*; {re.escape(without)} holds\n$")

    def test_every_feature_is_known_here(self):
        self.assertEqual([f for f in BUILT if f not in ASKING], [])

    def test_each_can_be_left_out(self):
        native = self.run_program("").stdout
        for feature in BUILT:
            with self.subTest(feature):
                library = self.link(feature)
                setting, without = ASKING[feature]
                done = self.run_program(library)
                self.assertEqual((done.stdout, self.complaints(done)), (native, ""))
                if setting:
                    done = self.run_program(library, setting)
                    self.assertEqual(done.stdout, native)
                    self.assert_told_once(done, setting, feature, without)

    def test_the_core_says_what_it_lacks(self):
        core = self.link(*BUILT)
        native = self.run_program("").stdout
        for feature, (setting, without) in ASKING.items():
            done = self.run_program(core, *([setting] if setting else []))
            self.assertEqual(done.stdout, native)
            if setting:
                self.assert_told_once(done, setting, feature, without)
        for harmless in "BFC_STACKS=off", "BFC_YIELD=0", "BFC_IPC=off", "BFC_SPILL=0":
            self.assertEqual(self.run_program(core, harmless).stderr, "")

    def test_the_core_exports_as_without_tokens(self):
        done = self.run_program(self.link(*BUILT), program=(sys.executable, "-c", EXPORTS, DRIVER))
        self.assertEqual(done.stdout.split(), ["0", "801", "0"])
        self.assertIn("in a library without the feature share", done.stderr)

    def test_the_core_is_listed(self):
        with subprocess.Popen([sys.executable, "-c", WAITS, DRIVER], env=self.environment(self.link(*BUILT)), text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as job:
            self.assertEqual(job.stdout.readline(), "ready\n")
            listed = subprocess.run([BFCSTAT], stdout=subprocess.PIPE, text=True, timeout=60, check=False).stdout
            job.stdin.close()
            self.assertIn(str(job.pid), listed)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
