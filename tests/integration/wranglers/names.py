#!/usr/bin/env python3
"""The driver's and the runtime's names that the library exports, as a list for the preprocessor.
usage: names.py EXPORTS"""

import sys

with open(sys.argv[1], encoding="utf-8") as exports:
    names = sorted({name.split("@")[0] for name in exports.read().split() if name.startswith("cu")})
print("#define WRANGLED_NAMES(X) \\\n" + " \\\n".join(f"    X({name})" for name in names))
