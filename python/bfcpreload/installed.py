"""Where pip put the files of this package."""

import os
import sysconfig
from typing import Iterator


class Error(RuntimeError):
    """The library is not loaded, there is no such job, or bfcstat said no; the text says which."""

    __module__ = "bfcpreload"


def _places(folder: str) -> Iterator[str]:
    """Where pip puts files of this package: the environment's prefix, or the user's."""
    default = getattr(sysconfig, "get_default_scheme", lambda: "posix_prefix")  # from Python 3.10 on
    for scheme in (default(), "posix_prefix", "posix_user"):
        yield os.path.normpath(os.path.join(sysconfig.get_path("scripts", scheme), "..", folder))


def _find(folder: str, name: str) -> str:
    for place in _places(folder):
        path = os.path.join(place, name)
        if os.path.exists(path):
            return path
    raise Error(f"{name} was not installed with this package")


def library() -> str:
    """The path of libbfcpreload.so, for LD_PRELOAD."""
    return _find("lib/bfcpreload", "libbfcpreload.so")


def tool(name: str) -> str:
    """The path of bfcrun, bfcstat, bfcplan or bfcreplay."""
    return _find("bin", name)
