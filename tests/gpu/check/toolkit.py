"""Where CUDA's toolkit has what programs are compiled and linked with."""

import glob
import os
import platform

from . import machine

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))


def rpath(folder):
    """Its name may have a comma."""
    return ["-Xlinker", "-rpath", "-Xlinker", folder]


class Toolkit:
    def __init__(self, home):
        self.home = os.path.abspath(home)

    def headers(self):
        return [h for h in (self.home + "/include", *glob.glob(self.home + "/targets/*/include"))
                if os.path.exists(h + "/cuda.h")]

    def libraries(self):
        places = [self.home + place for place in
                  ("/lib64", "/lib", f"/targets/{platform.machine()}-linux/lib", "/targets/sbsa-linux/lib")]
        return next((p for p in places if os.path.exists(p + "/libcudart.so")), places[0])

    def runtime(self):
        """What links a program to the shared runtime: the toolkit's, else one of the Python packages."""
        places = [self.libraries() + "/libcudart.so"]
        places += [path for package in machine.nvidia_packages()
                   for path in glob.glob(package + "/lib/libcudart.so.*")]
        library = next((path for path in places if os.path.exists(path)), places[0])
        return [library, *rpath(os.path.dirname(library))]

    def nvcc(self):
        compiler = os.path.join(self.home, "bin", "nvcc")
        return compiler if os.path.exists(compiler) else None

    def driver(self):
        """What links a program to the driver: the toolkit's stub, if there is one."""
        stubs = glob.glob(self.home + "/lib*/stubs/libcuda.so") + \
            glob.glob(self.home + "/targets/*/lib/stubs/libcuda.so")
        return stubs[:1]
