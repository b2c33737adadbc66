"""Whether what was built in a work folder that is kept is of the sources as they are now."""

import hashlib
import os
import platform

from .toolkit import ROOT

LIBRARY = "interpose/libbfcpreload.so"  # in a Meson build folder
# With tests, which hold gpu-check's own flags.
FOLDERS = ("base", "interpose", "layout", "planner", "pool", "segment", "sim", "tests", "tools")


def fingerprint(*more):
    """Of all files that programs are built of, and of what else decides how they come out."""
    made = hashlib.sha256(repr((platform.machine(), os.environ.get("CC"), *more)).encode())
    for path in [os.path.join(ROOT, "meson.build"), *(path for folder in FOLDERS for path in files(folder))]:
        with open(path, "rb") as file:
            made.update(os.fsencode(os.path.relpath(path, ROOT)) + b"\0" + file.read() + b"\0")
    return made.hexdigest()


def version():
    with open(os.path.join(ROOT, "meson.build"), encoding="utf-8") as file:
        return next((line.split("'")[1] for line in file if "version:" in line), "0")


def of_library(build):
    """What tells the library of a Meson build folder from others."""
    try:
        with open(os.path.join(build, LIBRARY), "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()[:12]
    except OSError:
        return "unknown"


def files(folder):
    found = [os.path.join(place, name) for place, _, names in os.walk(os.path.join(ROOT, folder)) for name in names]
    return sorted(path for path in found if os.path.isfile(path) and not path.endswith(".pyc"))


class Stamps:
    """A file for each thing that was built; it holds the fingerprint of what it was built of."""

    def __init__(self, folder, tree):
        self.folder, self.tree = folder, tree

    def path(self, name):
        return os.path.join(self.folder, name + ".built")

    def has(self, name, made_of=None):
        """`made_of`: what it was made of, if not of the sources."""
        try:
            with open(self.path(name), encoding="utf-8") as file:
                return file.read() == (made_of or self.tree)
        except (FileNotFoundError, ValueError):
            return False

    def put(self, name, made_of=None):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(made_of or self.tree)
