#!/usr/bin/env python3
"""Each message that docs/internals/log.md lists for info and debug comes about, and no other one does."""

import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest

LIBRARY, SCENES, RUNTIME, PAGE, SIM = (
    os.environ[name] for name in ("LIBRARY", "SCENES", "RUNTIME", "PAGE", "SIM"))
WORDS = {"N": r"\d+", "SIZE": r"(?:none|[0-9.]+ (?:[KMGT]i)?B)", "ADDRESS": "0x[0-9a-f]+",
         "WORD": r"\w+", "TEXT": ".+", "VARIABLE": r"BFC_\w+"}
NUMBER = r"(?: \(number \d+ of this kind\))?"


def rows():
    with open(PAGE, encoding="utf-8") as page:
        level = None
        for line in page:
            heading = re.match(r"## (.*)", line)
            level = heading[1] if heading else level
            row = re.match(r"- `([^`]*)`( \*)?: ", line)
            if row and level in ("info", "debug"):
                yield level, bool(row[2]), row[1]


def pattern(repeated, message):
    text = re.sub(r"\b(?:N|SIZE|ADDRESS|WORD|TEXT|VARIABLE)\b", lambda word: WORDS[word[0]], re.escape(message))
    return re.compile("bfcpreload: " + text + (NUMBER if repeated else ""))


MESSAGES = [(level, message, pattern(repeated, message)) for level, repeated, message in rows()]


# The tests of sleep read these.
OF_SLEEP = {"job N was put to sleep for SIZE", "awake again", "the job stays awake: TEXT"}


def environment(level, **variables):
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("BFC_", "SIM_", "CUDA_"))}
    return {**kept, "LD_PRELOAD": LIBRARY, "LD_LIBRARY_PATH": SIM, "SIM_MEMORY": "1G", "BFC_YIELD": "0",
            "BFC_LOG": level, **variables}


def play(*command, level="debug", **variables):
    done = subprocess.run(command, env=environment(level, **variables), capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, (command, done)
    return [line for line in done.stderr.splitlines() if line.startswith("bfcpreload: ")
            and not line.startswith("bfcpreload: out of memory: ")]


def play_until(scene, *awaited, **variables):
    """The scene lasts until each of these was said, or the library ends."""
    with subprocess.Popen([SCENES, scene], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=environment("debug", **variables)) as process:
        ends = threading.Timer(60, process.kill)
        ends.start()
        lines = []
        while not all(any(words in line for line in lines) for words in awaited):
            line = process.stderr.readline()
            if not line:
                break
            lines.append(line.rstrip("\n"))
        ends.cancel()
        process.stdin.close()
        return lines


def play_plans():
    with tempfile.TemporaryDirectory() as folder:
        trace, plan = (os.path.join(folder, name) for name in ("trace", "plan"))
        play(SCENES, "ends", BFC_RECORD=trace)
        subprocess.run([os.environ["BFCPLAN"], "solve", trace, "-o", plan], check=True, stdout=subprocess.DEVNULL)
        yield from play(SCENES, "ends", BFC_PLAN=plan)
        yield from play(SCENES, "ends", BFC_PLAN=plan, SIM_FAIL="cuMemAlloc_v2@1:2")


def play_all():
    for mode in "sync", "lazy", "ordered":
        for scene in "second", "before", "past", "child", "lookups", "ends", "siblings", "trim":
            yield from play(SCENES, scene, BFC_FREE=mode)
    for mode in "lazy", "ordered":  # in sync a free waits
        yield from play(SCENES, "late", BFC_FREE=mode)
    yield from play(os.environ["STREAMS"], "unknown", BFC_FREE="lazy", BFC_GATE="1", SIM_DRIVER_VERSION="99000")
    yield from play(SCENES, "refused")
    yield from play(SCENES, "siblings", BFC_LIMIT="900M")
    yield from play(SCENES, "refused", BFC_LIMIT="512M")
    yield from play(SCENES, "refused", BFC_RESERVE="512M")
    yield from play(SCENES, "refused", BFC_YIELD="1")
    yield from play(SCENES, "refused", BFC_SPILL="1G")
    yield from play(SCENES, "refused", BFC_SPILL="1G", SIM_MAPS_HOST="0")
    yield from play(SCENES, "pending", BFC_FREE="ordered", BFC_GATE="off", SIM_FAIL="cuCtxWaitEvent@1+:2")
    for variables in {"BFC_DISABLE": "1"}, {"BFC_ONLY": "other"}, {"BFC_NOT": "scenes"}:
        yield from play(SCENES, "ends", **variables)
    yield from play(SCENES, "ends", BFC_BACKING="pages")
    yield from play(SCENES, "ends", BFC_BACKING="pages", SIM_VIRTUAL="0")
    yield from play(SCENES, "captured", BFC_BACKING="auto")
    yield from play(SCENES, "ends", BFC_BACKING="pages", SIM_FAIL="cuMemMap@1+:801")
    yield from play_plans()
    yield from play(RUNTIME)
    yield from play(RUNTIME, CUDA_INJECTION64_PATH="libtool.so")
    yield from play_until("small", "bfcpreload: asleep", BFC_SLEEP_IDLE="0.05")
    yield from play_until("idle", "bfcpreload: idle", BFC_TRIM_IDLE="0.01")  # memory goes back in its own time
    yield from play_until("loop", "planned a loop", "a plan has replaced", BFC_PLAN="auto")
    yield from play_until("small", "is not planned", BFC_PLAN="auto")


class Log(unittest.TestCase):
    def test_messages(self):
        said = list(play_all())
        for level, message, wanted in MESSAGES:
            self.assertTrue(message in OF_SLEEP or any(wanted.fullmatch(line) for line in said), (level, message))
        for line in said:
            self.assertTrue(any(known.fullmatch(line) for _, _, known in MESSAGES), line)

    def test_levels(self):
        for level, shown in ("error", ()), ("warn", ()), ("info", ("info",)), ("debug", ("info", "debug")):
            said = play(SCENES, "ends", level=level)
            for kind, message, pattern_ in MESSAGES:
                if kind not in shown:
                    self.assertFalse([line for line in said if pattern_.fullmatch(line)], (level, message))
            self.assertEqual(bool(said), bool(shown))

    def test_repeated_ones_are_few(self):
        said = [line for line in play(SCENES, "refused", level="info") if "did not grow" in line]
        numbers = [int(number) for line in said for number in re.findall(r"number (\d+)", line)]
        self.assertEqual(len(said) - len(numbers), 8, said)
        self.assertEqual(numbers, [16 << i for i in range(len(numbers))])
        self.assertGreaterEqual(len(numbers), 3)

    def test_a_forked_child_is_silent(self):
        said = play(SCENES, "child")
        self.assertEqual(len([line for line in said if " was reserved" in line]), 1, said)

    def test_one_route_is_written_once(self):
        said = [line for line in play(SCENES, "lookups") if ": hook " in line]
        self.assertEqual(len(said), len(set(said)))


if __name__ == "__main__":
    unittest.main()
