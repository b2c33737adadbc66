#!/usr/bin/env python3
"""Puts the table of variables into a manual page: variables.py TABLE TEMPLATE PAGE."""

import sys

source, template, page = sys.argv[1:4]


def roff(text):
    return text.strip().replace("`", "").replace("\\", "\\e").replace("-", "\\-")


items = ""
with open(source, encoding="utf-8") as file:
    table = file.read()
for line in table.splitlines()[2:]:
    name, default, accepted, meaning = (roff(cell) for cell in line.strip("|").split("|"))
    items += f".TP\n.B {name}\n{meaning} Default: {default}; accepted: {accepted}.\n"
with open(template, encoding="utf-8") as file:
    text = file.read().replace("@VARIABLES@", items)
with open(page, "w", encoding="utf-8") as file:
    file.write(text)
