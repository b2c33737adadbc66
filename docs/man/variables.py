#!/usr/bin/env python3
"""Puts the table of variables into a manual page: variables.py TABLE EVERYDAY TEMPLATE PAGE."""

import sys

source, everyday, template, page = sys.argv[1:5]


def roff(text):
    return text.strip().replace("`", "").replace("\\", "\\e").replace("-", "\\-")


with open(everyday, encoding="utf-8") as file:
    names = file.read().split()
items = ".SS Every day\n"
with open(source, encoding="utf-8") as file:
    table = file.read()
for row, line in enumerate(table.splitlines()[2:]):
    if row == len(names):
        items += ".SS For experts\n"
    name, default, accepted, meaning = (roff(cell) for cell in line.strip("|").split("|"))
    items += f".TP\n.B {name}\n{meaning} Default: {default}; accepted: {accepted}.\n"
with open(template, encoding="utf-8") as file:
    text = file.read().replace("@VARIABLES@", items)
with open(page, "w", encoding="utf-8") as file:
    file.write(text)
