#!/usr/bin/env python3
"""The blocks of code in README.md and on the users' pages, run as they stand there: over the stand-in GPU, in a folder
with programs of the names that they use. Where a framework or launcher is wanted, a small program stands in for it."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

ROOT, BUILD, SIM = (os.environ[name] for name in ("SOURCE_ROOT", "BUILD_ROOT", "SIM_DIR"))
PACKAGE = "packages are built, installed and removed by the tests wheel and install, and by hand by old-systems"
IMAGE = "an image needs podman or docker and root: container-image, by hand"
SYSTEM = "changes the system: old-systems, by hand"
OUTPUT = "no command: what one prints"
FILE = "no command: a part of a file"
FRAMEWORK = "a framework itself: the test launchers, where it is installed"
# Page, beginning of a line: why it is not run here. The first line of a block that has no commands stands for all of it.
NOT_RUN = {
    ("README.md", "scripts/package"): PACKAGE,
    ("README.md", "meson setup"): "the build that this test is run of",
    ("docs/containers.md", "scripts/package"): PACKAGE,
    ("docs/containers.md", "podman"): IMAGE,
    ("docs/install.md", "python3 -m venv"): PACKAGE,
    ("docs/install.md", "venv/bin/bfcrun"): PACKAGE,
    ("docs/install.md", "tar -xzf"): PACKAGE,
    ("docs/install.md", "apt-get"): SYSTEM,
    ("docs/install.md", "systemctl"): SYSTEM,
    ("docs/install.md", "meson setup"): "the build that this test is run of",
    ("docs/install.md", "cc $(pkg-config"): "the file for pkg-config is that of a package: the test wheel",
    ("docs/ipc.md", "bfcpreload: cuIpc"): OUTPUT,
    ("docs/launchers.md", "# slurm.conf"): FILE,
    ("docs/launchers.md", "bfcstat --slurm-job"): "wants a job of Slurm: the test slurm",
    ("docs/launchers.md", "ray.init"): FRAMEWORK,
    ("docs/launchers.md", "dask.config"): FRAMEWORK,
    ("docs/quick-start.md", "bfcstat top"): "wants a terminal: the test bfcstat",
    ("docs/quick-start.md", "device 0"): OUTPUT,
    ("docs/recipes.md", "docker"): IMAGE,
    ("docs/recipes.md", "/usr/share/bfcpreload/slurm/task-prolog"): "a line of a TaskProlog: the test slurm",
    ("docs/recipes.md", "kubectl"): "wants a cluster; the test containers reads the manifests",
    ("docs/watching.md", "systemctl"): SYSTEM,
    ("docs/watching.md", "groupadd"): SYSTEM,
    ("docs/watching.md", "install -m"): SYSTEM,
    ("docs/watching.md", "setcap"): SYSTEM,
    ("docs/watching.md", "[Service]"): FILE,
    ("docs/watching.md", "scrape_configs"): FILE,
    ("docs/watching.md", "bfcpreload_in_use_bytes"): "a query of Prometheus",
}

# A loop over the driver, as bfcplan wants it; the library must be there.
PROGRAM = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, pointers = ctypes.c_void_p(), [ctypes.c_uint64() for _ in range(12)]
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
def allocate():
    for number, pointer in enumerate(pointers):
        assert cuda.cuMemAlloc_v2(ctypes.byref(pointer), number + 1 << 20) == 0
for _ in range(8):
    allocate()
    for pointer in pointers:
        assert cuda.cuMemFree_v2(pointer) == 0
assert "libbfcpreload.so" in open("/proc/self/maps").read()
"""
SAYS = PROGRAM + 'print("ran with the pool", flush=True)\n'
HOLDS = PROGRAM + 'allocate()\nprint("ready", flush=True)\nimport sys\nsys.stdin.read()\n'
INTERACTIVE = PROGRAM + "load = train = allocate\n"
# Drops a launcher's own options, and runs the rest once.
LAUNCHER = """#!/bin/bash
while [[ $1 == -* ]]; do
    case $1 in
    -x) export "$2" && shift ;;
    -n | -np) shift ;;
    esac
    shift
done
[[ $1 != *.py ]] || set -- python "$@"
exec "$@"
"""
DASK = '#!/bin/bash\n[[ $1 == scheduler ]] || exec python train.py\n'
# A user types the next line once the server is there.
CURL = '#!/bin/bash\nexec "$CURL" --retry 20 --retry-connrefused "$@"\n'


def blocks_of(text):
    """Pairs of a block's lines and whether the test `figures` runs it; blocks are fenced or indented."""
    fenced = re.compile(r"(^<!-- figures[^\n]*\n)?^```[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    for found in fenced.finditer(text):
        yield found[2].splitlines(), bool(found[1])
    for found in re.finditer(r"(?<=\n\n)(?:    [^\n]*\n|\n(?=    ))+", fenced.sub("", text)):
        yield [line[4:] for line in found[0].splitlines()], False


def commands_of(lines):
    """Those of a session behind a prompt, or all; a line that goes on is one with the next."""
    lines = re.sub(r"\\\n *", "", "\n".join(lines)).splitlines()
    prompted = [line[2:] for line in lines if re.match(r"\$ |# (tar|apt-get|systemctl) ", line)]
    return prompted or lines


class Commands(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.skipped = set()

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="bfc-commands-", ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name in ("train.py", "serve.py", "array.py", "frame.py", "jupyter/__main__.py", "cudf/pandas/__main__.py"):
            self.write(name, SAYS)
        for name in ("solver", "train", "ring"):
            self.write(name, f"#!{sys.executable}\n{SAYS}", 0o755)
        for name, text in ("srun", LAUNCHER), ("mpirun", LAUNCHER), ("torchrun", LAUNCHER), ("dask", DASK), ("curl", CURL):
            self.write("bin/" + name, text, 0o755)
        for name, place in ("bfcrun", f"{ROOT}/scripts/bfcrun"), ("bfcstat", f"{BUILD}/tools/bfcstat"), \
                           ("bfcplan", f"{BUILD}/tools/plan/bfcplan"), ("bfcreplay", f"{BUILD}/tools/replay/bfcreplay"), \
                           ("python", sys.executable):
            os.symlink(place, os.path.join(self.folder, "bin", name))
        path = os.pathsep.join([os.path.join(self.folder, "bin"), os.environ["PATH"]])
        kept = {k: v for k, v in os.environ.items() if not re.match("BFC_|LD_PRELOAD$", k)}
        self.environment = {**kept, "PATH": path, "BFC_BUILD": BUILD, "LD_LIBRARY_PATH": SIM, "CURL": shutil.which("curl") or "",
                            "PYTHONPATH": os.path.join(ROOT, "python"), "PYTHONDONTWRITEBYTECODE": "1"}

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)

    def start_job(self, *options):
        job = subprocess.Popen(["bfcrun", *options, "python", "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               env=self.environment)
        self.addCleanup(job.communicate)
        self.assertEqual(job.stdout.readline(), "ready\n")
        return job.pid

    def filled_in(self, block):
        """What a user puts in the place of examples; bfcstat finds a job."""
        block = block.replace("/path/to/", f"{BUILD}/interpose/").replace("/var/lib/node_exporter", self.folder)
        options = ("--gate=on", "--backing=pages") if "bfcstat sleep" in block else ()
        if "bfcstat" in block or "10840" in block:
            block = re.sub(r"\bPID\b|\b10840\b", str(self.start_job(*options)), block)
        return block

    def run_block(self, block):
        """Returns its status and what it printed; what it leaves in the background is ended."""
        command = ["bfcrun", "python", "-c", INTERACTIVE + block] if block.startswith("import") else ["bash", "-euc", block]
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
            status = process.wait(timeout=120)
            try:
                os.killpg(process.pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
            output.seek(0)
            return status, output.read()

    def reason_of(self, page, line):
        for key in NOT_RUN:
            if key[0] == page and line.startswith(key[1]):
                self.skipped.add(key)
                return NOT_RUN[key]
        return None

    def check(self, page):
        with open(os.path.join(ROOT, page), encoding="utf-8") as file:
            blocks = list(blocks_of(file.read()))
        for lines, is_figure in blocks:
            commands = [] if is_figure else commands_of(lines)
            if commands and self.reason_of(page, commands[0]) in (OUTPUT, FILE, FRAMEWORK):
                continue
            block = "\n".join(line for line in commands if not self.reason_of(page, line))
            if not block.strip() or (":9420" in block and not self.can_serve()):
                continue
            with self.subTest(page, block=block):
                status, printed = self.run_block(self.filled_in(block))
                self.assertEqual(status, 0, printed)
                wanted = len(re.findall(r"\bbfcrun\b", re.sub(r"\s#.*", "", block)))
                self.assertGreaterEqual(printed.count("ran with the pool"), wanted, printed)
                self.assertEqual([line for line in printed.splitlines() if re.match("bfcpreload: .*BFC_", line)], [])

    @staticmethod
    def can_serve():
        """The port may be another's on this machine."""
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            return shutil.which("curl") and not probe.connect_ex(("127.0.0.1", 9420)) == 0

    def test_pages(self):
        os.environ["PATH"] = self.environment["PATH"]
        pages = ["README.md", *sorted(f"docs/{name}" for name in os.listdir(os.path.join(ROOT, "docs")) if name.endswith(".md"))]
        for page in pages:
            self.check(page)
        self.assertEqual(set(NOT_RUN) - self.skipped, set(), "nothing on the pages begins so")


if __name__ == "__main__":
    unittest.main(verbosity=1)
