#!/usr/bin/env python3
"""Programs without CUDA run with us as without: the same output and exit status, and nothing of ours
in the process or on the machine beyond the library's own mapping. usage: test_programs.py LIBRARY"""

import glob
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

LIBRARY = ""
PYTHON = shutil.which("python3", path="/usr/bin:/bin") or sys.executable

SELF = """
import glob, os
print("tasks", len(os.listdir("/proc/self/task")))
print("files", len(os.listdir("/proc/self/fd")))
began = os.stat("/proc/self").st_mtime
print("segments", [name for name in glob.glob(f"/dev/shm/bfcpreload.*.{os.getpid()}")
                   if os.stat(name).st_mtime >= began])
names = {line.split()[-1] for line in open("/proc/self/maps") if "/" in line}
print("maps", sorted(name for name in names if "libbfcpreload" not in name))
print("environment", sorted(n for n in os.environ if n not in ("LD_PRELOAD", "_")))
"""
CTYPES = """
import ctypes
c = ctypes.CDLL(None)
print(c.strlen(b"four"), ctypes.CDLL("libm.so.6").abs(-3))
for library, name in (None, "cuMemAlloc_v2"), ("libm.so.6", "cudaMalloc"):
    try:
        getattr(ctypes.CDLL(library), name)
    except AttributeError as error:
        print(error)
try:
    ctypes.CDLL("libcuda_is_not_here.so.1")
except OSError as error:
    print(error)
"""
NUMPY = "import numpy; print(numpy.arange(10000.0).reshape(100, 100).dot(numpy.ones(100)).sum())"
FORKS = """
import os, subprocess, sys
for status in range(3):
    child = os.fork()
    if child == 0:
        os._exit(status)
    print(os.waitpid(child, 0)[1])
child = os.fork()
if child == 0:
    os.execv("/bin/sh", ["sh", "-c", "exit 7"])
print(os.waitpid(child, 0)[1], subprocess.run(["true"]).returncode)
"""
BASH = 'for i in {1..20}; do (echo $i | tr 0-9 a-j) || exit; done; type cd; $(exit 3); echo $?; exit 4'
C = '#include <stdio.h>\nint main(void) { puts("from C"); return 5; }\n'
GO = 'package main\nimport ("fmt"; "os"; "time")\nfunc main() { c := make(chan int); go func() { ' \
     'time.Sleep(time.Millisecond); c <- 6 }(); fmt.Println("from Go"); os.Exit(<-c) }\n'
RUST = 'fn main() { let t = std::thread::spawn(|| 7); println!("from Rust"); ' \
       'std::process::exit(t.join().unwrap()) }\n'


def environment(preload):
    env = {n: v for n, v in os.environ.items() if n not in ("LD_PRELOAD", "MALLOC_PERTURB_")}
    env.update(LC_ALL="C", PYTHONHASHSEED="0", PYTHONDONTWRITEBYTECODE="1")
    if preload:
        env["LD_PRELOAD"] = LIBRARY
    return env


class Programs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="bfc-programs-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def run_once(self, command, preload):
        return subprocess.run(command, env=environment(preload), cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=100)

    def compare(self, *command, status=0, needs=None):
        if not shutil.which(needs or command[0]):
            self.skipTest(f"no {needs or command[0]} here")
        native, preloaded = self.run_once(command, False), self.run_once(command, True)
        self.assertEqual(native.returncode, status, native.stderr)
        for part in "returncode", "stdout", "stderr":
            self.assertEqual(getattr(native, part), getattr(preloaded, part))
        return native.stdout

    def build(self, *command):
        if not shutil.which(command[0]):
            self.skipTest(f"no {command[0]} here")
        env = environment(False)
        env.update(GOCACHE=self.path("cache"), GOFLAGS="-mod=mod", GO111MODULE="off",
                   HOME=self.folder if command[0] == "go" else env.get("HOME", ""))
        made = subprocess.run(command, env=env, cwd=self.folder, capture_output=True, timeout=100)
        if made.returncode:
            self.skipTest(f"{command[0]} cannot build here: {made.stderr[-200:]}")

    def test_true(self):
        self.compare("true")
        self.compare("false", status=1)

    def test_bash(self):
        self.compare("bash", "-c", BASH, status=4)

    def test_git(self):
        self.build("git", "init", "-q", "there")
        self.compare("git", "-C", "there", "status", "--porcelain", "--branch")
        self.compare("git", "hash-object", self.write("file", "text"))

    def test_gcc(self):
        self.write("program.c", C)
        self.compare("gcc", "-O2", "-S", "-o", "-", "program.c")
        self.compare("gcc", "-o", "program", "program.c")
        self.compare(self.path("program"), status=5)

    def test_python(self):
        self.compare(PYTHON, "-c", CTYPES)
        self.compare(PYTHON, "-c", FORKS)

    def test_numpy(self):
        if self.run_once([PYTHON, "-c", "import numpy"], False).returncode:
            self.skipTest("no numpy here")
        self.compare(PYTHON, "-c", NUMPY)

    def test_node(self):
        self.compare("node", "-e", "setTimeout(() => { console.log('from node'); "
                     "process.exitCode = 8 }, 1)", status=8)

    def test_go(self):
        self.write("program.go", GO)
        self.build("go", "build", "-o", "program", "program.go")
        self.compare(self.path("program"), status=6)

    def test_rust(self):
        self.write("program.rs", RUST)
        self.build("rustc", "-o", "program", "program.rs")
        self.compare(self.path("program"), status=7)

    def test_go_of_debian(self):
        self.compare("bash", "-c", "printf 'one\\ntwo\\nthree\\n' | fzf --filter=t; fzf --filter=x <<<y",
                     status=1, needs="fzf")

    def test_rust_of_debian(self):
        self.write("file", "one\ntwo\nthree\n")
        self.compare("rg", "--line-number", "--threads=4", "t.*e", "file")
        self.compare("rg", "no such", "file", status=1)

    def test_nothing_in_the_process(self):
        shown = self.compare(PYTHON, "-c", SELF)
        self.assertIn(b"tasks 1\n", shown)
        self.assertIn(b"segments []\n", shown)

    def test_system_calls(self):
        """Beyond mapping the library, no call that would not be made without it."""
        if not shutil.which("strace"):
            self.skipTest("no strace here")
        counts = []
        for preload in False, True:
            made = self.run_once(["strace", "-f", "-E", "LD_PRELOAD=" + (LIBRARY if preload else ""),
                                  "-o", self.path("trace"), "true"], False)
            if made.returncode:
                self.skipTest(f"strace cannot trace here: {made.stderr[-200:]}")
            with open(self.path("trace"), encoding="utf-8") as trace:
                names = [line.split()[1].split("(")[0] for line in trace]
            counts.append({name: names.count(name) for name in names})
        native, preloaded = counts
        extra = {name: n - native.get(name, 0) for name, n in preloaded.items()
                 if n != native.get(name, 0)}
        mapping = {"openat", "read", "pread64", "fstat", "newfstatat", "mmap", "mprotect", "close"}
        self.assertLessEqual(set(extra), mapping)
        self.assertLessEqual(sum(extra.values()), 14, extra)

    def test_300_starts_at_once(self):
        begin = time.time()
        running = [subprocess.Popen(["sh", "-c", f"exit {i % 7}"], env=environment(True),
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                   for i in range(300)]
        ends = [(process.communicate(timeout=100)[0], process.returncode) for process in running]
        self.assertEqual(ends, [(b"", i % 7) for i in range(300)])
        for process in running:
            left = [name for name in glob.glob(f"/dev/shm/bfcpreload.*.{process.pid}")
                    if os.path.getmtime(name) >= begin]  # an older process may have had its number
            self.assertEqual(left, [])


if __name__ == "__main__":
    LIBRARY = os.path.realpath(sys.argv.pop(1))
    unittest.main()
