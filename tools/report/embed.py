#!/usr/bin/env python3
"""The report page as a C string: embed.py HEADER PAGE FILE...

In PAGE each @NAME@ is replaced by the FILE of that name, so that one page holds them all."""

import os
import sys

header, source, *parts = sys.argv[1:]
with open(source, encoding="utf-8") as file:
    text = file.read()
for part in parts:
    with open(part, encoding="utf-8") as file:
        text = text.replace(f"@{os.path.basename(part)}@", file.read().strip())
numbers = [str(byte if byte < 128 else byte - 256) for byte in text.encode()] + ["0"]
with open(header, "w", encoding="utf-8") as file:
    file.write("static const char report_page[] = {\n")
    for i in range(0, len(numbers), 24):
        file.write(",".join(numbers[i:i + 24]) + ",\n")
    file.write("};\n")
