"""The report of scripts/gpu-check, as a page to read."""


def one_line(text):
    return " ".join(str(text).replace("|", "/").split())


def shown(value):
    if isinstance(value, dict):
        return ", ".join(f"{key} {shown(item)[:200]}" for key, item in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return one_line("; ".join(value))
    return one_line(f"{value:,}" if isinstance(value, int) else value)


def table(entries):
    """Without the notes that are there only for --resume."""
    return ["| | |", "|---|---|"] + [f"| {one_line(name)} | {shown(value)} |"
                                     for name, value in entries.items() if value != "done"]


def decisions(results):
    lines = ["", "## What it decides", "", "| question | rule | figures | answer |", "|---|---|---|---|"]
    return lines + ["| " + " | ".join(one_line(decision[key]) for key in ("question", "rule", "figures", "answer")) + " |"
                    for decision in results["decisions"]]


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
    return f"{value / (1 << 20):,.0f}" if key == "peak" else f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def programs(results):
    """One row for each program and way of running it; ways that failed have their word."""
    entries = results["parts"].get("programs", {})
    lines = ["", "## Programs", "", "| program | how | s | peak, MiB | driver calls | host waits | result |",
             "|---|---|---|---|---|---|---|"]
    for name, entry in entries.items():
        program, _, how = name.partition(", ")
        if isinstance(entry, dict):
            cells = [figure(entry, key) for key in ("seconds", "peak", "driver_calls", "host_waits")]
            lines.append(f"| {program} | {how} | " + " | ".join(cells) + f" | {entry.get('result', '')} |")
        elif how:
            lines.append(f"| {program} | {how} | | | | | {one_line(entry)} |")
    return lines if entries else []


def unfinished(results):
    return f"Not finished: {', '.join(results['left'])}. `--resume` does the rest of them."


def markdown(results):
    lines = ["# bfcpreload on a GPU", ""]
    if results["machine"].get("dry run"):
        lines += ["**A dry run over the simulated GPU: no figure is a real device's.**", ""]
    if results["left"]:
        lines += ["**" + unfinished(results) + "**", ""]
    lines += [f"- {key}: {one_line(value)}" for key, value in results.get("machine", {}).items()]
    for name in "failures", "surprises", "skipped":
        lines += ["", f"## {name}", ""]
        lines += ["- " + one_line(line) for line in results.get(name, [])] or ["none"]
    lines += decisions(results) + programs(results) + unknowns(results)
    for part, entries in results["parts"].items():
        if part == "unknowns":
            entries = {name: value for name, value in entries.items() if not isinstance(value, dict)}
        seconds = results.get("seconds", {}).get(part, "?")
        lines += ["", f"## {part} ({seconds} s)", "", *table(entries)]
    return "\n".join(lines) + "\n"
