#!/usr/bin/env python3
"""What every tool answers to --help and --version, and the shells' completions of them."""

import os
import pty
import re
import shutil
import subprocess
import tempfile
import unittest

BUILD = os.environ["BUILD_ROOT"]
VERSION = os.environ["VERSION"]
COMPLETIONS = os.path.join(BUILD, "tools", "completion")
TOOLS = {"bfcrun": os.environ["BFCRUN"], "bfcstat": os.environ["BFCSTAT"], "bfcopts": os.environ["BFCOPTS"]}
for tool in ("plan", "replay"):
    program = os.path.join(BUILD, "tools", tool, "bfc" + tool)
    if os.path.exists(program):
        TOOLS["bfc" + tool] = program

# Prints what bash would offer for the words: each argument is one, the last is completed.
ASK = """source "$0" || exit 1
compopt() { :; }
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_"$1" && printf '%s\\n' "${COMPREPLY[@]}"
"""


def run(*command, **more):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BFC_")} | {"BFC_BUILD": BUILD}
    return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60, **more)


def completion(name):
    return os.path.join(COMPLETIONS, name)


class Answers(unittest.TestCase):
    def test_version_is_one(self):
        for name, tool in TOOLS.items():
            shown = run(tool, "--version")
            self.assertEqual(shown.returncode, 0, name)
            self.assertEqual(shown.stdout.split()[:2], [name, VERSION], shown)

    def test_help(self):
        for name, tool in TOOLS.items():
            shown = run(tool, "--help")
            self.assertEqual((shown.returncode, shown.stderr), (0, ""), name)
            self.assertTrue(shown.stdout.startswith("usage: " + name), shown.stdout)

    def test_commands_answer_too(self):
        for tool, commands in ("bfcstat", ("top", "trim", "record", "report")), \
                              ("bfcplan", ("solve", "check", "lifetimes", "plot", "period")):
            for command in commands if tool in TOOLS else ():
                self.assertIn("usage: " + tool, run(TOOLS[tool], command, "--help").stdout)
                self.assertIn(VERSION, run(TOOLS[tool], command, "--version").stdout)

    def test_the_help_of_bfcrun_fits_a_terminal(self):
        self.assertLessEqual(max(map(len, run(TOOLS["bfcrun"], "--help").stdout.splitlines())), 80)


@unittest.skipUnless(os.path.exists(completion("bfcrun")), "completions are not built (a cross build)")
class Completions(unittest.TestCase):
    def bash(self, *words):
        asked = run("bash", "-c", ASK, completion(words[0]), *words)
        self.assertEqual((asked.returncode, asked.stderr), (0, ""), words)
        return asked.stdout.split()

    def test_shells_can_read_them(self):
        for name in set(TOOLS) - {"bfcopts"}:
            for shell, file in ("bash", name), ("zsh", "_" + name), ("fish", name + ".fish"):
                if shutil.which(shell):
                    read = run(shell, "-n", completion(file))
                    self.assertEqual((read.returncode, read.stderr), (0, ""), file)

    def test_options_of_bfcrun(self):
        for name in run(TOOLS["bfcopts"], "flags").stdout.split():
            self.assertEqual(self.bash("bfcrun", name)[0], name + "=")
        self.assertEqual(self.bash("bfcrun", "--free", "="), ["sync", "lazy", "ordered"])
        self.assertEqual(self.bash("bfcrun", "--free", "=", "l"), ["lazy"])
        self.assertEqual(self.bash("bfcrun", "--limit", "=", "1"), [])
        self.assertIn("env", self.bash("bfcrun", "--free", "=", "lazy", "env"))
        self.assertEqual(self.bash("bfcrun", "env", "--fr"), [])

    def test_an_interactive_bash(self):
        """What a user types, with tabs, and what the program gets then."""
        typed = {"bfcrun --fr\tl\t -- x": "<--free=lazy><--><x>", "bfcrun --lim\t1G": "<--limit=1G>", "bfcstat --js\t7": "<--json><7>",
                 "bfcstat repo\t-o x": "<report><-o><x>", "bfcrun --record=a\t x": "<--record=a (b)><x>"}
        setup = "PS1= PS2=; " + "".join(f"source {completion(tool)}; {tool}() {{ printf '<%s>' \"$@\"; echo; }}; "
                                       for tool in ("bfcrun", "bfcstat"))
        with tempfile.TemporaryDirectory(prefix="bfc-completion-") as folder:
            open(os.path.join(folder, "a (b)"), "w", encoding="utf-8").close()
            shell, terminal = pty.fork()
            if shell == 0:
                os.chdir(folder)
                os.environ.update(TERM="dumb", INPUTRC="/dev/null")
                os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
            os.write(terminal, "\n".join([setup, *typed, "exit", ""]).encode())
            shown = b""
            try:
                while more := os.read(terminal, 4096):
                    shown += more
            except OSError:  # how a terminal ends whose programs have ended
                pass
            os.close(terminal)
            os.waitpid(shell, 0)
        for line in typed.values():
            self.assertIn(f"\n{line}\r", shown.decode())

    def test_every_option_in_a_help_is_offered(self):
        commands = {"bfcstat": ("top", "trim", "who", "plan", "record", "snapshot", "report", "serve")}
        for name in set(TOOLS) - {"bfcopts", "bfcplan"}:
            offered = {option.rstrip("=") for before in ((), *((command,) for command in commands.get(name, ())))
                       for option in self.bash(name, *before, "--")}
            for option in re.findall(r"^  (--[a-z-]+)", run(TOOLS[name], "--help").stdout, re.M):
                self.assertIn(option, offered, name)

    def test_commands(self):
        self.assertEqual(self.bash("bfcstat", "re"), ["record", "report"])
        self.assertIn("--bytes=", self.bash("bfcstat", "trim", "--"))
        self.assertNotIn("--bytes=", self.bash("bfcstat", "--"))
        self.assertNotIn("--json", self.bash("bfcstat", "trim", "--"))
        if "bfcplan" in TOOLS:
            self.assertEqual(self.bash("bfcplan", "s"), ["solve"])
            self.assertEqual(self.bash("bfcplan", "lifetimes", "--order", "d"), ["dfs"])
            self.assertIn("--capacity=", self.bash("bfcplan", "solve", "--"))
            self.assertNotIn("--capacity=", self.bash("bfcplan", "check", "--"))

    def test_names_of_segments_are_not_run(self):
        """Anybody may leave such a file, and root may press tab. (The 0 keeps the honest one from being a segment.)"""
        with tempfile.TemporaryDirectory(prefix="bfc-completion-") as folder:
            for name in ("bfcpreload.0.1.$(touch${IFS}run)", "bfcpreload.0.1.`touch${IFS}run`", "bfcpreload.0.1.077777777"):
                path = os.path.join("/dev/shm", name)
                open(path, "wb").close()
                self.addCleanup(os.unlink, path)
            self.assertEqual(run("bash", "-c", ASK, completion("bfcstat"), "bfcstat", "07777777", cwd=folder).stdout,
                             "077777777\n")
            if shutil.which("fish"):
                fish = run("fish", "--no-config", "-c", f"source {completion('bfcstat.fish')}; complete -C 'bfcstat '",
                           cwd=folder)
                self.assertIn("077777777", fish.stdout)
            self.assertEqual(os.listdir(folder), [])

    @unittest.skipUnless(shutil.which("fish"), "no fish here")
    def test_fish(self):
        asked = run("fish", "--no-config", "-c", f"source {completion('bfcrun.fish')}; complete -C 'bfcrun --free='")
        self.assertEqual([line.split()[0] for line in asked.stdout.splitlines()],
                         ["--free=lazy", "--free=ordered", "--free=sync"], asked)


if __name__ == "__main__":
    unittest.main(verbosity=1)
