"""The libraries export every name that NVIDIA's export, with NVIDIA's version nodes, and no others.

NVIDIA's names are those of the lists in names/ (libcuda of CUDA 13.0 with its OpenGL, EGL and VDPAU
names; libcudart 13.2 and 12.9), and of NVIDIA's own libraries where they are found: in the folder of the
fetched runtimes (scripts/fetch-runtimes), and beside the toolkit's headers. A newer library than the
lists' may have more names: of the fetched ones, which are pinned, these fail the test; of the
toolkit's they are told.

usage: symbols.py LIBCUDA LIBCUDART LIBCUDART12 NAMES RUNTIMES INCLUDE"""
import os
import re
import subprocess
import sys

LIBCUDA, LIBCUDART, LIBCUDART12, NAMES, RUNTIMES, INCLUDE = sys.argv[1:]
# Tests' own entries, and calls that came after CUDA 13.0.
OWN = re.compile(r"sim_\w+|cuStream(Begin|End)(CaptureToCig|RecaptureToGraph|UnheardOfCapture)(_ptsz)?")


def exported(library):
    """{name: version node or ''} of a library."""
    out = subprocess.run(["readelf", "--dyn-syms", "-W", library], check=True, capture_output=True,
                         text=True).stdout
    names = {}
    for line in out.splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[4] in ("GLOBAL", "WEAK") and fields[6] not in ("UND", "ABS"):
            name, _, node = fields[7].partition("@")
            names[name] = node.lstrip("@")
    return names


def listed(name):
    with open(os.path.join(NAMES, name), encoding="utf-8") as file:
        return file.read().split()


def of_toolkit(name):
    """The toolkit's library of that name, or its stub of the driver; None: it has none."""
    toolkit = os.path.dirname(INCLUDE)
    own = "stubs/libcuda.so" if name == "libcuda.so.1" else name
    places = [os.path.join(toolkit, folder, own) for folder in ("lib64", "lib")]
    return next((place for place in places if os.path.exists(place)), None)


def missing(ours, path):
    """A line for each name that a library has and ours lacks."""
    return [f"{path} has {name}, the stand-in lacks it"
            for name in sorted(set(exported(path)) - set(ours))]


def differences(ours, name, node):
    """What a reference has and ours lacks, and the reverse, told line by line."""
    wanted = set(listed(name))
    for name_ in sorted(wanted - set(ours)):
        yield f"{name} of the list has {name_}, the stand-in lacks it"
    for name_ in sorted(set(ours) - wanted):
        if not OWN.fullmatch(name_):
            yield f"the stand-in has {name_}, which {name} of the list lacks"
    for name_, its in sorted(ours.items()):
        if its != node:
            yield f"{name_} has the version node '{its}', not '{node}'"
    fetched = os.path.join(RUNTIMES, name)
    if os.path.exists(fetched):
        yield from missing(ours, fetched)


def main():
    failed = False
    for library, name, node in ((LIBCUDA, "libcuda.so.1", ""),
                                (LIBCUDART, "libcudart.so.13", "libcudart.so.13"),
                                (LIBCUDART12, "libcudart.so.12", "libcudart.so.12")):
        ours = exported(library)
        found = list(differences(ours, name, node))
        toolkit = of_toolkit(name)
        for line in found + (missing(ours, toolkit) if toolkit else []):
            print(line)
        fetched = "the fetched one" if os.path.exists(os.path.join(RUNTIMES, name)) else "none fetched"
        print(f"{name}: {len(ours)} names, compared with the list, {fetched}, {toolkit or 'no toolkit'}")
        failed = failed or bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
