"""Installs others' programs into a folder, pinned with hashes, each form of the suite in a virtual
environment of its own; what is built of their sources is linked with the stand-in's runtime."""

import glob
import os
import shutil
import subprocess
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))


def skip(why):
    print(why)
    sys.exit(77)


def step(what, command, **how):
    """A command without which the test is skipped."""
    tried = subprocess.run(command, capture_output=True, text=True, **how)
    if tried.returncode:
        said = tried.stderr.strip().splitlines() or ["no reason given"]
        skip(f"{what}: {said[-1]}")


def install(form, folder, sim, include=""):
    """A virtual environment with the packages of a form, complete or not at all; its Python."""
    home = os.path.join(folder, form)
    python = os.path.join(home, "bin", "python")
    done = os.path.join(home, "done")
    pinned = pins(form)
    if os.path.exists(done):
        with open(done, "rb") as file:
            if file.read() == pinned:
                return python
    shutil.rmtree(home, ignore_errors=True)
    step("no virtual environment", [sys.executable, "-m", "venv", "--without-pip", home])
    packages = os.path.join(HERE, f"requirements-{form}.txt")
    step(f"the packages of requirements-{form}.txt cannot be installed",
         [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile",
          "--no-deps", "--only-binary", ":all:", "--require-hashes", "-r", packages])
    replace_runtimes(home, sim)
    unpack_sources(form, home, python)
    if form in BUILDERS:
        BUILDERS[form](home, python, sim, include)
    with open(done, "wb") as file:
        file.write(pinned)
    return python


def pins(form):
    """What an installation of a form was made of."""
    text = b""
    for name in (f"requirements-{form}.txt", f"sources-{form}.txt"):
        path = os.path.join(HERE, name)
        if os.path.exists(path):
            with open(path, "rb") as file:
                text += file.read()
    return text


def replace_runtimes(home, sim):
    """Packages bring NVIDIA's runtime, which refuses the stand-in's driver, and find it beside
    themselves: the stand-in's takes its place."""
    for folder, _, files in os.walk(home):
        if "libcudart.so.13" in files:
            runtime = os.path.join(folder, "libcudart.so.13")
            os.remove(runtime)
            os.symlink(os.path.join(sim, "libcudart.so.13"), runtime)


def unpack_sources(form, home, python):
    """The sources that a form names, in the folder `sources`, unpacked. pip asks them for their
    metadata, with the pinned build tools of the environment."""
    wanted = os.path.join(HERE, f"sources-{form}.txt")
    if not os.path.exists(wanted):
        return
    folder = os.path.join(home, "sources")
    step(f"the packages of sources-{form}.txt cannot be had",
         [sys.executable, "-m", "pip", "--python", python, "download", "--quiet", "--no-deps",
          "--no-build-isolation", "--no-binary", ":all:", "--require-hashes", "-d", folder, "-r", wanted])
    for path in glob.glob(os.path.join(folder, "*.tar.gz")):
        with tarfile.open(path) as archive:
            archive.extractall(folder, filter="data")


def source_of(home, name):
    return glob.glob(os.path.join(home, "sources", name + "-*", ""))[0]


def build_cupy_runtime(home, python, sim, include):
    """CuPy's wheel holds NVIDIA's static runtime. Its module `runtime` is built again, with the
    stand-in's; the modules of kernels keep theirs, which find no device."""
    source = source_of(home, "cupy")
    module = os.path.join(source, "cupy_backends", "cuda", "api", "runtime")
    step("CuPy's runtime cannot be translated",
         [python, "-m", "cython", "-3", "--cplus", "-E", "CUPY_CUDA_VERSION=13000,CUPY_HIP_VERSION=0,"
          "CUPY_USE_CUDA_PYTHON=0,CUPY_CUFFT_STATIC=0", module + ".pyx"], cwd=source)
    place = glob.glob(os.path.join(home, "lib", "*", "site-packages", "cupy_backends", "cuda", "api",
                                   "runtime.*.so"))[0]
    headers = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('include'))"],
                             capture_output=True, text=True, check=True).stdout.strip()
    step("CuPy's runtime cannot be built",
         ["c++", "-O1", "-w", "-shared", "-fPIC", module + ".cpp", "-o", place, "-I", source, "-I", headers,
          "-I", include, os.path.join(sim, "libcudart_static.a"), "-ldl", "-lpthread"])


def build_pycuda(home, python, sim, include):
    """PyCUDA, linked with the stand-in's driver, without random numbers (cuRAND is not here)."""
    source = source_of(home, "pycuda")
    with open(os.path.join(source, "siteconf.py"), "w", encoding="utf-8") as file:
        print(f"CUDA_ROOT = {os.path.dirname(include)!r}", f"CUDA_INC_DIR = [{include!r}]",
              f"CUDADRV_LIB_DIR = CUDART_LIB_DIR = [{sim!r}]", "CUDA_ENABLE_CURAND = False",
              "USE_SHIPPED_BOOST = True", sep="\n", file=file)
    step("PyCUDA cannot be built",
         [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps",
          "--no-build-isolation", source])


BUILDERS = {"long": build_cupy_runtime, "pycuda": build_pycuda}
