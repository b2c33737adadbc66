#!/usr/bin/env python3
"""A text file as a C string: embed.py NAME FILE HEADER."""

import sys

name, source, header = sys.argv[1:4]
with open(source, encoding="utf-8") as file:
    text = file.read()
with open(header, "w", encoding="utf-8") as file:
    file.write(f"static const char {name}[] = {{\n")
    numbers = [str(byte if byte < 128 else byte - 256) for byte in text.encode()] + ["0"]
    for i in range(0, len(numbers), 24):
        file.write(",".join(numbers[i:i + 24]) + ",\n")
    file.write("};\n")
