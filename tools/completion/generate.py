#!/usr/bin/env python3
"""Writes a shell's completion of a tool: generate.py TABLE SOURCES bash|zsh|fish TOOL OUTPUT.

The options come from where the tools themselves have them: the table of variables (bfcopts) and the
tables in the sources of the commands, below the folder SOURCES.
"""

import os
import re
import shlex
import sys

FILE, FOLDER, PID, ANY = "file", "folder", "pid", "any"
# What kind of value some options take, because their tables say only that they take a value.
VALUES = {"output": FILE, "offsets": FILE, "events": FILE, "plot": FILE, "directory": FOLDER,
          "library": FILE, "record": FILE, "by": ["library", "tag"]}


class Option:
    """An option --name. `values` is what it takes: None (no value), a list of words, or FILE, FOLDER, PID or ANY."""

    def __init__(self, name, values, meaning=""):
        self.name, self.values, self.meaning = name, values, meaning


class Tool:
    """A command line: options and operands of the tool, or of each of its commands."""

    def __init__(self, name, operands, options, commands=()):
        self.name, self.operands, self.options = name, operands, options
        self.commands = dict(commands)


def common():
    return [Option("help", None, "show the help"), Option("version", None, "show the version")]


def value_of(name):
    return VALUES.get(name, ANY)


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def needed(found, where):
    if not found:
        sys.exit(f"generate.py: no table of options found in {where}")
    return found


def words_of(accepted):
    """Returns the words that "one of a, b" or "0 or 1" lists; [] if other values are accepted."""
    if accepted == "0 or 1":
        return ["0", "1"]
    return accepted[len("one of "):].split(", ") if accepted.startswith("one of ") else []


def bfcrun(source):
    with open(source, encoding="utf-8") as file:
        table = file.read()
    options = []
    for line in needed(table.splitlines()[2:], "bfcopts markdown"):
        name, _, accepted, meaning = (cell.strip(" `") for cell in line.strip("|").split("|"))
        name = name[len("BFC_"):].lower().replace("_", "-")
        first = re.split(r"(?<=[a-z0-9])[.;:] ", meaning)[0].rstrip(".")
        options.append(Option(name, words_of(accepted) or value_of(name), first))
    options.append(Option("library", FILE, "the libbfcpreload.so to preload"))
    options.append(Option("show-config", None, "show the settings in force and where each came from"))
    return Tool("bfcrun", "program", options + common())


def bfcstat(sources):
    text = read(sources, "bfcstat", "bfcstat_main.c")
    rows = needed(re.findall(r'\{"([a-z-]+)", (no|required)_argument, NULL, \'(\w)\'', text), "bfcstat/bfcstat_main.c")
    commands = needed(re.findall(r'\{"(\w+)", \w+, (true|false), (?:true|false), "(\w+)", (?:true|false)\}', text), "bfcstat/bfcstat_main.c")
    plain = needed(re.findall(r'PLAIN_OPTIONS "(\w+)"', text), "bfcstat/bfcstat_main.c")[0]

    def those(letters):
        return [Option(name, None if kind == "no" else value_of(name)) for name, kind, letter in rows
                if letter in letters + "hv"]

    return Tool("bfcstat", PID, those(plain),
                {name: Tool(name, (FILE if name == "report" else PID) if target == "true" else None, those(letters))
                 for name, target, letters in commands})


def choices_in(text, name):
    """Returns the words a, b and c if the help text has "--name a|b|c"; else what value_of gives."""
    found = re.search(rf"--{name} ([a-z-]+(?:\|[a-z-]+)+)", text)
    return found.group(1).split("|") if found else value_of(name)


def bfcplan(sources):
    help_text = read(sources, "plan", "cli", "bfcplan_main.c")
    commands = {}
    for name in needed(re.findall(r'\{"(\w+)", command_\w+\}', help_text), "plan/cli/bfcplan_main.c"):
        table = read(sources, "plan", "cli", f"command_{name}.c")
        rows = needed(re.findall(r'\{"([a-z-]+)", (?:0|\'\w\'), OPTION_(\w+)', table), name)
        options = [Option(o, None if kind == "FLAG" else choices_in(help_text, o)) for o, kind in rows]
        commands[name] = Tool(name, FILE, options + common())
    return Tool("bfcplan", None, common(), commands)


def bfcreplay(sources):
    text = read(sources, "replay", "bfcreplay_main.c")
    valued = needed(re.findall(r'\{"--([a-z-]+)", \.', text), "replay/bfcreplay_main.c")
    flags = needed(re.findall(r'strcmp\(\w+(?:\[\w\])?, "--([a-z]+)"\)', text), "replay/bfcreplay_main.c")
    options = [Option(name, choices_in(text, name)) for name in valued]
    return Tool("bfcreplay", FILE, options + [Option(name, None) for name in dict.fromkeys(flags)])


# ---- bash ----

# The words after the name of the program that bfcrun starts belong to that program.
PROGRAM = """
    if [[ -n $command ]]; then
        compopt -o default
        return
    fi
    [[ $before == = || ${COMP_WORDS[COMP_CWORD]} == = ]] || option=''"""
# Only file names whose numbers are digits count: anybody may give a file in /dev/shm any name, and bash would expand
# what such a name contains, as compgen -W expands its words.
PIDS = r"""ls /dev/shm 2>/dev/null | sed -n 's/^bfcpreload\.[0-9]*\.[0-9]*\.\([0-9]*\)$/\1/p'"""


def bash_words(kind):
    """Returns a command of bash that prints the candidates for the word "$current"."""
    if isinstance(kind, list):
        return f"compgen -W {shlex.quote(' '.join(kind))} -- \"$current\""
    if kind == PID:
        return f'compgen -W "$({PIDS})" -- "$current"'
    return {FILE: 'compgen -f -- "$current"', FOLDER: 'compgen -d -- "$current"',
            "program": 'compgen -c -- "$current"'}.get(kind, ":")


def bash_case(tool):
    """Returns the code that completes a word of `tool`. It needs $current, the word so far, and $option, the option
    whose value that word is."""
    lines = ["case $option in"]
    flags = []
    for option in tool.options:
        flags.append(f"--{option.name}" + ("" if option.values is None else "="))
        if option.values is not None:
            short = " | -o" if option.name == "output" else ""
            lines.append(f"--{option.name}{short}) {bash_words(option.values)} && return ;;")
    lines += ["?*) return ;;", "esac",
              'if [[ $current == -* ]]; then', bash_words(flags), "else"]
    candidates = [bash_words(list(tool.commands))] if tool.commands else []
    return lines + candidates + [bash_words(tool.operands), "fi"]


def bash(tool):
    name = tool.name
    program = PROGRAM if tool.operands == "program" else ""
    text = [f"# bash completion for {name}; made from its tables of options", f"_{name}_candidates() {{"]
    if tool.commands:
        text.append("case $command in")
        for command in tool.commands.values():
            text += [f"{command.name})", *bash_case(command), "return ;;"]
        text.append("esac")
    text += [*bash_case(tool), "}", f"""
_{name}() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} option='' command='' i
    if [[ $current == = ]]; then
        option=$before current=''
    elif [[ $before == = ]]; then
        option=${{COMP_WORDS[COMP_CWORD - 2]}}
    elif [[ $before == -?* ]]; then
        option=$before
    fi
    for ((i = COMP_CWORD - 1; i > 0; i--)); do
        [[ ${{COMP_WORDS[i]}} == [-=]* || ${{COMP_WORDS[i - 1]}} == = ]] || command=${{COMP_WORDS[i]}}
    done{program}
    case $option in
    {'|'.join(flags_without_value(tool))}) option='' ;;
    esac
    [[ $current != -* ]] || compopt +o filenames # which would put a backslash before the = of an option
    mapfile -t COMPREPLY < <(_{name}_candidates)
    [[ ${{#COMPREPLY[@]}} != 1 || ${{COMPREPLY[0]}} != --*= ]] || compopt -o nospace
}}
complete -o filenames -o bashdefault -F _{name} {name}"""]
    return "\n".join(text) + "\n"


def flags_without_value(tool):
    tools = [tool, *tool.commands.values()]
    names = dict.fromkeys(o.name for t in tools for o in t.options if o.values is None)
    return [f"--{name}" for name in names] + ["-h"]


# ---- zsh ----

def zsh_quoted(text):
    return text.replace("'", "'\\''").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")


def zsh_values(kind):
    if isinstance(kind, list):
        return f"({' '.join(kind)})"
    return {FILE: "_files", FOLDER: "_files -/", PID: f"{{compadd -- $({zsh_quoted(PIDS)})}}"}.get(kind, " ")


def zsh_options(tool):
    for option in tool.options:
        value = "" if option.values is None else f":value:{zsh_values(option.values)}"
        assign = "" if option.values is None else "="
        meaning = f"[{zsh_quoted(option.meaning)}]" if option.meaning else ""
        yield f"'--{option.name}{assign}{meaning}{value}'"


def zsh_arguments(tool):
    operands = {None: [], "program": ["'(-)1:program:_command_names -e'", "'*::arguments:_normal'"]}
    rest = operands.get(tool.operands, [f"'*:operand:{zsh_values(tool.operands)}'"])
    return " \\\n    ".join(["_arguments", *zsh_options(tool), *rest])


def zsh(tool):
    text = [f"#compdef {tool.name}", "# made from its tables of options"]
    if tool.commands:
        text += ["if (( CURRENT == 2 )) && [[ ${words[2]} != -* ]]; then",
                 f"    compadd -- {' '.join(tool.commands)}", "fi", "case ${words[2]} in"]
        for command in tool.commands.values():
            text += [f"{command.name})", "shift words", "(( CURRENT-- ))", zsh_arguments(command), ";;"]
        text += ["*)", zsh_arguments(tool), ";;", "esac"]
    else:
        text.append(zsh_arguments(tool))
    return "\n".join(text) + "\n"


# ---- fish ----

def fish_quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_option(name, option, condition):
    words = ["complete", "-c", name, *condition, "-l", option.name]
    if option.values is not None:
        words.append("-r" if option.values in (FILE, FOLDER) else "-x")
    if isinstance(option.values, list):
        words += ["-a", fish_quoted(" ".join(option.values))]
    if option.name == "output":
        words += ["-s", "o"]
    return " ".join(words + (["-d", fish_quoted(option.meaning)] if option.meaning else []))


def fish(tool):
    text = [f"# fish completion for {tool.name}; made from its tables of options"]
    everywhere = {option.name for option in tool.options}
    none = ["-n", fish_quoted("not __fish_seen_subcommand_from " + " ".join(tool.commands))] if tool.commands else []
    text += [fish_option(tool.name, option, []) for option in tool.options]
    if tool.operands == PID:
        text.append(f"complete -c {tool.name} -f {' '.join(none)} -a {fish_quoted('(' + PIDS + ')')}")
    if tool.operands == "program":
        text.append(f"complete -c {tool.name} -x -a '(__fish_complete_subcommand)'")
    for command in tool.commands.values():
        text.append(f"complete -c {tool.name} -f {' '.join(none)} -a {command.name}")
        inside = ["-n", fish_quoted("__fish_seen_subcommand_from " + command.name)]
        text += [fish_option(tool.name, option, inside) for option in command.options
                 if option.name not in everywhere]
        if command.operands == FILE:
            text.append(f"complete -c {tool.name} -F {' '.join(inside)}")
    return "\n".join(text) + "\n"


def main():
    table, sources, shell, name, output = sys.argv[1:]
    tools = {"bfcrun": lambda: bfcrun(table), "bfcstat": lambda: bfcstat(sources),
             "bfcplan": lambda: bfcplan(sources), "bfcreplay": lambda: bfcreplay(sources)}
    with open(output, "w", encoding="utf-8") as file:
        file.write({"bash": bash, "zsh": zsh, "fish": fish}[shell](tools[name]()))


if __name__ == "__main__":
    main()
