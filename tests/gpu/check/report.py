"""The report of scripts/gpu-check, as a page to read."""


BUILT = ("built", "built before", "done")  # no results
WORDS = {"FAILED": "failed", "see surprises": "surprises", "skipped": "skipped"}
OVERVIEW = ("results", "failed", "surprises", "skipped")
UNITS = ("Where a figure has no unit in its name: memory, widths and pitches are in bytes, a code is one of the driver's "
         "(`CUresult` in cuda.h), a name that ends with `us_per_iter` is in microseconds, and all else is a count, a share, or 1 "
         "for yes and 0 for no.")


def one_line(text):
    """As Markdown, in a table too; a program's words are no mark-up, and no terminal's commands."""
    text = "".join(letter if letter.isprintable() or letter.isspace() else "?" for letter in str(text))
    return " ".join(text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "/").split())


def shown(value):
    if isinstance(value, dict):
        return ", ".join(f"{key} {shown(item)[:200]}" for key, item in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "unknown"
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return one_line("; ".join(value))
    return one_line(f"{value:,}" if isinstance(value, int) else value)


def of_machine(name, value):
    """A line; memory and versions as people write them."""
    if name in ("memory", "in use before"):
        return f"- {name}: {value / (1 << 20):,.0f} MiB"
    if name == "driver":
        return f"- {name}: of CUDA {value // 1000}.{value % 1000 // 10}"
    return f"- {name}: {shown(value)}"


def tally(entries):
    """How many results there are, and how many words in their place."""
    words = [WORDS.get(value, "results") if isinstance(value, str) else "results" for value in entries.values()
             if value not in BUILT]
    return {word: words.count(word) for word in OVERVIEW}


def state(results, part):
    if part in results["left"]:
        return "not finished"
    counts = tally(results["parts"].get(part, {}))
    return "ended" if counts["results"] or counts["failed"] or part == "build" else "**ended without a result**"


def overview(results):
    """A part that is not there was not run."""
    lines = ["", "## Parts", "", "| part | " + " | ".join(OVERVIEW) + " | s | runs | |", "|---|" + "---|" * (len(OVERVIEW) + 3)]
    for part in dict.fromkeys([*results["parts"], *results["ended"], *results["left"]]):
        counts = tally(results["parts"].get(part, {}))
        cells = [*(counts[word] for word in OVERVIEW), results["seconds"].get(part, ""), numbers(runs_of(results, part)),
                 state(results, part)]
        lines.append(f"| {part} | " + " | ".join(map(str, cells)) + " |")
    return lines


def runs_of(results, part):
    return [number for number, run in enumerate(results["runs"], 1) if part in run["parts"]]


def numbers(values):
    return ", ".join(map(str, values))


def runs(results):
    lines = ["", "## Runs", "", "| run | begun | bfcpreload | card | conformance cases |", "|---|---|---|---|---|"]
    return lines + [f"| {number} | {run['begun']} | {one_line(run['bfcpreload'])} | {run['card']} | {run['cases']} |"
                    for number, run in enumerate(results["runs"], 1)]


def mixed(results):
    """What the runs whose results are here did not have in common."""
    kept = [run for run in results["runs"] if run["parts"]]
    return [what for what, key in (("bfcpreload", "bfcpreload"), ("the card", "card"))
            if len({run[key] for run in kept}) > 1]


def table(entries):
    """Without the notes that are there only for --resume."""
    return ["| | |", "|---|---|"] + [f"| {one_line(name)} | {shown(value)} |"
                                     for name, value in entries.items() if value != "done"]


def decisions(results):
    lines = ["", "## What it decides", "", "| question | rule | figures | answer |", "|---|---|---|---|"]
    lines += ["| " + " | ".join(one_line(decision[key]) for key in ("question", "rule", "figures", "answer")) + " |"
              for decision in results["decisions"]]
    return lines + (["", "By figures of a simulated GPU, which decide nothing."] if results["machine"].get("dry run") else [])


def unknowns(results):
    """The questions of the safety document, with plain answers."""
    asked = {name: given for name, given in results["parts"].get("unknowns", {}).items() if isinstance(given, dict)}
    lines = ["", "## What was unknown", "", "| question | answer | expected | if the answer is |", "|---|---|---|---|"]
    return lines + [f"| {one_line(name)} | {given['answer']} | {given['expected']} | {one_line(given['decides'])} |"
                    for name, given in asked.items()] if asked else []


def figure(entry, key):
    value = entry.get(key)
    if value is None:
        return ""
    return f"{value / (1 << 20):,.0f}" if key == "peak" else f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def programs(results):
    """One row for each program and way of running it; ways that failed have their word."""
    entries = results["parts"].get("programs", {})
    lines = ["", "## Programs", "", "| program | how | s | peak, MiB | driver calls | host waits | result |",
             "|---|---|---|---|---|---|---|"]
    for name, entry in entries.items():
        program, _, how = name.partition(", ")
        if isinstance(entry, dict):
            cells = [figure(entry, key) for key in ("seconds", "peak", "driver_calls", "host_waits")]
            lines.append(f"| {program} | {how} | " + " | ".join(cells) + f" | {one_line(entry.get('result', ''))} |")
        elif how:
            lines.append(f"| {program} | {how} | | | | | {one_line(entry)} |")
    lines += ["", "Each way ran once. Driver calls and host waits of a native one are what the preloaded one saw the program "
              "call. The peak is above what was in use before."]
    return lines if entries else []


def unfinished(results):
    return f"Not finished: {', '.join(results['left'])}. `--resume` does the rest of them."


def markdown(results):
    lines = ["# bfcpreload on a GPU", ""]
    if results["machine"].get("dry run"):
        lines += ["**A dry run over the simulated GPU: no figure is a real device's.**", ""]
    if results["left"]:
        lines += ["**" + unfinished(results) + "**", ""]
    if different := mixed(results):
        lines += [f"**Not all runs had the same: {', '.join(different)}. See the runs.**", ""]
    if len(results["runs"]) > 1:
        lines += ["The machine, as the last run found it:", ""]
    lines += [of_machine(name, value) for name, value in results["machine"].items()]
    lines += runs(results) + overview(results)
    for name in "failures", "surprises", "skipped":
        lines += ["", f"## {name}", ""]
        lines += ["- " + one_line(line) for line in results[name]] or ["none"]
    lines += decisions(results) + programs(results) + unknowns(results)
    lines += ["", UNITS]
    for part, entries in results["parts"].items():
        if part == "unknowns":
            entries = {name: value for name, value in entries.items() if not isinstance(value, dict)}
        seconds = results["seconds"].get(part, "?")
        lines += ["", f"## {part} ({seconds} s)", "", *table(entries)]
    return "\n".join(lines) + "\n"
