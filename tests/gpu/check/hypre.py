"""hypre's driver `ij`, built for the device from the source that scripts/fetch-programs fetches, without MPI and
without libraries of CUDA's, so that it allocates by plain cudaMalloc."""

import hashlib
import os
import re
import shlex
import shutil
import tarfile

from .toolkit import ROOT

ARCHIVE = os.path.join(ROOT, "build", "programs", "hypre_2.32.0.orig.tar.gz")
# What `ij` is made of; hypre's other half, structured grids, would take as long again.
ROOMS = ("utilities", "seq_mv", "seq_block_mv", "parcsr_mv", "parcsr_block_mv", "parcsr_ls", "IJ_mv", "krylov",
         "multivector", "blas", "lapack", "distributed_matrix", "distributed_ls", "matrix_matrix")
OPTIONS = {"HYPRE_WITH_MPI": "OFF", "HYPRE_WITH_CUDA": "ON", "HYPRE_ENABLE_CUSPARSE": "OFF",
           "HYPRE_ENABLE_CURAND": "OFF", "HYPRE_BUILD_TESTS": "ON", "CMAKE_BUILD_TYPE": "Release",
           "CMAKE_CUDA_STANDARD": "17", "CMAKE_CXX_STANDARD": "17"}
AMBIGUOUS = ("IJ_mv/IJMatrix_parcsr_device.c", "IJ_mv/IJVector_parcsr_device.c")
MINUTES_FOR_IT = 8


class NotBuilt(Exception):
    pass


def build(session, architecture):
    """The driver's path. `architecture`: the device's, as CMake knows it. What an earlier turn has compiled for it stays."""
    missing = [tool for tool in ("cmake", "ninja") if not shutil.which(tool)]
    if not os.path.exists(ARCHIVE):
        raise NotBuilt(f"missing: no {os.path.relpath(ARCHIVE, ROOT)}, which scripts/fetch-programs fetches")
    if missing or not session.toolkit.nvcc():
        raise NotBuilt("missing: no " + ", ".join(missing or ["nvcc"]))
    must_be_pinned(ARCHIVE)
    source = os.path.join(session.work, os.path.basename(ARCHIVE).partition(".orig")[0])
    made = os.path.join(session.work, "hypre-built")
    program = os.path.join(made, "ij")
    unpack(source)
    configure(session, source, made, architecture)
    objects = parts_of_ij(made)
    must(session, ["ninja", "-C", made, *objects])
    must(session, [session.toolkit.nvcc(), "-o", program, *(os.path.join(made, path) for path in objects),
                   os.path.join(ROOT, "tests/gpu/hypre_left_out.c")])
    return program


def must_be_pinned(archive):
    """What was half fetched, or is another's, is neither unpacked nor run."""
    with open(os.path.join(ROOT, "tests/gpu/pinned"), encoding="utf-8") as file:
        pinned = dict(line.split() for line in file if not line.startswith("#"))
    found = hashlib.sha256()
    with open(archive, "rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    if found.hexdigest() != pinned.get(os.path.basename(archive)):
        raise NotBuilt(f"{os.path.relpath(archive, ROOT)} is damaged or another one: its SHA-256 is {found.hexdigest()}, "
                       "not the one in tests/gpu/pinned; scripts/fetch-programs fetches it again")


def unpack(source):
    """Complete or not at all, with the only change that the header cannot make: names that CUDA 13 has twice."""
    if os.path.exists(source):
        return
    shutil.rmtree(source + "-packed", ignore_errors=True)  # of one that was cut off
    with tarfile.open(ARCHIVE) as archive:
        top = archive.getnames()[0].split("/")[0]
        archive.extractall(source + "-packed")
    for name in AMBIGUOUS:
        path = os.path.join(source + "-packed", top, "src", name)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(re.sub(r"(?<![:\w])make_reverse_iterator\(", "thrust::make_reverse_iterator(", text))
    os.rename(os.path.join(source + "-packed", top, "src"), source)


def configure(session, source, made, architecture):
    """Once for a device, a compiler and these options; what was compiled for others goes."""
    flags = "-w -include " + shlex.quote(os.path.join(ROOT, "tests/gpu/hypre.cuh"))
    if session.stand_in:
        flags += " -fdevice-syntax-only"  # no kernel runs there, and this takes less time
    options = {**OPTIONS, "HYPRE_CUDA_SM": architecture, "CMAKE_CUDA_FLAGS": flags,
               "CMAKE_CUDA_COMPILER": session.toolkit.nvcc()}
    command = ["cmake", "-G", "Ninja", "-S", source, "-B", made, *(f"-D{name}={value}" for name, value in options.items())]
    if session.stamps.has("hypre", repr(command)):
        return
    shutil.rmtree(made, ignore_errors=True)
    must(session, command)
    session.stamps.put("hypre", repr(command))


def parts_of_ij(made):
    with open(made + "/build.ninja", encoding="utf-8") as file:
        objects = re.findall(r"^build (\S+\.o): \w+_COMPILER__", file.read(), re.M)
    wanted = re.compile(rf"(CMakeFiles/HYPRE\.dir/({'|'.join(ROOMS)})/|test/CMakeFiles/ij\.dir/)")
    return [path for path in objects if wanted.match(path)]


def must(session, command):
    status, out, error = session.run(command, 60 * MINUTES_FOR_IT)
    if status:
        raise NotBuilt(f"does not build: {command[0]} ended with {status}: {(out + error)[-600:]}")
