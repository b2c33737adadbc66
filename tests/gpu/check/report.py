"""The report of scripts/gpu-check, as a page to read."""


def one_line(text):
    return " ".join(str(text).replace("|", "/").split())


def shown(value):
    if isinstance(value, dict):
        return ", ".join(f"{key} {shown(item)[:200]}" for key, item in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return one_line(f"{value:,}" if isinstance(value, int) else value)


def table(entries):
    return ["| | |", "|---|---|"] + [f"| {one_line(name)} | {shown(value)} |"
                                     for name, value in entries.items()]


def markdown(results):
    lines = ["# bfcpreload on a GPU", ""]
    if results["machine"].get("dry run"):
        lines += ["**A dry run over the simulated GPU: no figure is a real device's.**", ""]
    if not results.get("finished"):
        lines += ["**Not finished: these are the results up to when the run ended.**", ""]
    lines += [f"- {key}: {one_line(value)}" for key, value in results.get("machine", {}).items()]
    for name in "failures", "surprises", "skipped":
        lines += ["", f"## {name}", ""]
        lines += ["- " + one_line(line) for line in results.get(name, [])] or ["none"]
    for part, entries in results["parts"].items():
        seconds = results.get("seconds", {}).get(part, "?")
        lines += ["", f"## {part} ({seconds} s)", "", *table(entries)]
    return "\n".join(lines) + "\n"
