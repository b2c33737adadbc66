#!/usr/bin/env python3
"""bfcstat who beside programs that allocate at known places.

usage: test_who.py LIBRARY BFCSTAT HOLDER STRIPPED PLUGIN CALLER FRAMES [lines]

lines: bfcstat finds lines of source files.
"""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

LIBRARY, BFCSTAT, HOLDER, STRIPPED, PLUGIN, CALLER, FRAMES = sys.argv[1:8]
LINES = "lines" in sys.argv[8:]
HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20


class Job:
    """A preloaded program that holds its memory until it is told to end."""

    def __init__(self, *command, stacks="all", **variables):
        env = dict(os.environ, LD_PRELOAD=LIBRARY, SIM_MEMORY="4G", PLUGIN=PLUGIN,
                   BFC_STACKS=stacks, **variables)
        self.process = subprocess.Popen(command, env=env, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        if line != "ready\n":
            raise AssertionError(f"{command}: {line!r}")
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.end()

    def end(self):
        self.process.communicate()
        if self.process.returncode:
            raise AssertionError(f"exit status {self.process.returncode}")

    def who(self, *options):
        run = subprocess.run([BFCSTAT, "who", *options, str(self.pid)], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if run.returncode:
            raise AssertionError(run.stderr)
        return run.stdout

    def sites(self):
        return json.loads(self.who("--json"))["sites"]


def bfcstat(*arguments):
    return subprocess.run([BFCSTAT, *arguments], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


def functions(site):
    return [frame["function"] for frame in site["frames"] if not frame.get("inlined")]


def lines_of(source):
    """The numbers of the lines that a comment gives a name."""
    with open(os.path.join(HERE, source), encoding="utf-8") as file:
        return {name[1]: number for number, line in enumerate(file, 1) if (name := re.search(r"[#/]+ line: (\w+)", line))}


def held(sites, function):
    """MiB in use by the sites whose innermost frame is that function's."""
    return sum(s["bytes"] for s in sites if functions(s)[:1] == [function]) / MIB


class Native(unittest.TestCase):
    def look(self, scene, function):
        with Job(HOLDER, scene) as job:
            sites = job.sites()
        found = [s for s in sites if functions(s)[:1] == [function]]
        self.assertTrue(found, sites)
        return found

    def test_exact(self):
        with Job(HOLDER, "plain") as job:
            answer = json.loads(job.who("--json"))
        self.assertEqual(held(answer["sites"], "site_large"), 256)
        self.assertEqual(held(answer["sites"], "site_small"), 64)
        self.assertEqual(answer["all"]["bytes"], 320 * MIB)
        self.assertEqual(answer["all"]["blocks"], 1028)
        self.assertEqual(answer["all"]["bytes_error"], 0)
        large = [s for s in answer["sites"] if functions(s)[0] == "site_large"][0]
        self.assertEqual(functions(large)[:3], ["site_large", "plain", "main"])
        self.assertEqual(os.path.realpath(large["library"]), os.path.realpath(HOLDER))
        short = [s for s in answer["sites"] if functions(s)[0] == "site_short"][0]
        self.assertEqual((short["bytes"], short["allocated_blocks"]), (0, 100000))
        self.assertEqual(short["allocated_bytes"], 25000 * MIB)

    def test_estimated(self):
        with Job(HOLDER, "plain", stacks="sample") as job:
            answer = json.loads(job.who("--json"))
        # Blocks far above the distance of samples are all seen.
        self.assertAlmostEqual(held(answer["sites"], "site_large"), 256, places=3)
        # The others with the error that is told: six times it is out of the question.
        small = [s for s in answer["sites"] if functions(s)[0] == "site_small"][0]
        self.assertLess(abs(small["bytes"] - 64 * MIB), 6 * small["bytes_error"])
        self.assertGreater(small["bytes_error"], 0)
        self.assertLess(small["samples"], 1024)

    def test_estimated_in_a_burst(self):
        """However fast a program's first blocks come, all that are not small are seen."""
        with Job(HOLDER, "burst", stacks="sample") as job:
            everything = json.loads(job.who("--json"))["all"]
        self.assertEqual((everything["bytes"], everything["bytes_error"]), (525760 << 10, 0))
        self.assertEqual(everything["blocks"], 248)

    def test_what_samples_miss_is_said(self):
        """Behind a loop of blocks of the same size."""
        with Job(HOLDER, "burst_behind_a_loop", stacks="sample") as job:
            answer, text = json.loads(job.who("--json")), job.who()
        self.assertEqual(answer["in_use"], 64 * MIB)
        self.assertIn("64.0 MiB in use", text)
        self.assertEqual("the figures below come to " in text,
                         abs(answer["all"]["bytes"] - 64 * MIB) > max(MIB, 2 * answer["all"]["bytes_error"]))
        self.assertNotIn("standard error 0 B", text)
        self.assertEqual("not attributed: blocks without a sample" in text, 64 * MIB - answer["all"]["bytes"] > 0.64 * MIB)

    def test_spilled(self):
        with Job(HOLDER, "plain", BFC_LIMIT="128M", BFC_SPILL="1G") as job:
            answer = json.loads(job.who("--json"))
        held_bytes = sum(site["bytes"] for site in answer["sites"])
        self.assertEqual(answer["in_use"], held_bytes)

    def test_out_of_memory_tells_who_holds_it(self):
        env = dict(os.environ, LD_PRELOAD=LIBRARY, SIM_MEMORY="300M", PLUGIN=PLUGIN)
        for stacks in "all", "sample", "off":
            done = subprocess.run([HOLDER, "plain"], env=dict(env, BFC_STACKS=stacks), text=True,
                                  stdin=subprocess.DEVNULL, capture_output=True, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stderr.count("out of memory"), 1, done.stderr)
            told = rf"\n  held by +{re.escape(os.path.basename(HOLDER))} 300 MiB \((estimates; )?bfcstat who has the call stacks\)\n"
            self.assertEqual(bool(re.search(told, done.stderr)), stacks != "off", done.stderr)

    def test_depth(self):
        site = self.look("deep", "site_deep")[0]
        self.assertGreaterEqual(len(site["frames"]), 32)
        self.assertEqual(set(functions(site)), {"site_deep"})

    def test_threads(self):
        sites = self.look("threads", "site_thread")
        self.assertEqual(sum(s["blocks"] for s in sites), 8)
        self.assertEqual(functions(sites[0])[:2], ["site_thread", "run_thread"])

    @unittest.skipUnless(os.uname().machine == "x86_64", "unwind tables are read on x86-64 alone")
    def test_alternate_stack(self):
        names = functions(self.look("alternate", "site_handler")[0])
        self.assertLess(names.index("alternate"), names.index("main"))

    def test_coroutines(self):
        sites = self.look("coroutine", "site_coroutine")
        self.assertEqual(sum(s["blocks"] for s in sites), 3)

    def test_fork(self):
        with Job(HOLDER, "forked") as job:
            sites = job.sites()
        self.assertEqual((held(sites, "site_large"), held(sites, "site_small")), (256, 64))

    def test_unloaded_library(self):
        site = self.look("unloaded", "site_plugin")[0]
        self.assertEqual(os.path.basename(site["library"]), os.path.basename(PLUGIN))

    def test_generated_code(self):
        self.look("generated", "site_coroutine")

    def test_signals(self):
        with Job(HOLDER, "signals") as job:
            self.assertEqual(held(job.sites(), "site_large"), 256)

    def test_stripped(self):
        with Job(STRIPPED, "plain") as job:
            answer = json.loads(job.who("--json"))
        self.assertEqual(answer["all"]["bytes"], 320 * MIB)
        site = answer["sites"][0]
        self.assertIsNone(site["frames"][0]["function"])
        self.assertEqual(os.path.basename(site["frames"][0]["file"]), os.path.basename(STRIPPED))
        self.assertGreater(len(site["frames"]), 3)


class Runtime(unittest.TestCase):
    """Of calls of a shared runtime some are answered before it is entered, and some by it."""

    def test_one_site(self):
        with Job(CALLER) as job:
            sites = job.sites()
        self.assertEqual([(functions(s)[0], s["blocks"]) for s in sites], [("site_runtime", 8)])

    def test_one_place_grows(self):
        with tempfile.TemporaryDirectory() as folder, Job(CALLER) as job:
            first = os.path.join(folder, "first")
            job.who("-o", first)
            job.process.stdin.write("\n")
            job.process.stdin.flush()
            self.assertEqual(job.process.stdout.readline(), "more\n")
            text = job.who("--diff", first)
        self.assertEqual(text.count("+8.00 MiB  0 B  +1 "), 2, text)
        place = r" \(caller.c:\d+\)" if LINES else r"\+0x[0-9a-f]+ \(who-caller\)"
        self.assertRegex(text, rf"\n(grows [0-9.]+ [KMG]iB/s at site_runtime{place}, called by main{place}\n){{1}}\n")


class Lines(unittest.TestCase):
    """Of source files, by debug information."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def copy(self, *options):
        """The program, without some of its sections."""
        path = os.path.join(self.folder, "frames")
        subprocess.run(["objcopy", *options, FRAMES, path], check=True)
        return path

    def look(self, program):
        with Job(program) as job:
            self.text = job.who()
            return {site["bytes"] // MIB: site["frames"] for site in job.sites()}

    def check(self, program):
        inlined, outer = self.look(program)[32][:2]
        self.assertEqual([(os.path.basename(frame["source"]), frame["function"], frame["line"], frame["inlined"])
                          for frame in (inlined, outer)],
                         [("frames.c", "fetch", lines_of("frames.c")["fetch"], True),
                          ("frames.c", "site_outer", lines_of("frames.c")["outer"], False)])
        self.assertEqual(os.path.basename(outer["file"]), os.path.basename(program))

    @unittest.skipUnless(LINES, "built without libdw, or without debug information")
    def test_of_functions_and_what_is_inlined_in_them(self):
        self.check(FRAMES)

    @unittest.skipUnless(LINES, "built without libdw, or without debug information")
    def test_without_a_table_of_compilation_units(self):
        self.check(self.copy("--remove-section=.debug_aranges"))

    def test_without_debug_information(self):
        frame = self.look(self.copy("--strip-debug"))[32][0]
        self.assertEqual((frame["function"], "source" in frame), ("site_outer", False))

    def test_damaged_debug_information(self):
        for section in ".debug_info", ".debug_line", ".debug_abbrev":
            broken = os.path.join(self.folder, "broken")
            subprocess.run(["objcopy", f"--dump-section={section}={broken}", FRAMES, os.devnull], check=True)
            with open(broken, "r+b") as file:
                file.seek(200)
                file.write(os.urandom(600))
            self.assertIn(64, self.look(self.copy(f"--update-section={section}={broken}")))

    def test_the_users_own_function_comes_first(self):
        self.look(FRAMES)
        place = r"\(frames.c:%d\)" % lines_of("frames.c")["step"] if LINES else r"\+0x[0-9a-f]+ \(who-frames\)"
        self.assertRegex(self.text, rf"\n *64.0 MiB +0 B +1 +66.7 % +Solver::step\(\) ?{place}, called by main.*\n    thrust::detail::reserve\(")

    def test_long_names_lose_the_arguments_of_templates(self):
        long = "_ZN4Pool4pathI" + "NS_4pathI" * 10 + "i" + "EE" * 10 + "E4stepEv"
        self.look(self.copy(f"--redefine-sym=_ZN6Solver4stepEv={long}"))
        self.assertRegex(self.text, r"\n    Pool::path<>::step\(\)")


class Views(unittest.TestCase):
    def test_change(self):
        with Job(HOLDER, "plain") as job:
            diff = subprocess.Popen([BFCSTAT, "who", "--diff=2", "--json", str(job.pid)],
                                    stdout=subprocess.PIPE, text=True)
            # Whenever within the two seconds it comes: if it is too late, there is no change.
            job.process.stdin.write("more\n")
            job.process.stdin.flush()
            self.assertEqual(job.process.stdout.readline(), "leaked\n")
            answer = json.loads(diff.communicate()[0])
        self.assertGreaterEqual(answer["seconds"], 2)
        for site in answer["sites"]:
            self.assertEqual(functions(site)[0], "site_leak")
            self.assertEqual(site["bytes"], 16 * MIB)

    def test_saved_moments(self):
        with tempfile.TemporaryDirectory() as folder:
            first, second = (os.path.join(folder, name) for name in ("first", "second"))
            with Job(HOLDER, "plain") as job:
                job.who("-o", first)
                job.process.stdin.write("more\n")
                job.process.stdin.flush()
                self.assertEqual(job.process.stdout.readline(), "leaked\n")
                since = json.loads(job.who("--json", "--diff", first))
                job.who("-o", second)
            text = bfcstat("who", "--diff", first, second).stdout
            later = json.loads(bfcstat("who", "--json", "--diff", first, second).stdout)
            self.assertEqual([[(functions(s)[0], s["bytes"]) for s in answer["sites"]]
                              for answer in (since, later)], [[("site_leak", 16 * MIB)]] * 2)
            place = r"allocate \(holder.c:\d+\), called by site_leak \(holder.c:\d+\)" if LINES else r"site_leak\+0x[0-9a-f]+ .*"
            self.assertRegex(text, rf"(?m)^grows [0-9.]+ [KMG]iB/s at {place}$")
            self.assertIn("320 MiB in use", bfcstat("who", first).stdout)
            for wrong in (["--diff", second, first], ["--diff=1", first], [__file__],
                          [os.path.join(folder, "none")]):
                run = bfcstat("who", *wrong)
                self.assertEqual((run.returncode, run.stdout), (1, ""))
                self.assertRegex(run.stderr, r"^bfcstat: [^\n]+\n$")

    def test_changes_within_the_error_are_left_out(self):
        """Of two moments of which the second is made to be less exact."""
        with tempfile.TemporaryDirectory() as folder:
            first, second = (os.path.join(folder, name) for name in ("first", "second"))
            with Job(HOLDER, "plain") as job:
                job.who("-o", first)
                job.process.stdin.write("more\n")
                job.process.stdin.flush()
                self.assertEqual(job.process.stdout.readline(), "leaked\n")
                job.who("-o", second)
                self.assertRegex(job.who("--diff", second), r"^job .*\n\nno change\n$")
            for error, shown in (7.9 * MIB, True), (8.1 * MIB, False):
                with open(second, "r+b") as file:  # layout/who.h
                    (sites,) = struct.unpack_from("=Q", file.read(40), 32)
                    for site in range(sites):
                        file.seek(152 + 80 * site + 64)
                        file.write(struct.pack("=d", error ** 2 if site == sites - 1 else 0))
                text = bfcstat("who", "--diff", first, second).stdout
                self.assertIn("+16.0 MiB change", text)
                self.assertEqual(["grows " in text, "\n+16.0 MiB  7.90 MiB " in text, "site_leak" in text], [shown] * 3, text)
                self.assertEqual("not attributed: not sampled, or within the error" in text, not shown, text)
                self.assertNotIn("the figures below", text)

    def test_collapsed(self):
        with Job(HOLDER, "plain") as job:
            lines = job.who("--collapsed").splitlines()
        large = [line for line in lines if "site_large" in line][0]
        stack, _, figure = large.rpartition(" ")
        self.assertEqual(int(figure), 256 * MIB)
        self.assertEqual([f.rpartition("`")[2] for f in stack.split(";")][-4 if LINES else -3:],
                         ["main", "plain", "site_large", *(["allocate"] if LINES else [])])

    def test_text(self):
        with Job(HOLDER, "plain") as job:
            text = job.who()
            self.assertRegex(job.who("--sites=1"), r"\n\d+ more sites?: ")
        self.assertIn(f"job {job.pid}: 320 MiB in use", text)
        self.assertIn("    plain (holder.c:" if LINES else "    plain+0x", text)
        place = r"allocate \(holder.c:\d+\), called by site_large \(holder.c:\d+\)\n" if LINES else r"site_large\+0x"
        self.assertRegex(text, r"\n *256 MiB +0 B +4 +80\.0 % +" + place)

    def test_off(self):
        with Job(HOLDER, "plain", stacks="off") as job:
            self.assertRaisesRegex(AssertionError, "has taken no stacks", job.who)

    def test_many_readers_at_once(self):
        with Job(HOLDER, "plain") as job:
            readers = [subprocess.Popen([BFCSTAT, "who", "--json", str(job.pid)], text=True, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE) for _ in range(48)]
            for reader in readers:
                text, complaint = reader.communicate()
                self.assertEqual((reader.returncode, complaint), (0, ""))
                self.assertEqual(json.loads(text)["all"]["bytes"], 320 * MIB)

    def test_name_that_a_terminal_obeys(self):
        """In what the process itself prints."""
        with tempfile.TemporaryDirectory() as folder:
            program = shutil.copy(HOLDER, os.path.join(folder, "holder\033[31m\r"))
            env = dict(os.environ, LD_PRELOAD=LIBRARY, SIM_MEMORY="4G", BFC_SUMMARY="leaks")
            run = subprocess.run([program, "plain"], env=env, text=True, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
        self.assertIn("holder?[31m?", run.stderr)
        self.assertNotIn("\033", run.stderr)

    def test_disk_full(self):
        with Job(HOLDER, "plain") as job:
            for command in ("who", "report", "record"):
                run = bfcstat(command, str(job.pid), "-o", "/dev/full")
                self.assertEqual((run.returncode, run.stdout), (1, ""))
                self.assertRegex(run.stderr, "^bfcstat: /dev/full: .*No space left on device\n$")

    def test_a_failed_write_keeps_the_file(self):
        """A file size limit stands for a full disk. What was in the file stays, and nothing lies beside it."""
        with tempfile.TemporaryDirectory() as folder, Job(HOLDER, "plain") as job:
            for command, name in ("who", "moment"), ("report", "page.html"), ("snapshot", "moment.pickle"):
                path = os.path.join(folder, name)
                with open(path, "w", encoding="utf-8") as file:
                    file.write("before")
                limit = "trap '' XFSZ; ulimit -f 0; exec \"$@\""
                run = subprocess.run(["sh", "-c", limit, "sh", BFCSTAT, command, str(job.pid), "-o", path],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                what = "a temporary file" if command == "report" else f"{path}: cannot be written"
                self.assertEqual((run.returncode, run.stderr), (1, f"bfcstat: {what}: File too large\n"))
                with open(path, encoding="utf-8") as file:
                    self.assertEqual(file.read(), "before")
            self.assertEqual(sorted(os.listdir(folder)), ["moment", "moment.pickle", "page.html"])

    def test_nothing_is_left(self):
        with Job(HOLDER, "plain") as job:
            job.who()
            left = [n for n in os.listdir("/dev/shm") if n.startswith("bfcpreload-who.")]
        self.assertFalse([n for n in left if n.endswith(f".{job.pid}")])

    def test_killed(self):
        """An answer that nobody took goes with the segment of its process."""
        with tempfile.TemporaryDirectory() as folder:  # which no other job sweeps
            with Job(HOLDER, "plain") as job:
                segment = [n for n in os.listdir("/dev/shm") if n.endswith(f".{job.pid}")][0]
                shutil.copy(os.path.join("/dev/shm", segment), folder)
            answer = os.path.join(folder, segment.replace("bfcpreload.", "bfcpreload-who."))
            with open(answer, "wb"):
                pass
            bfcstat("--directory", folder)
            self.assertEqual(os.listdir(folder), [])

    def test_wrong_options(self):
        for options in (["--sites=x", "1"], ["--diff=0", "1"], []):
            run = subprocess.run([BFCSTAT, "who", *options], stderr=subprocess.DEVNULL, check=False)
            self.assertEqual(run.returncode, 2, options)


class Leaks(unittest.TestCase):
    """BFC_SUMMARY=leaks."""

    def said(self, scene, **variables):
        env = dict(os.environ, LD_PRELOAD=LIBRARY, SIM_MEMORY="4G", **{"BFC_SUMMARY": "leaks", **variables})
        run = subprocess.run([HOLDER, scene], env=env, text=True, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual((run.returncode, run.stdout), (0, "ready\n"))
        return run.stderr

    def test_not_freed(self):
        for stats in "10":
            said = self.said("plain", BFC_STATS=stats)
            self.assertRegex(said, r"not freed by process \d+ \(who-holder\): 320 MiB in 1028 blocks, from 2 sites\n")
            self.assertRegex(said, r"256 MiB in 4 blocks, allocated at\n    site_large \(who-holder\+0x")

    def test_freed_twice(self):
        said = self.said("freed_twice")
        self.assertIn(": 0 B in 0 blocks, from 0 sites\n", said)
        self.assertRegex(said, r"(?s)invalid free of 0x[0-9a-f]+, 1 time, at\n    site_second_free.*"
                               r"  which was freed before at\n    site_first_free")

    def test_invalid_frees_are_in_the_summary(self):
        for mode in "sync", "lazy", "ordered":
            with self.subTest(mode):
                self.assertIn("    invalid frees: 1, of blocks freed before", self.said("freed_twice", BFC_SUMMARY="1", BFC_FREE=mode))

    def test_frees_that_the_driver_refuses_are_no_double_frees(self):
        said = self.said("freed_late", BFC_SUMMARY="1")
        self.assertIn(", 1 free that the driver refused\n", said)
        self.assertNotIn("invalid frees", said)
        self.assertNotIn("foreign", said)
        with Job(HOLDER, "freed_late") as job:
            self.assertRegex(bfcstat(str(job.pid)).stdout, r"\n  forwarded, refused +0 allocations, 1 free\n")
            shown = json.loads(bfcstat("--json", str(job.pid)).stdout)
            counted = bfcstat("--prometheus").stdout
        frees = shown["coverage"]["forwarded_frees"]
        self.assertEqual({key: count for key, count in frees.items() if count}, {"refused": 1})
        self.assertRegex(counted, r'\nbfcpreload_forwarded_frees_total\{[^}\n]*,reason="refused"\} 1\n')

    def test_freed_inside(self):
        self.assertRegex(self.said("freed_inside"),
                         r"(?s)invalid free of 0x[0-9a-f]+, 1 time, at\n    site_second_free.*"
                         r"  which is 4096 bytes inside a block of 32.0 MiB in use, allocated at\n    site_coroutine")

    def test_freed_after_its_region(self):
        """The driver refuses it then: the pool knows nothing of the address any more."""
        self.assertRegex(self.said("freed_late"), r"(?s)1 time, at\n    site_second_free.*"
                                                  r"  which was freed before at\n    site_first_free")

    def status(self, scene, **variables):
        env = dict(os.environ, LD_PRELOAD=LIBRARY, SIM_MEMORY="4G", PLUGIN=PLUGIN, **variables)
        run = subprocess.run([HOLDER, scene], env=env, text=True, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        return run.returncode, run.stdout

    def test_exit_status(self):
        leaks = {"BFC_SUMMARY": "leaks", "BFC_LEAK_EXIT": "42"}
        own = "ready\nat exit\ndestructor"  # the last without a line's end, as the streams hold it
        self.assertEqual(self.status("ends_leaking", **leaks), (42, own))
        self.assertEqual(self.status("ends_leaking", BFC_LOG="off", **leaks), (42, own))
        self.assertEqual(self.status("ends_clean", **leaks), (3, own))
        self.assertEqual(self.status("ends_leaking", **dict(leaks, BFC_LEAK_EXIT="0")), (3, own))
        self.assertEqual(self.status("ends_leaking", BFC_LEAK_EXIT="42"), (42, own))
        self.assertEqual(self.status("ends_at_once", **leaks), (4, ""))
        self.assertEqual(self.status("ends_by_signal", **leaks), (-6, ""))
        self.assertEqual(self.status("none", **leaks), (0, "ready\n"))

    def test_nothing_allocated(self):
        self.assertEqual(self.said("none"), "")


class Python(unittest.TestCase):
    """By this interpreter: what is known of its version decides."""

    def held(self, library):
        with Job(sys.executable, os.path.join(HERE, "held.py"), library) as job:
            sites = job.sites()
        total = {}
        for site in sites:
            ours = [f for f in site["frames"] if f.get("line")]
            for frame in ours:
                if frame["file"].endswith("held.py") and not frame["function"].startswith("alloc"):
                    total[frame["line"]] = total.get(frame["line"], 0) + site["bytes"] / MIB
        return total

    def check(self, library):
        total, lines = self.held(library), lines_of("held.py")
        self.assertEqual({name: total.get(number) for name, number in lines.items()},
                         {"load": 64, "work": 64, "generate": 16, "except": 8})

    @unittest.skipUnless((3, 11) <= sys.version_info < (3, 15) and
                         sys.implementation.name == "cpython", "not a known version of CPython")
    def test_without_the_lock(self):
        self.check("CDLL")

    @unittest.skipUnless(sys.version_info >= (3, 9) and sys.implementation.name == "cpython",
                         "not CPython 3.9 or later")
    def test_with_the_lock(self):
        self.check("PyDLL")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
