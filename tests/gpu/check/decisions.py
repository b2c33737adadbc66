"""What the measured figures decide, each by a rule that is stated. Nothing is decided without figures."""

import math
import re

MODES = ("sync", "lazy", "ordered")
NOTHING = "not measured yet"
NOT_ASKED = "cannot be asked here"
FASTER = 1.03  # less is noise
MEMORY = 1.10  # what a faster mode may take, as a multiple
PAIR = "cudaMalloc + cudaFree, 64 KiB, "
VMM = ("cuMemCreate", "cuMemMap", "cuMemSetAccess")
WAITED = "times of 3 that it waited for that"
MOST_FOR_A_GIB = 160e6  # ns: ten times what docs/internals/pages.md supposes


def decide(results):
    """`results`: all that a run has found."""
    found = Found(results)
    return [dict(zip(("question", "rule", "figures", "answer"), decision(found)))
            for decision in (mode_of_free, sync_against_native, runtimes_short_way, backing)]


class Found:
    def __init__(self, results):
        self.parts = results["parts"]
        self.failures = results["failures"]
        self.ended = results["ended"]

    def figure(self, part, name, key=None):
        """None where there is none, or a word such as FAILED in its place."""
        entry = self.parts.get(part, {}).get(name)
        if key is not None:
            return entry.get(key) if isinstance(entry, dict) else None
        return None if isinstance(entry, str) else entry

    def answer(self, question):
        return self.figure("unknowns", question, "answer")

    def answers(self):
        """How many unknowns have been answered, and how many could not be asked."""
        given = [entry["answer"] for entry in self.parts.get("unknowns", {}).values() if isinstance(entry, dict)]
        return len(given) - given.count(NOT_ASKED), given.count(NOT_ASKED)

    def unsafe(self, word):
        """Questions answered otherwise than `word`, the mode, needs."""
        return [name for name, given in self.parts.get("unknowns", {}).items()
                if isinstance(given, dict) and given["decides"].startswith("no: ") and word in given["decides"]
                and "unsafe" in given["decides"] and given["answer"] == "no"]

    def failures_in(self, mode):
        """By the name of what failed, or by the line that says how it went in each mode."""
        return [line for line in self.failures
                if mode in line.partition(": ")[2].partition(": ")[0] or re.search(rf"^{mode}: (?!ok)", line, re.MULTILINE)]

    def ratios(self, key, how, to):
        """For each program: a figure of one way of running it, of that of another. Of idle jobs, whose time is that of
        giving memory back, none."""
        ratios = {}
        for entry in self.parts.get("programs", {}):
            program, _, way = entry.partition(", ")
            pair = self.figure("programs", entry, key), self.figure("programs", f"{program}, {to}", key)
            if way == how and program != "idle_jobs" and all(isinstance(x, (int, float)) and x > 0 for x in pair):
                ratios[program] = pair[0] / pair[1]
        return ratios


def mean(ratios):
    return math.exp(sum(math.log(r) for r in ratios.values()) / len(ratios)) if ratios else None


def shown(ratios):
    return ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items()) or "none"


def mode_of_free(found):
    rule = (f"sync, unless in another mode the programs take less than 1/{FASTER} of sync's time (geometric mean), "
            f"with at most {MEMORY} of its peak memory, without a failure, and no unknown makes the mode unsafe; "
            "of two such modes the faster")
    figures, best, least = [], "sync", 1 / FASTER
    for mode in MODES[1:]:
        time, memory, line = against_sync(found, mode)
        if time is None:
            continue
        figures.append(line)
        if time < least and (memory or MEMORY + 1) <= MEMORY and not found.failures_in(mode) and not found.unsafe(mode):
            best, least = mode, time
    answer = best if figures else NOTHING
    if best != "sync" and not ("unknowns" in found.ended and found.answers()[0]):
        answer = "nothing before part `unknowns` has ended"
    return "the default mode of free", rule, "; ".join(figures) or "none", answer


def against_sync(found, mode):
    """The means of time and memory, or None where they are not of the same programs; and the figures in words."""
    times, memories = (found.ratios(key, "preloaded, " + mode, "preloaded, sync") for key in ("seconds", "peak"))
    time, memory = mean(times), mean(memories) if set(memories) == set(times) else None
    answered, not_asked = found.answers()
    return time, memory, time and (
        f"{mode}: time {time:.3f} of sync's in {', '.join(times)}; memory {f'{memory:.3f}' if memory else 'unknown'}; "
        f"{len(found.failures_in(mode))} failures; unsafe by {len(found.unsafe(mode))} of {answered} answers to what was "
        f"unknown, and {not_asked} could not be asked")


def sync_against_native(found):
    rule = (f"sync loses where its time is above {FASTER} of the native one; and if cudaFree does not wait for a "
            "kernel, sync must not wait either")
    ratios = found.ratios("seconds", "preloaded, sync", "native")
    native, sync = found.figure("measure", PAIR + "native"), found.figure("measure", PAIR + "sync")
    figures = "programs: " + shown(ratios)
    losses = [name for name, ratio in ratios.items() if ratio > FASTER]
    if native and sync:
        for key in "runtime_ns", "malloc_beside_ns", "free_beside_ns":
            figures += f"; {key} {sync[key]:,.0f} instead of {native[key]:,.0f}"
            losses += [key] if sync[key] > FASTER * native[key] else []
    waits = found.answer("cuMemFree of 2 MiB that nothing used waits for the context's streams")
    figures += f"; a free waits: {waits or NOTHING}"
    if not waits and not ratios and not sync:
        return "where sync loses against native", rule, figures, NOTHING
    answer = "sync loses at: " + ", ".join(losses) if losses else "nowhere among what was measured"
    return ("where sync loses against native", rule, figures,
            answer + ("; cudaFree does not wait, so sync must not" if waits == "no" else ""))


def runtimes_short_way(found):
    rule = "BFC_RUNTIME=auto stays if in each mode a pair takes at least 1.05 times as long without the short way"
    ratios = {mode: slow["runtime_ns"] / fast["runtime_ns"] for mode in MODES
              if (fast := found.figure("measure", PAIR + mode))
              and (slow := found.figure("measure", f"{PAIR}{mode}, BFC_RUNTIME=off"))}
    if len(ratios) < len(MODES):
        return "the runtime's short way", rule, shown(ratios), NOTHING
    return ("the runtime's short way", rule, shown(ratios),
            "it stays" if min(ratios.values()) >= 1.05 else "it does not pay: BFC_RUNTIME=off by default")


def backing(found):
    rule = (f"auto if part `pages` has no failure, no call of virtual memory management waits for a kernel that does "
            f"not use the page, a GiB of pages of 2 MiB costs at most {MOST_FOR_A_GIB / 1e6:.0f} ms, and with auto in sync "
            f"no program fails, or takes more than {FASTER} of its time or memory with malloc; else malloc")
    costs = [found.figure("measure", f"{call}, ns, 2 MiB") for call in VMM]
    calls = {name: value for name, value in found.parts.get("measure", {}).items() if WAITED in name}
    ratios, memory = (found.ratios(key, "preloaded, sync, auto", "preloaded, sync") for key in ("seconds", "peak"))
    ran = {"measure", "pages"} <= set(found.ended) and any(value == "ok" for value in found.parts.get("pages", {}).values())
    if None in costs or not calls or not ran or not ratios:
        return "the default backing", rule, "not all are there", NOTHING
    gib = sum(costs) * 512
    waiting = sorted({name.split(" ")[0] for name, value in calls.items() if value})
    failures = [line for line in found.failures if line.startswith("pages: ") or "sync, auto" in line]
    against = [text for text, holds in (
        (f"{len(failures)} failures", failures), ("waiting calls: " + ", ".join(waiting), waiting),
        ("what a GiB costs", gib > MOST_FOR_A_GIB), ("slower programs", max(ratios.values()) > FASTER),
        ("larger programs", set(memory) != set(ratios) or max(memory.values()) > FASTER)) if holds]
    return ("the default backing", rule,
            f"a GiB: {gib / 1e6:.1f} ms; programs: time {shown(ratios)}; memory {shown(memory)}",
            "malloc, because of " + "; ".join(against) if against else "auto")
