#!/usr/bin/env python3
"""bfcrun and bfcopts: from a clone, from odd folders, installed; what they refuse and how."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

BFCRUN = os.environ["BFCRUN"]
BFCOPTS = os.environ["BFCOPTS"]
BUILD = os.environ["BUILD_ROOT"]
SHOW = ["sh", "-c", 'printf "%s|%s|%s" "$LD_PRELOAD" "$BFC_GROWTH_SIZE" "$BFC_LIMIT"']


def environment(**changes):
    env = {k: v for k, v in os.environ.items() if not k.startswith("BFC_") and k != "LD_PRELOAD"}
    env["BFC_BUILD"] = BUILD
    env.update(changes)
    return env


def run(*command, env=None, **more):
    return subprocess.run(
        command,
        env=environment() if env is None else env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=20,
        **more,
    )


def names():
    return run(BFCOPTS, "names").stdout.split()


class Bfcrun(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="bfcrun-"))
        self.library = os.path.join(self.folder, "libbfcpreload.so")
        self.make_library(self.library)

    def tearDown(self):
        shutil.rmtree(self.folder)

    def make_library(self, path):
        """An empty library: these tests are about the launcher."""
        subprocess.run(["cc", "-shared", "-x", "c", "-o", path, "/dev/null"], check=True)

    def bfcrun(self, *arguments, **changes):
        return run(BFCRUN, f"--library={self.library}", *arguments, env=environment(**changes))

    def shown(self, *arguments, **changes):
        result = self.bfcrun(*arguments, *SHOW, **changes)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout.split("|")

    def test_the_trace_goes_where_the_user_is(self):
        show = ["sh", "-c", 'cd / && printf "%s" "$BFC_RECORD"']
        here = os.getcwd()
        for given, becomes in ("run.bfctrace", here + "/run.bfctrace"), ("/a/b", "/a/b"), ("none", "none"):
            self.assertEqual(self.bfcrun(*show, BFC_RECORD=given).stdout, becomes)
            self.assertEqual(self.bfcrun("--record=" + given, *show).stdout, becomes)
        self.assertEqual(self.bfcrun(*show).stdout, "")

    def refusal(self, *arguments, **changes):
        result = self.bfcrun(*arguments, **changes)
        self.assertEqual((result.returncode, result.stdout), (125, ""))
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("bfcrun: "))
        return result.stderr

    def test_preloads_and_sets(self):
        self.assertEqual(
            self.shown("--growth-size=4M", "--limit=0.5", "--"), [self.library, "4M", "0.5"]
        )
        self.assertEqual(self.shown(), [self.library, "", ""])
        self.assertEqual(self.shown("--limit=1G", BFC_LIMIT="2G")[2], "1G")
        self.assertEqual(self.shown(BFC_LIMIT="2G")[2], "2G")

    def test_former_names(self):
        show = ["sh", "-c", 'printf "%s|%s" "$BFC_PENDING_BUDGET" "$BFC_DIRTY_BUDGET"']
        result = self.bfcrun("--dirty-budget=1M", *show, BFC_PENDING_BUDGET="2M")
        self.assertEqual((result.returncode, result.stdout), (0, "1M|"), result.stderr)
        self.assertIn("BFC_DIRTY_BUDGET", run(BFCOPTS, "markdown").stdout)

    def test_keeps_what_is_preloaded(self):
        other = os.path.join(self.folder, "libother.so")
        self.make_library(other)
        for separator in (" ", ":", " : "):
            value = self.shown(LD_PRELOAD=f"{other}{separator}{other}")[0]
            self.assertEqual(value, f"{self.library}:{other}:{other}")
        self.assertEqual(
            self.shown(LD_PRELOAD=f"{self.library}:{other}")[0], f"{self.library}:{other}"
        )

    def test_one_installation_of_several(self):
        """Slurm's task-prolog, or a job's environment, may name another one."""
        others = os.path.join(self.folder, "libother.so"), os.path.join(self.folder, "other", "libbfcpreload.so")
        os.mkdir(os.path.dirname(others[1]))
        for other in others:
            self.make_library(other)
        self.assertEqual(self.shown(LD_PRELOAD=":".join(others))[0], f"{self.library}:{others[0]}")

    def test_stays_behind_sanitizers(self):
        asan = os.path.join(self.folder, "libasan.so.8")
        other = os.path.join(self.folder, "libother.so")
        for library in (asan, other):
            self.make_library(library)
        value = self.shown(LD_PRELOAD=f"{asan} {other}")[0]
        self.assertEqual(value, f"{asan}:{self.library}:{other}")

    def test_becomes_the_program(self):
        self.assertEqual(self.bfcrun("sh", "-c", "exit 42").returncode, 42)
        self.assertEqual(self.bfcrun("sh", "-c", "kill -TERM $$").returncode, -signal.SIGTERM)
        with subprocess.Popen(
            [BFCRUN, f"--library={self.library}", "sh", "-c", "echo $$"],
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            self.assertEqual(int(process.stdout.readline()), process.pid)

    def test_program_cannot_be_run(self):
        missing = self.bfcrun("--", "no-such-program")
        self.assertEqual((missing.returncode, missing.stderr),
                         (127, "bfcrun: no-such-program: no such program\n"))
        script = os.path.join(self.folder, "my-script")
        with open(script, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n")
        for program, status, why in (self.folder, 126, "a folder, not a program"), (script, 126, "not executable"):
            refused = self.bfcrun("--", program)
            self.assertEqual((refused.returncode, refused.stderr), (status, f"bfcrun: {program}: {why}\n"))
        here = run(BFCRUN, f"--library={self.library}", "my-script", cwd=self.folder)
        self.assertEqual((here.returncode, here.stderr),
                         (127, "bfcrun: my-script: no such program on PATH; ./my-script is the file here\n"))

    def test_tells_of_static_programs_and_runs_them(self):
        program = os.path.join(self.folder, "program")
        for options, told in (["-static"], True), (["-static-pie"], True), ([], False):
            subprocess.run(["cc", *options, "-x", "c", "-o", program, "-"], input="int main(void) { return 7; }", text=True,
                           check=True)
            result = self.bfcrun(program)
            self.assertEqual((result.returncode, "is linked statically" in result.stderr, len(result.stderr.splitlines())),
                             (7, told, told), result)

    def test_arguments_arrive_as_they_are(self):
        odd = ["a b", "", "*", "--free=x", "$HOME", "-n"]
        result = self.bfcrun("--", "printf", "<%s>", *odd)
        self.assertEqual(result.stdout, "".join(f"<{a}>" for a in odd))

    def test_refuses_what_the_table_does_not_know(self):
        self.assertEqual(self.refusal("--fre=sync", "true"), "bfcrun: --fre: no such option; did you mean --free?\n")
        for unknown in "--zork=1", "-x":
            self.assertEqual(self.refusal(unknown, "true"),
                             f"bfcrun: {unknown.split('=')[0]}: no such option; bfcrun --help lists them\n")

    def test_refuses_malformed_values(self):
        line = self.refusal("--growth-size=4X", "true")
        self.assertIn("BFC_GROWTH_SIZE=4X is not accepted: expected a size from 4K", line)
        self.assertIn("sync", self.refusal("--free=nonsense", "true"))
        self.assertIn("needs a value", self.refusal("--free", "true"))

    def test_refuses_to_run_nothing(self):
        self.assertIn("no program", self.refusal())
        self.assertIn("no program", self.refusal("--"))

    def test_refuses_a_missing_library(self):
        self.library += ".none"
        self.assertIn("is missing", self.refusal("true"))

    def test_refuses_a_library_that_cannot_be_preloaded(self):
        spaced = os.path.join(self.folder, "with blank")
        os.mkdir(spaced)
        self.library = os.path.join(spaced, "libbfcpreload.so")
        self.make_library(self.library)
        self.assertIn("cannot be preloaded", self.refusal("true"))
        link = os.path.join(self.folder, "link.so")
        os.symlink(self.library, link)
        self.library = link  # around the blank
        self.assertEqual(self.shown()[0], link)

    def test_refuses_programs_of_musl(self):
        program = os.path.join(self.folder, "program")
        with open(program, "wb") as file:
            file.write(b"\x7fELF" + bytes(500) + b"/lib/ld-musl-x86_64.so.1\0" + bytes(8000))
        os.chmod(program, 0o755)
        said = run(BFCRUN, program)
        self.assertEqual((said.returncode, said.stderr.count("\n")), (125, 1), said)
        self.assertIn("is linked with musl", said.stderr)

    def test_programs_that_are_none(self):
        """A script may speak of musl's loader; and what is no file is not read."""
        script, fifo = (os.path.join(self.folder, name) for name in ("script", "fifo"))
        with open(script, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n[ -e /lib/ld-musl-x86_64.so.1 ] || exit 4\n")
        os.mkfifo(fifo)
        for program in (script, fifo):
            os.chmod(program, 0o755)
        self.assertIn(self.bfcrun(script).returncode, (0, 4))
        self.assertEqual(self.bfcrun(fifo).returncode, 126)
        os.chmod(script, 0o111)
        self.assertIn(self.bfcrun(script).returncode, (0, 2, 4, 126))

    @unittest.skipUnless(shutil.which("musl-gcc"), "musl-gcc is not installed")
    def test_refuses_a_real_program_of_musl(self):
        source, program = (os.path.join(self.folder, name) for name in ("program.c", "program"))
        with open(source, "w", encoding="utf-8") as file:
            file.write("int main(void) { return 0; }\n")
        self.assertEqual(run("musl-gcc", "-o", program, source).returncode, 0)
        self.assertIn("is linked with musl", run(BFCRUN, program).stderr)

    def test_works_from_a_folder_with_blanks(self):
        spaced = os.path.join(self.folder, "a clone")
        os.makedirs(os.path.join(spaced, "scripts"))
        os.makedirs(os.path.join(spaced, "build", "tools"))
        script = shutil.copy2(BFCRUN, os.path.join(spaced, "scripts", "bfcrun"))
        shutil.copy2(BFCOPTS, os.path.join(spaced, "build", "tools", "bfcopts"))
        env = environment()
        del env["BFC_BUILD"]
        result = run(script, f"--library={self.library}", "--limit=1G", "--", *SHOW, env=env)
        self.assertEqual(result.stdout, f"{self.library}||1G")
        self.assertIn("libbfcpreload.so is missing", run(script, "true", env=env).stderr)
        os.unlink(os.path.join(spaced, "build", "tools", "bfcopts"))
        result = run(script, "true", env=env)
        self.assertEqual(result.returncode, 125)
        self.assertIn("build first", result.stderr)

    def test_help_is_the_table(self):
        shown = self.bfcrun("--help").stdout
        self.assertIn(run(BFCOPTS, "help").stdout, shown)
        for name in names():
            self.assertIn("  --" + name[4:].lower().replace("_", "-") + "=VALUE\n", shown)

    def test_check(self):
        self.assertEqual(run(BFCOPTS, "check", "BFC_LIMIT=2G", "BFC_FREE=sync").returncode, 0)
        for bad in ("BFC_LIMIT=2X", "BFC_NONE=1", "BFC_LIMIT", "LIMIT=1G", "", "=", "BFC_LIMIT="):
            result = run(BFCOPTS, "check", "BFC_FREE=sync", bad)
            self.assertEqual(result.returncode, 1, bad)
            self.assertEqual(len(result.stderr.splitlines()), 1)
        self.assertEqual(run(BFCOPTS, "nonsense").returncode, 2)
        self.assertRegex(run(BFCOPTS, "--version").stdout, r"^bfcopts \d+\.\d+\.\d+\n$")
        self.assertIn("usage: bfcopts", run(BFCOPTS, "--help").stdout)

    def test_every_default_is_accepted(self):
        for line in run(BFCOPTS, "markdown").stdout.splitlines()[2:]:
            name, default = (cell.strip(" `") for cell in line.split("|")[1:3])
            self.assertEqual(run(BFCOPTS, "check", f"{name}={default}").returncode, 0, line)


class Sanitized(unittest.TestCase):
    """Programs with a sanitizer's runtime start and end as without us."""

    def check(self, sanitizer, preloaded=()):
        library = os.path.join(BUILD, "interpose", "libbfcpreload.so")
        if re.search(r"__[at]san_", run("nm", "-D", library).stdout):
            self.skipTest("the library itself is sanitized")
        with tempfile.TemporaryDirectory(prefix="bfcrun-") as folder:
            program = os.path.join(folder, "program")
            build = subprocess.run(
                ["gcc", f"-fsanitize={sanitizer}", "-x", "c", "-o", program, "-"],
                input="int main(void) { return 7; }", text=True, capture_output=True,
            )
            if build.returncode:
                self.skipTest(f"gcc has no {sanitizer} sanitizer")
            for env in [environment(), *preloaded]:
                # Newer kernels' address-space layouts are too wide for gcc 12's thread sanitizer.
                if run("setarch", "-R", program, env=env).returncode != 7:
                    self.skipTest(f"the {sanitizer} sanitizer does not run here")
                result = run("setarch", "-R", BFCRUN, "--", program, env=env)
                first = "does not come first" in result.stderr  # said without LD_PRELOAD
                self.assertTrue(result.returncode == 7 or first, result)

    def test_address(self):
        runtime = os.path.realpath(run("gcc", "-print-file-name=libasan.so").stdout.strip())
        self.check("address", [environment(LD_PRELOAD=runtime)])

    def test_thread(self):
        self.check("thread")


class Installed(unittest.TestCase):
    """`meson install` puts everything in place, and the place may be moved."""

    def test_install(self):
        with tempfile.TemporaryDirectory(prefix="bfc-install-") as folder:
            subprocess.run(
                ["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", folder],
                check=True,
                stdout=subprocess.DEVNULL,
            )
            (bfcrun,) = (
                os.path.join(place, "bfcrun") for place, _, files in os.walk(folder)
                if "bfcrun" in files and os.path.basename(place) == "bin"
            )
            env = environment()
            del env["BFC_BUILD"]
            result = run(bfcrun, "--limit=1G", "--", *SHOW, env=env)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            library, _, limit = result.stdout.split("|")
            self.assertTrue(os.path.realpath(library).startswith(os.path.realpath(folder)))
            self.assertEqual((os.path.basename(library), limit), ("libbfcpreload.so", "1G"))
            bfcstat = os.path.join(os.path.dirname(bfcrun), "bfcstat")
            self.assertEqual(run(bfcstat, "--version").returncode, 0)
            self.assertEqual(run(bfcrun, "--version", env=env).stdout.split()[0], "bfcrun")


if __name__ == "__main__":
    unittest.main(verbosity=1)
