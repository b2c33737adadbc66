"""A job that sleeps: what it gives back, what wakes it, and that its contents are what they were.
usage: test_sleep.py (LIBCUDA, PRELOAD and BFCSTAT in the environment)"""

import os
import signal
import stat
import tempfile
import time
import unittest

from jobs import ON, Job, main

FILLED = "a = allocate(64*MIB); fill(a, 7, 64*MIB); b = allocate(1000); fill(b, 9, 1000); synchronize()"
INTACT = "is_filled(a, 7, 64*MIB) and is_filled(b, 9, 1000)"


class Sleeping(unittest.TestCase):
    def filled(self, settings=ON, **more):
        job = Job(self, settings, **more)
        job.do(FILLED)
        return job

    def test_gives_all_back_and_wakes_by_itself(self):
        with tempfile.NamedTemporaryFile() as shared:
            self.check_given_back({"SIM_SHARE": shared.name})

    def check_given_back(self, share):
        neighbour = Job(self, {"BFC_DISABLE": "1", **share})
        job = self.filled({**ON, **share})
        held = job.shown()["pools"][0]["reserved"]
        free = neighbour.do("free_bytes()")
        told = job.do("free_bytes()")
        job.fall_asleep()
        sleep = job.sleep()
        self.assertEqual((sleep["state"], sleep["where"], sleep["kept"]), ("asleep", "memory", 0))
        self.assertGreaterEqual(sleep["asleep"] / held, 0.99)
        self.assertEqual(neighbour.do("free_bytes()") - free, sleep["asleep"])
        self.assertEqual(job.do("free_bytes()"), told, "the program can tell that it sleeps")
        self.assertTrue(job.do(INTACT))
        sleep = job.sleep()
        self.assertEqual((sleep["state"], sleep["falls"], sleep["wakes"]), ("awake", 1, 1))
        self.assertEqual(neighbour.do("free_bytes()"), free)

    def test_gives_all_back_of_many_contexts_and_sizes(self):
        """On two devices, with holes; what they hold is measured by a neighbour too, which sees both."""
        with tempfile.NamedTemporaryFile() as shared:
            share = {"SIM_SHARE": shared.name, "SIM_DEVICES": "2", "SIM_MEMORY": "2G"}
            neighbour, job = Job(self, {"BFC_DISABLE": "1", **share}), Job(self, {**ON, **share})
            free = "begin(0) and free_bytes(), begin(1) and free_bytes()"
            empty = neighbour.do(free)
            job.do("use_many_contexts(8, 40)")
            taken = sum(empty) - sum(neighbour.do(free))
            job.fall_asleep()
            self.assertEqual(len(job.shown()["pools"]), 8)
            self.assertEqual(job.sleep()["kept"], 0)
            self.assertGreater(job.sleep()["asleep"], taken / 2)  # the rest was free, and needs no contents
            self.assertGreaterEqual((taken - sum(empty) + sum(neighbour.do(free))) / taken, 0.99)
            self.assertTrue(job.do("many_are_intact()"))
            self.assertFalse(job.is_asleep())

    def test_what_wakes_it(self):
        waking = {
            "a copy": "read(a, 8)",
            "an asynchronous set": "fill_async(b, 9, 1000, None)",
            "a set": "fill(a, 7, 8)",
            "a question": "attribute(2, a)",
            "a range": "address_range(a + 5)",
            "an export": "export(b)",
            "a capture": "capture(lambda stream: fill_async(b, 9, 1000, stream))",
            "growth": "c = allocate(32*MIB)",
        }
        for what, line in waking.items():
            with self.subTest(what):
                job = self.filled()
                job.fall_asleep()
                job.do(line)
                self.assertEqual(job.sleep()["state"], "awake")
                self.assertTrue(job.do(INTACT))

    def test_what_does_not_wake_it(self):
        job = self.filled()
        job.fall_asleep()
        job.do("c = allocate(1000); d = allocate(2000); free(c)")
        job.do("synchronize()")
        self.assertTrue(job.is_asleep())
        job.do("free(a)")
        self.assertTrue(job.is_asleep())
        job.do("fill(d, 3, 2000)")
        self.assertFalse(job.is_asleep())
        self.assertTrue(job.do("is_filled(b, 9, 1000) and is_filled(d, 3, 2000)"))

    def test_two_threads_wake_it_once(self):
        job = self.filled()
        for _ in range(10):
            job.fall_asleep()
            self.assertEqual(job.do(
                "at_once(lambda: is_filled(a, 7, 64*MIB), lambda: is_filled(b, 9, 1000), lambda: fill(b, 9, 500))"),
                [True, True, 0])
        sleep = job.sleep()
        self.assertEqual((sleep["falls"], sleep["wakes"]), (10, 10))

    def test_many_streams(self):
        job = self.filled()
        job.do("s = [stream(1) for _ in range(3)]; [fill_async(b, 9, 1000, one) for one in s]; synchronize()")
        job.fall_asleep()
        self.assertEqual(job.do("fill_async(b, 9, 1000, s[2])"), 0)
        self.assertTrue(job.do(INTACT))

    def test_graph_launched_after_sleep(self):
        job = self.filled()
        job.do("g = instantiate(capture(lambda stream: fill_async(b, 5, 1000, stream)))")
        job.fall_asleep()
        self.assertEqual(job.do("launch_graph(g) or synchronize()"), 0)
        self.assertTrue(job.do("is_filled(a, 7, 64*MIB) and is_filled(b, 5, 1000)"))

    def test_idle_timer(self):
        job = self.filled({"BFC_SLEEP_IDLE": "0.2"})
        job.await_state("asleep")
        self.assertTrue(job.do(INTACT))

    def test_idle_time_begins_anew_with_a_wake(self):
        for how, wake in (("by hand", lambda job: job.stat("wake")), ("by growth", lambda job: job.do("allocate(32*MIB)"))):
            with self.subTest(how):
                job = self.filled({"BFC_SLEEP_IDLE": "2"})
                job.await_state("asleep")
                wake(job)
                time.sleep(1)
                self.assertEqual(job.sleep()["state"], "awake")
                job.await_state("asleep")

    def test_busy_job_stays_awake(self):
        job = self.filled({"BFC_SLEEP_IDLE": "1000"})
        self.assertEqual(job.sleep()["falls"], 0)

    def test_without_gate_or_pages_it_says_why(self):
        for settings, why in (({}, "BFC_GATE"), ({"BFC_GATE": "on"}, "BFC_BACKING"), ({"BFC_BACKING": "pages"}, "BFC_GATE"),
                              ({"BFC_SLEEP_IDLE": "100", "SIM_VIRTUAL": "0"}, "BFC_BACKING"),
                              ({"BFC_SLEEP_IDLE": "100", "BFC_BACKING": "malloc"}, "set BFC_BACKING=pages\n")):
            with self.subTest(settings):
                job = self.filled(settings)
                asked = job.stat("sleep")
                self.assertEqual(asked.returncode, 1)
                self.assertIn(why, asked.stderr)
                self.assertIn(why, job.stat().stdout)
                self.assertTrue(job.do(INTACT))

    def test_a_place_may_be_a_folder(self):
        self.assertIn("BFC_SLEEP_TO= is not accepted: expected none, memory, or a path of 1 to 250 characters",
                      self.filled({**ON, "BFC_SLEEP_TO": ""}).said())

    def test_exports_stay(self):
        job = self.filled()
        job.do("export(b)")
        job.fall_asleep()
        sleep = job.sleep()
        self.assertEqual(sleep["kept"], 2 << 20)
        self.assertIn("exported", sleep["why"])
        self.assertTrue(job.do(INTACT))

    def test_exported_range_stays(self):
        """As does what was registered with another device: it goes on using the memory that it was shown."""
        for shows in "export_range(b, 2*MIB)", "register(b)":
            with self.subTest(shows):
                job = self.filled()
                if job.do(shows) != 0:
                    continue
                self.assertEqual(job.stat("sleep").returncode, 1)
                self.assertIn("exported", job.sleep()["why"])
                self.assertTrue(job.do(INTACT))

    def test_regions_after_a_capture_stay(self):
        """With BFC_BACKING=auto, what a program takes after a capture is not of pages, unless the settings ask for sleep."""
        job = self.filled({"BFC_BACKING": "auto", "BFC_GATE": "on"})
        job.do("capture(lambda stream: fill_async(b, 9, 1000, stream))")
        job.do("c = allocate(32*MIB); fill(c, 5, 32*MIB); synchronize()")
        job.fall_asleep()
        sleep = job.sleep()
        self.assertGreaterEqual(sleep["asleep"], 64 << 20)
        self.assertGreaterEqual(sleep["kept"], 32 << 20)
        self.assertIn("not of pages", sleep["why"])
        self.assertTrue(job.do(INTACT + " and is_filled(c, 5, 32*MIB)"))
        job.do("free(a) or free(b)")
        self.assertIn("BFC_BACKING=pages", job.stat("sleep").stderr)

    def test_capture_under_way(self):
        job = self.filled()
        job.do("s = stream(1); begin_capture(s)")
        self.assertIn("capture", job.stat("sleep").stderr)
        job.do("end_capture(s)")
        job.fall_asleep()

    def test_work_that_does_not_end(self):
        job = self.filled()
        job.do("go = threading.Event(); s = stream(1); call_host(s, go.wait)")
        self.assertIn("did not end", job.stat("sleep").stderr)
        job.do("go.set()")
        job.do("synchronize()")
        job.fall_asleep()
        self.assertTrue(job.do(INTACT))

    def test_contents_in_a_folder_are_private(self):
        with tempfile.TemporaryDirectory() as folder:
            job = self.filled({**ON, "BFC_SLEEP_TO": folder})
            job.fall_asleep()
            self.assertEqual(job.sleep()["where"], folder)
            self.assertEqual(os.listdir(folder), [])
            fds = f"/proc/{job.pid}/fd"
            files = [f"{fds}/{n}" for n in os.listdir(fds) if os.readlink(f"{fds}/{n}").startswith(folder)]
            self.assertEqual(len(files), 1)
            self.assertEqual(stat.S_IMODE(os.stat(files[0]).st_mode), 0o600)
            self.assertTrue(job.do(INTACT))
            self.assertFalse([n for n in os.listdir(fds) if os.readlink(f"{fds}/{n}").startswith(folder)])

    def test_no_folder_or_no_room_stays_awake(self):
        for place, why in ("/nowhere/at/all", "No such file or directory"), (__file__, "Not a directory"):
            job = self.filled({**ON, "BFC_SLEEP_TO": place})
            self.assertIn(f"BFC_SLEEP_TO={place}: {why}; the job cannot sleep: expected memory, or a folder in which "
                          "files can be made\n", job.said())
            self.assertIn(why, job.stat("sleep").stderr)
        self.assertTrue(job.do(INTACT))
        job = self.filled({**ON, "BFC_SLEEP_TO": tempfile.gettempdir()})
        job.do("__import__('resource').setrlimit(__import__('resource').RLIMIT_FSIZE, (1*MIB, -1))")
        self.assertIn("File too large", job.stat("sleep").stderr)
        self.assertTrue(job.do(INTACT))

    def test_context_ends_while_asleep(self):
        job = self.filled()
        job.fall_asleep()
        self.assertEqual(job.do("cuda.cuDevicePrimaryCtxReset_v2(0)"), 0)
        self.assertEqual(job.sleep()["state"], "awake")
        job.do("begin()")
        job.do(FILLED)
        self.assertTrue(job.do(INTACT))
        job.fall_asleep()
        self.assertTrue(job.do(INTACT))
        self.assertEqual(job.finish(), 0)

    def test_exit_and_last_words(self):
        job = self.filled()
        job.do("import atexit; atexit.register(lambda: os._exit(0 if is_filled(a, 7, 64*MIB) else 1))")
        job.fall_asleep()
        self.assertEqual(job.finish(), 0)
        job = self.filled()
        job.fall_asleep()
        self.assertEqual(job.finish(), 0)

    def test_fork_while_asleep(self):
        job = self.filled()
        job.fall_asleep()
        self.assertEqual(job.do("in_child(lambda: fill(a, 1, 8))"), 3)
        self.assertTrue(job.is_asleep())
        self.assertTrue(job.do(INTACT))

    def test_stopped_job_does_not_answer(self):
        job = self.filled()
        os.kill(job.pid, signal.SIGSTOP)
        asked = job.stat("sleep")
        os.kill(job.pid, signal.SIGCONT)
        self.assertIn("does not answer", asked.stderr)
        job.await_state("asleep")
        self.assertTrue(job.do(INTACT))

    def test_wake_on_request(self):
        job = self.filled()
        job.fall_asleep()
        self.assertEqual(job.stat("wake").returncode, 0)
        self.assertEqual(job.sleep()["state"], "awake")
        self.assertEqual(job.stat("wake").returncode, 0)
        self.assertTrue(job.do(INTACT))


if __name__ == "__main__":
    main()
