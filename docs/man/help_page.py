#!/usr/bin/env python3
"""Makes a manual page of a tool's help: help_page.py HELP NAME SUMMARY PAGE."""

import sys

source, name, summary, page = sys.argv[1:5]
with open(source, encoding="utf-8") as file:
    shown = file.read()
text = shown.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
lines = "".join(("\\&" + line if line[:1] in (".", "'") else line) + "\n" for line in text.splitlines())
with open(page, "w", encoding="utf-8") as file:
    file.write(f".TH {name.upper()} 1 \"\" bfcpreload\n.SH NAME\n{name} \\- {summary}\n.SH DESCRIPTION\n.nf\n{lines}.fi\n"
               ".SH SEE ALSO\n.BR libbfcpreload (7),\n.BR bfcrun (1)\n")
