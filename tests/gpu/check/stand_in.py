"""For a dry run: the simulated GPU of a Meson build folder, and a toolkit around it."""

import json
import os
import shutil
import tempfile

from . import machine

# nvcc itself, where it is, with the stand-in's runtime; else the C++ compiler, which takes no kernels.
NVCC = """#!/bin/sh
exec '{nvcc}' -cudart shared "$@" -L '{libraries}'
"""
CXX = """#!/bin/sh
exec c++ -I '{include}' -include cuda_runtime.h -x c++ "$@" -L '{libraries}' -lcudart
"""
LIBRARIES = ("libcuda.so.1", "libcudart.so.13", "libcudart_static.a")


class NoStandIn(Exception):
    pass


class StandIn:
    def __init__(self, build):
        self.build = os.path.realpath(build)
        self.folder = None
        self.sim = os.path.join(self.build, "sim")
        missing = [name for name in LIBRARIES if not os.path.exists(os.path.join(self.sim, name))]
        if missing:
            raise NoStandIn(f"{self.sim} has no {', '.join(missing)}: --dry-run takes the folder of a Meson "
                            "build with -Dtests=enabled")

    def use(self):
        """For this process and all that it starts: two devices, small, so that they are full soon, whose memory
        the processes share, as on a real machine."""
        self.folder = tempfile.mkdtemp(prefix="gpu-check-device-")
        os.environ["SIM_SHARE"] = os.path.join(self.folder, "memory")
        os.environ["LD_LIBRARY_PATH"] = self.sim
        os.environ.setdefault("SIM_DEVICES", "2")
        os.environ.setdefault("SIM_MEMORY", "4G")
        os.environ.setdefault("BFC_STRESS_SECONDS", "5")

    def end_use(self):
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def management(self):
        """The management library: the loader of this process does not search its folder."""
        return os.path.join(self.sim, "libnvidia-ml.so.1")

    def include(self):
        """The headers that the build folder was made with."""
        with open(os.path.join(self.build, "meson-info/intro-buildoptions.json"), encoding="utf-8") as file:
            chosen = [o["value"] for o in json.load(file) if o["name"] == "toolkit_include"]
        places = [*chosen, machine.find_toolkit() + "/include", os.path.join(self.build, "cuda/include")]
        found = next((p for p in places if p and os.path.exists(p + "/cuda.h")), None)
        if not found:
            raise NoStandIn("no cuda.h in " + ", ".join(p for p in places if p) + ": CUDA_HOME names a toolkit")
        return os.path.realpath(found)

    def make_toolkit(self, folder):
        """Laid out as CUDA's, with the stand-in in place of the libraries. What is there already stays."""
        include, libraries = self.include(), os.path.join(folder, "lib64")
        os.makedirs(libraries + "/stubs", exist_ok=True)
        os.makedirs(folder + "/bin", exist_ok=True)
        link(include, folder + "/include")
        link(self.sim + "/libcuda.so.1", libraries + "/stubs/libcuda.so")
        link(self.sim + "/libcudart.so.13", libraries + "/libcudart.so")
        write(libraries + "/libcudart_static.a", f"INPUT({self.sim}/libcudart_static.a)\n")
        if not os.path.exists(folder + "/bin/nvcc"):
            nvcc = os.path.join(machine.find_toolkit(), "bin/nvcc")
            script = NVCC if os.path.exists(nvcc) else CXX
            write(folder + "/bin/nvcc", script.format(nvcc=nvcc, include=include, libraries=libraries))
            os.chmod(folder + "/bin/nvcc", 0o755)
        return folder


def link(target, path):
    if not os.path.lexists(path):
        os.symlink(target, path)


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
