"""Finds the files of this package where pip put them."""

import os
import sysconfig
from typing import Iterator


class Error(RuntimeError):
    """The library is not loaded, there is no such job, or bfcstat has failed; the message says which."""

    __module__ = "bfcpreload"


def _places(folder: str) -> Iterator[str]:
    """Yields the folders where pip may have put files: below the prefix of the environment, and below the user's."""
    default = getattr(sysconfig, "get_default_scheme", lambda: "posix_prefix")  # exists from Python 3.10 on
    for scheme in (default(), "posix_prefix", "posix_user"):
        yield os.path.normpath(os.path.join(sysconfig.get_path("scripts", scheme), "..", folder))


def _find(folder: str, name: str) -> str:
    for place in _places(folder):
        path = os.path.join(place, name)
        if os.path.exists(path):
            return path
    raise Error(f"{name} was not installed with this package")


def library() -> str:
    """Returns the path of libbfcpreload.so, for LD_PRELOAD."""
    return _find("lib/bfcpreload", "libbfcpreload.so")


def tool(name: str) -> str:
    """Returns the path of the program bfcrun, bfcstat, bfcplan or bfcreplay."""
    return _find("bin", name)
