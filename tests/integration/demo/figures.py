#!/usr/bin/env python3
"""What README, the quick start and docs/tuning.md say of the demo's training loop over the stand-in GPU, as the loop is now.

usage: figures.py check|update SOURCE-ROOT BUILD

After a line `<!-- figures of the demo -->` a block of console has a command, `$ NAME=VALUE bfcrun train ...`, and
what it prints; an indented block has lines of `bfcstat PID` after the warm-up, where times and UUIDs are not compared. In a table each row's first cell has, in backquotes, the variables with which
the loop is preloaded; without any it runs natively. `FILE` for a plan is one that bfcplan makes of a recording
of the same loop. The figures are the counts of the stand-in driver and, of memory, those of the program
natively and of the pool when preloaded; calls in all are the stand-in's `total`, which leaves out look-ups, as of the current
context. A few depend a little on the machine, though work takes steps instead
of time there: all driver calls; and in lazy and ordered memory and the calls for it. Such a figure is rounded,
and stays while it is nearly right. `check` fails where the page says anything else; `update` (ninja
demo-figures) writes what it should say.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

ITERATIONS, WARM_UP = 300, 24
MIB = 1 << 20
FENCED = ("lazy", "ordered")
TABLE = re.compile(r"(<!-- figures of the demo -->\n\|[^\n]*\n\|[-|]*\n)((?:\|[^\n]*\n)+)")
BLOCK = re.compile(r"(<!-- figures of the demo -->\n```console\n\$ ((?:\w+=\S+ )+)bfcrun train ([^\n]*)\n)(.*?)(?=```)", re.DOTALL)
SHOWN = re.compile(r"(<!-- figures of the demo -->\n(?!```|\|)[^\n]+\n\n)((?:    [^\n]+\n)+)")
VARIES = re.compile(r"\d[\d.]* (?:ns|us|ms|s)\b| [0-9a-f]{8}(?=\))")
# What allocates, frees or maps device memory.
CALLS = ("cuMemAlloc_v2", "cuMemFree_v2", "cuMemAddressReserve", "cuMemAddressFree", "cuMemCreate", "cuMemRelease",
         "cuMemMap", "cuMemUnmap", "cuMemSetAccess")


def label_of(line):
    return re.match(r" *(\w+ )*", line)[0]


class Loop:
    """Runs the training loop, natively or preloaded."""

    def __init__(self, build, folder):
        self.build, self.folder = os.path.abspath(build), folder
        self.native = None  # calls and waits of the first row

    def command(self, *arguments):
        return [os.path.join(self.build, "tests", "integration", "demo", "train"), *arguments]

    def environment(self, variables, stats):
        """On a device that no other job asks for memory or tells of."""
        env = {k: v for k, v in os.environ.items() if not re.match("BFC_|SIM_|LD_PRELOAD$|LD_LIBRARY_PATH$", k)}
        env.update(variables, LD_LIBRARY_PATH=os.path.join(self.build, "sim"), SIM_STATS=stats, SIM_SEED="1",
                   SIM_SHARE=os.path.join(self.folder, "device"))
        if variables.get("BFC_FREE") in FENCED:
            env["SIM_STEP"] = "64"
        if variables:
            env["LD_PRELOAD"] = os.path.join(self.build, "interpose", "libbfcpreload.so")
        return env

    def plan(self):
        """A plan of the loop, made of a recording."""
        recording, plan = os.path.join(self.folder, "train.bfctrace"), os.path.join(self.folder, "train.plan")
        if not os.path.exists(plan):
            self.run({"BFC_RECORD": recording})
            subprocess.run([os.path.join(self.build, "tools", "plan", "bfcplan"), "solve", recording, "-o", plan],
                           check=True, stdout=subprocess.DEVNULL)
        return plan

    def pool(self, pid):
        shown = subprocess.run([os.path.join(self.build, "tools", "bfcstat"), "--json", str(pid)], check=True,
                               stdout=subprocess.PIPE, text=True).stdout
        return json.loads(shown)["pools"][0]

    def run(self, variables):
        """(most MiB of device memory, calls for memory, calls in all, waits for frees) of one run."""
        with tempfile.NamedTemporaryFile(dir=self.folder) as stats:
            run = subprocess.Popen(self.command(str(ITERATIONS), str(WARM_UP), "pause"), env=self.environment(variables, stats.name), text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            run.stdout.readline()
            run.stdin.write("\n")
            run.stdin.flush()
            done = json.loads(run.stdout.readline())
            pool = self.pool(run.pid) if variables else None
            run.communicate("\n")
            counted = json.loads(stats.read())
            calls = counted["calls"]
        if run.returncode or done["mismatches"]:
            sys.exit(f"the loop with {variables} ended with {run.returncode} and {done['mismatches']} mismatches")
        memory = pool["peak_reserved"] if pool else done["most_held"]
        # Natively each free waits for the device.
        waits = pool["host_waits"] if pool else done["frees"]
        return memory / MIB, sum(calls.get(name, 0) for name in CALLS), counted["total"], waits

    def says(self, variables, arguments):
        """What the loop prints when it is preloaded."""
        variables = dict(word.split("=", 1) for word in variables.split())
        run = subprocess.run(self.command(*arguments.split()), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             env=self.environment(variables, "/dev/null"))
        return run.stdout

    def shown(self, lines):
        """Those lines of `bfcstat PID`, with the loop warm, as they are now."""
        run = subprocess.Popen(self.command("1", str(WARM_UP), "pause"), env=self.environment({"BFC_FREE": "sync"}, "/dev/null"),
                               text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        run.stdout.readline()
        told = subprocess.run([os.path.join(self.build, "tools", "bfcstat"), str(run.pid)], check=True, stdout=subprocess.PIPE,
                              text=True).stdout
        run.communicate("\n\n")
        by_label = {label_of(line): line for line in reversed(told.splitlines())}
        for line in lines.splitlines():
            now = "    " + by_label.get(label_of(line[4:]), "")
            yield (line if VARIES.sub("", line) == VARIES.sub("", now) else now) + "\n"

    def row(self, line):
        """The row with its figures as they are now."""
        label = line.strip().strip("|").split("|")[0]
        variables = dict(words.split("=", 1) for words in re.findall(r"`(\w+=[^`]*)`", label))
        if variables.get("BFC_PLAN") == "FILE":
            variables["BFC_PLAN"] = self.plan()
        old = [int(re.sub(r"\D", "", cell) or 0) for cell in line.strip().strip("|").split("|")[1:]]
        memory, for_memory, calls, waits = self.run(variables)
        self.native = self.native or (calls, waits)
        if variables.get("BFC_FREE") in FENCED and not (calls < self.native[0] and waits < self.native[1]):
            sys.exit(f"{label} makes {calls} driver calls and {waits} waits, natively there are {self.native}")
        calls = keep_near(old[2], calls, 0.02, -3)
        if variables.get("BFC_FREE") in FENCED:
            memory, for_memory = keep_near(old[0], memory, 0.12, -1), keep_near(old[1], for_memory, 0.2, -1)
        return f"|{label}| {memory:,.0f} MiB | {for_memory:,} | {calls:,} | {waits:,} |\n"


def keep_near(old, new, part, digits):
    """The old figure if the new one differs by this part of it at most, else the new one, rounded."""
    return old if abs(new - old) <= new * part else round(new, digits)


def main(what, root, build):
    stale = False
    with tempfile.TemporaryDirectory(prefix="bfc-figures-") as folder:
        loop = Loop(build, folder)
        for page in (os.path.join(root, name) for name in ("README.md", "docs/quick-start.md", "docs/tuning.md")):
            with open(page, encoding="utf-8") as file:
                old = file.read()
            if "<!-- figures of the demo -->" not in old:
                sys.exit(f"{page} has no figures of the demo")
            new = TABLE.sub(lambda m: m[1] + "".join(map(loop.row, m[2].splitlines())), old)
            new = BLOCK.sub(lambda m: m[1] + loop.says(m[2], m[3]), new)
            new = SHOWN.sub(lambda m: m[1] + "".join(loop.shown(m[2])), new)
            if what == "update":
                with open(page, "w", encoding="utf-8") as file:
                    file.write(new)
            for before, after in zip(old.splitlines(), new.splitlines()):
                if before != after and what == "check":
                    stale = True
                    print(f"{page} says {before}\n  and should say {after}")
    if stale:
        sys.exit("run ninja demo-figures, and read whether the text still agrees with them")


if __name__ == "__main__":
    main(*sys.argv[1:])
