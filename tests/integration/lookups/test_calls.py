#!/usr/bin/env python3
"""The table of the driver's calls has every function of the installed header, with the version from
which cuGetProcAddress gives it.

usage: test_calls.py CALLS INCLUDE_FOLDER COMPILER [ARGUMENT...]"""

import re
import subprocess
import sys

ROW = re.compile(r"^BFC_CALL\((\w+), (\d+), (\w+)\)$", re.M)
FUNCTION = re.compile(r"\bCUresult\s+(cu\w+)\s*\([^;{]*?\)\s*;")
TYPE = re.compile(r"\bPFN_(cu\w+?)_v(\d+)((?:_pt[ds]s|_ptsz)?)\b")
SYMBOL = re.compile(r"^(cu\w+?)(_v\d+)?(_ptds|_ptsz)?$")


def functions(include, compiler):
    """What the header declares, all variants included."""
    text = subprocess.run(compiler + ["-E", "-P", "-I", include, "-D__CUDA_API_VERSION_INTERNAL",
                                      "-x", "c", "-"],
                          input="#include <cuda.h>\n", capture_output=True, text=True, check=True)
    return set(FUNCTION.findall(text.stdout))


def versions(include):
    """Name, version and ending of every function type."""
    with open(f"{include}/cudaTypedefs.h", encoding="utf-8") as file:
        return set(TYPE.findall(file.read()))


def main():
    calls, include, *compiler = sys.argv[1:]
    with open(calls, encoding="utf-8") as file:
        rows = ROW.findall(file.read())
    symbols = [symbol for symbol, _, _ in rows]
    failures = [f"{symbol} is not in the table: what may it need device memory for?"
                for symbol in sorted(functions(include, compiler) - set(symbols))]
    failures += [f"{symbol} is there twice" for symbol in set(symbols) if symbols.count(symbol) > 1]
    listed = {SYMBOL.match(symbol).group(1, 3) + (version,) for symbol, version, _ in rows}
    failures += [f"{name}{ending}, version {version}: not in the table"
                 for name, version, ending in sorted(versions(include))
                 if (name, ending or None, version) not in listed]
    print(f"{len(rows)} calls", *failures, sep="\n")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
