"""bfcpreload: a caching device allocator for unmodified CUDA programs, to be preloaded.

    bfcrun python train.py            or            python -m bfcpreload run python train.py
"""

import os
import sysconfig

__all__ = ["library", "tool"]


def _places(folder):
    """Where pip puts files of this package: the environment's prefix, or the user's."""
    for scheme in (sysconfig.get_default_scheme(), "posix_prefix", "posix_user"):
        yield os.path.normpath(os.path.join(sysconfig.get_path("scripts", scheme), "..", folder))


def _find(folder, name):
    for place in _places(folder):
        path = os.path.join(place, name)
        if os.path.exists(path):
            return path
    raise FileNotFoundError(f"{name} was not installed with this package")


def library():
    """The path of libbfcpreload.so, for LD_PRELOAD."""
    return _find("lib/bfcpreload", "libbfcpreload.so")


def tool(name):
    """The path of bfcrun, bfcstat, bfcplan or bfcreplay."""
    return _find("bin", name)
