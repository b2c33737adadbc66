#!/usr/bin/env python3
"""Makes a manual page of a tool's help: help_page.py TOOL NAME SUMMARY PAGE."""

import subprocess
import sys

tool, name, summary, page = sys.argv[1:5]
shown = subprocess.run([tool, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
text = shown.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
lines = "".join(("\\&" + line if line[:1] in (".", "'") else line) + "\n" for line in text.splitlines())
with open(page, "w", encoding="utf-8") as file:
    file.write(f".TH {name.upper()} 1 \"\" bfcpreload\n.SH NAME\n{name} \\- {summary}\n.SH DESCRIPTION\n.nf\n{lines}.fi\n"
               ".SH SEE ALSO\n.BR libbfcpreload (7),\n.BR bfcrun (1)\n")
