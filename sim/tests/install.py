#!/usr/bin/env python3
"""`-Dsim=enabled` installs the stand-in GPU, for use without this source tree, in folders of its own.

install.py SOURCE BUILD HEADERS COMPILER...: BUILD is a build without the option, HEADERS has cuda.h.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD, HEADERS = sys.argv[1:4]
COMPILER = sys.argv[4:]
TARGETS = ["sim/libcuda.so.1", "sim/libcudart.so.13", "sim/libcudart.so.12", "sim/libcudart_static.a",
           "sim/libnvidia-ml.so.1", "sim/kernels_ptx.h"]
FILES = {
    "lib/bfcpreload-sim/libcuda.so.1", "lib/bfcpreload-sim/libcuda.so",
    "lib/bfcpreload-sim/libcudart.so.13", "lib/bfcpreload-sim/libcudart.so",
    "lib/bfcpreload-sim/libcudart.so.12", "lib/bfcpreload-sim/libcudart_static.a",
    "lib/bfcpreload-sim/libnvidia-ml.so.1", "lib/bfcpreload-sim/libnvidia-ml.so",
    "include/bfcpreload-sim/kernel.h", "include/bfcpreload-sim/kernels_ptx.h",
    "share/doc/bfcpreload-sim/README.md",
}
# Loads the kernels that are installed, gives the driver one of its own, and runs both.
PROGRAM = r"""
#include <cuda.h>
#include <kernel.h>
#include <kernels_ptx.h>
#include <string.h>
static int fill_with_seven(const struct sim_launch *launch) {
    CUdeviceptr at;
    memcpy(&at, launch->parameters[0], sizeof at);
    memset(launch->reach(at, 8), 7, 8);
    return 0;
}
#define DO(call) do { if ((call) != CUDA_SUCCESS) return __LINE__; } while (0)
int main(void) {
    CUcontext context; CUmodule module; CUfunction fill; CUdeviceptr p; CUdevice device;
    cuuint64_t count = 8; unsigned value = 5; char back[8];
    DO(cuInit(0)); DO(cuDeviceGet(&device, 0));
    DO(cuDevicePrimaryCtxRetain(&context, device)); DO(cuCtxSetCurrent(context));
    DO(cuModuleLoadData(&module, kernels_ptx)); DO(cuModuleGetFunction(&fill, module, "fill"));
    DO(cuMemAlloc(&p, count));
    void *parameters[] = {&p, &count, &value};
    DO(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    DO(cuMemcpyDtoH(back, p, 8));
    if (back[7] != 5 || sim_register_kernel("fill", fill_with_seven) != 0) return 1;
    DO(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    DO(cuMemcpyDtoH(back, p, 8));
    return back[7] == 7 ? 0 : 2;
}
"""


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **more)
    if done.returncode:
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


class Install(unittest.TestCase):
    def test_installed(self):
        with tempfile.TemporaryDirectory(prefix="sim-install-") as folder:
            build, root = os.path.join(folder, "build"), os.path.join(folder, "root")
            run("meson", "setup", build, SOURCE, "-Dsim=enabled", "-Dplanner=disabled",
                "-Dtoolkit_include=" + HEADERS, "--prefix=/p", "--libdir=lib")
            run("ninja", "-j2", "-C", build, *TARGETS)
            run("meson", "install", "-C", build, "--no-rebuild", "--tags", "sim", "--destdir", root)
            prefix = os.path.join(root, "p")
            found = {os.path.relpath(os.path.join(at, name), prefix)
                     for at, _, names in os.walk(root) for name in names}
            self.assertEqual(found, FILES)
            self.use(folder, prefix)

    def use(self, folder, prefix):
        """A program outside the tree is built against it and runs on it."""
        source, program = os.path.join(folder, "p.c"), os.path.join(folder, "p")
        libraries = os.path.join(prefix, "lib/bfcpreload-sim")
        with open(source, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        run(*COMPILER, "-I" + HEADERS, "-I" + os.path.join(prefix, "include/bfcpreload-sim"),
            source, "-o", program, "-L" + libraries, "-lcuda")
        run(program, env=dict(os.environ, LD_LIBRARY_PATH=libraries))

    def test_not_unasked(self):
        """Without the option nothing of it is installed."""
        plan = json.loads(run("meson", "introspect", "--installed", BUILD))
        unasked = [to for to in plan.values() if "libcuda" in to or "bfcpreload-sim" in to]
        self.assertEqual(unasked, [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
