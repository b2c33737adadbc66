"""Sleep where a program is unusual: contexts that end, tools that call from within our calls, forks, calls that only look
at an address, devices that stay full.
usage: test_corners.py (LIBCUDA, PRELOAD and BFCSTAT in the environment)"""

import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest

from jobs import ON, Job, main

HERE = pathlib.Path(__file__).parent
MORE = repr(str(HERE / "corners.py"))
FILLED = "a = allocate(9*MIB); fill(a, 7, 9*MIB); b = allocate(1000); fill(b, 9, 1000); synchronize()"
INTACT = "is_filled(a, 7, 9*MIB) and is_filled(b, 9, 1000)"
AWAKE_CALLS = re.findall(r"X\((cu\w+), \d, [A-Z]+\)",
                         (HERE / "../../../interpose/driver/submission_calls.h").read_text(encoding="utf-8"))


class Corners(unittest.TestCase):
    def job(self, **settings):
        job = Job(self, {**ON, **settings})
        job.do(f"import time; exec(open({MORE}).read(), globals())")
        return job

    def filled(self, **settings):
        job = self.job(**settings)
        job.do(FILLED)
        return job

    def share(self, memory="64M"):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return {"SIM_SHARE": f"{folder.name}/share", "SIM_MEMORY": memory}

    def test_calls_with_addresses_wake(self):
        job = self.filled()
        self.assertGreater(len(AWAKE_CALLS), 20)
        for name in AWAKE_CALLS:
            if job.do(f"hasattr(cuda, {name!r})") == 0:
                continue
            with self.subTest(name):
                job.fall_asleep()
                job.do(f"call({name!r})")
                self.assertEqual(job.sleep()["state"], "awake")
        job.fall_asleep()
        job.do("g = graph_that_sets(b, 5, 1000)")
        job.fall_asleep()
        self.assertEqual(job.do("launch_graph(g) or synchronize()"), 0)
        self.assertTrue(job.do("is_filled(a, 7, 9*MIB) and is_filled(b, 5, 1000)"))

    def test_falls_while_pitched_memory_is_waited_for(self):
        share = self.share()
        job = self.filled(BFC_WAIT="60", **share)
        other = Job(self, {"BFC_DISABLE": "1", **share})
        job.do("allocate_pitched(512, 4)")
        other.do("c = allocate(40*MIB)")
        job.do("p = start(lambda: allocate_pitched(512, 60000))")
        until = time.monotonic() + 30
        while "wait" not in job.said() and time.monotonic() < until:
            time.sleep(0.01)
        # The waiting thread asks again from time to time, which ends a fall.
        while (asked := job.stat("sleep")).returncode and time.monotonic() < until:
            pass
        self.assertEqual(asked.returncode, 0, asked.stderr)
        other.do("free(c)")
        self.assertGreater(job.do("await_value(p)"), 0)
        self.assertTrue(job.do(INTACT))

    def test_a_wake_in_vain_is_tried_once_by_each_call(self):
        share = self.share()
        sleeper = self.job(**share)
        sleeper.do("size = 50*MIB; a = allocate(size); fill(a, 7, size); synchronize()")
        sleeper.fall_asleep()
        other = self.job(**share)
        other.do("a = allocate(50*MIB)")
        for number, line in enumerate(("read(a, 8)", "stream()", "allocate(40*MIB)"), 1):
            sleeper.do(line)
            self.assertEqual(sleeper.sleep()["refused"], number, line)
        self.assertNotIn("BFC_LIMIT leaves no room", sleeper.said())
        other.end()
        self.assertTrue(sleeper.do("is_filled(a, 7, size)"))

    @unittest.skipUnless("BFCPLAN" in os.environ, "built without the planner")
    def test_a_wake_in_vain_for_a_plan_is_tried_once(self):
        """The plan's memory and the allocation itself need it."""
        share = self.share()
        trace, plan = share["SIM_SHARE"] + "-trace", share["SIM_SHARE"] + "-plan"
        recorder = self.job(BFC_RECORD=trace)
        step = "[free(one) for one in [allocate(size * MIB) for size in (5, 3, 4)]]"
        recorder.do(f"for _ in range(8): {step}")
        self.assertEqual(recorder.finish(), 0)
        subprocess.run([os.environ["BFCPLAN"], "solve", trace, "-o", plan], check=True, stdout=subprocess.DEVNULL)
        sleeper = self.job(BFC_PLAN=plan, **share)
        sleeper.do("size = 45*MIB; a = allocate(size); fill(a, 7, size); synchronize(); free(allocate(2000000))")
        sleeper.fall_asleep()
        other = self.job(**share)
        other.do("a = allocate(45*MIB)")
        for number in 1, 2:
            self.assertEqual(sleeper.do("allocate(5*MIB)"), "code 2")
            self.assertEqual(sleeper.sleep()["refused"], number)
        self.assertNotIn("BFC_LIMIT leaves no room", sleeper.said())
        self.assertGreater(sleeper.do("allocate(2000)"), 0)  # for which memory is there
        other.end()
        sleeper.do(f"for _ in range(3): {step}")
        self.assertTrue(sleeper.do("is_filled(a, 7, size)"))
        self.assertGreater(sleeper.shown()["pools"][0]["plan"]["followed"], 0, sleeper.said())

    def test_one_limit_for_all_waits_of_a_fall(self):
        job = self.job(SIM_DEVICES="7")
        job.do("hold_devices(7, 0.7)")
        self.assertIn("did not end", job.stat("sleep").stderr)

    def test_a_tool_calls_from_within(self):
        job = self.filled()
        job.do("tool_memory = allocate(512)")
        job.do("watch(use_everything)")
        for _ in range(3):
            self.assertEqual(job.stat("sleep").returncode, 0, job.said())
            self.assertTrue(job.do(INTACT))
        job.do("watch(lambda name: None)")
        self.assertGreater(job.do("tool_calls.get('cuMemUnmap', 0)"), 0)
        self.assertGreater(job.do("tool_calls.get('cuMemcpyHtoDAsync_v2', 0)"), 0)
        job.fall_asleep()
        self.assertTrue(job.do(INTACT))

    def test_a_tool_calls_within_a_launch_while_the_job_must_fall(self):
        """The launch is counted as under way, and its end needs the tool's call, which needs memory awake."""
        share = self.share()
        job = self.filled(BFC_SLEEP_QUANTUM="0.1", **share)
        job.do("""def told(name):
    if name == 'cuMemsetD32Async' and not getattr(in_tool, 'on', False):
        in_tool.on = True
        time.sleep(0.5)
        fill(b, 9, 1000)
        in_tool.on = False
""".replace("\n", "\\n").join(["exec('''", "''', globals())"]))
        job.do("watch(told)")
        other = Job(self, {**ON, **share, "BFC_WAIT": "60"})
        other.begin("allocate(60*MIB) > 0")
        job.begin("[cuda.cuMemsetD32Async(u64(b), 0x09090909, size_t(250), None) for _ in range(4)]")
        self.assertTrue(other.answer())
        other.end()  # a call of the job that came after its fall waits for this
        job.answer()
        self.assertTrue(job.do(INTACT))

    def test_forked_in_the_middle_of_an_allocation(self):
        """The child has nothing to wake, and its allocation fails as natively."""
        job = self.filled()
        job.fall_asleep()
        self.assertEqual(job.do("forked_at(('cuCtxGetId',), lambda: code_of_allocation(30*MIB))"), 3)
        self.assertTrue(job.do(INTACT))

    def halted(self, name, number):
        """A job with two threads: the call is halted until the file goes."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return self.filled(SIM_HALT=f"{name}@{number}:{folder.name}/halted"), f"{folder.name}/halted"

    def await_file(self, path):
        until = time.monotonic() + 60
        while not os.path.exists(path):
            self.assertLess(time.monotonic(), until)
            time.sleep(0.005)

    def test_questions_are_answered_while_it_wakes(self):
        job, path = self.halted("cuMemcpyHtoDAsync_v2", 1)
        told = job.do("free_bytes()")
        job.fall_asleep()
        job.do("r = start(lambda: " + INTACT + ")")
        self.await_file(path)
        self.assertEqual(job.do("free_bytes()"), told)
        self.assertGreater(job.do("allocate(512)"), 0)
        self.assertIn("waking", job.stat().stdout)
        os.remove(path)
        self.assertTrue(job.do("await_value(r)"))

    def test_context_ends_in_the_middle(self):
        """The next context is as new, and not a byte stays behind on the device."""
        for step, name in (("fall", "cuMemcpyDtoHAsync_v2"), ("fall", "cuMemUnmap"), ("fall", "cuMemRelease"),
                           ("wake", "cuMemCreate"), ("wake", "cuMemMap"), ("wake", "cuMemSetAccess"),
                           ("wake", "cuMemcpyHtoDAsync_v2")):
            with self.subTest(f"{name} of a {step}"):
                share = self.share()
                path = share["SIM_SHARE"] + "-halted"
                other = Job(self, {"BFC_DISABLE": "1", **share})
                job = self.filled(SIM_HALT=f"{name}@{self.first_of(step, name)}:{path}", **share)
                asked = job.asking("sleep")
                if step == "wake":
                    asked.wait()
                    asked = job.asking("wake")
                self.await_file(path)
                job.do("e = start(lambda: cuda.cuDevicePrimaryCtxReset_v2(0))")
                time.sleep(0.1)
                os.remove(path)
                self.assertEqual(job.do("await_value(e)"), 0)
                asked.wait()
                job.do("begin()")
                job.do(FILLED)
                self.assertTrue(job.do(INTACT), job.said())
                job.fall_asleep()
                self.assertTrue(job.do(INTACT), job.said())
                self.assertEqual(job.do("cuda.cuDevicePrimaryCtxReset_v2(0)"), 0)
                self.assertEqual(other.do("free_bytes()"), 64 << 20, job.said())

    def test_nothing_stays_of_a_context_that_ends_in_the_middle(self):
        """Its addresses are given back though pages were mapped there when it ended, and its pages though its end
        takes long."""
        for step, at, end, lasts in (
                ("wake", "cuMemcpyHtoDAsync_v2", "cuDevicePrimaryCtxReset_v2", 0),
                ("wake", "cuMemSetAccess", "cuCtxDestroy_v2", 0), ("wake", "cuMemMap", "cuCtxDestroy_v2", 2.5),
                ("fall", "cuMemUnmap", "cuDevicePrimaryCtxReset_v2", 0),
                ("fall", "cuMemUnmap", "cuDevicePrimaryCtxReset_v2", 2.5)):
            with self.subTest(f"{end} of {lasts} s in {at} of a {step}"):
                share = self.share()
                other = Job(self, {"BFC_DISABLE": "1", **share})
                job = self.job(**share)
                if "Destroy" in end:
                    job.do("cuda.cuDevicePrimaryCtxRelease_v2(0); context = another_context()")
                job.do(FILLED)
                if step == "wake":
                    job.fall_asleep()
                job.do(f"e = ends_in_the_middle({at!r}, {end!r}, {'context' if 'Destroy' in end else 0}, {lasts})")
                asked = job.asking("wake" if step == "wake" else "sleep")
                asked.wait()
                self.assertEqual(job.do("await_value(e[0])"), 0)
                job.do("watch(lambda name: None)")
                job.await_state("awake")
                job.do("begin()")
                self.assertEqual(other.do("free_bytes()"), 64 << 20, job.said())
                self.assertEqual([job.do(f"is_reserved({one})") for one in "ab"], [False, False], job.said())

    def test_exit_in_the_middle(self):
        for step, name in (("fall", "cuMemcpyDtoHAsync_v2"), ("fall", "cuMemUnmap"), ("wake", "cuMemCreate"),
                           ("wake", "cuMemcpyHtoDAsync_v2")):
            with self.subTest(f"{name} of a {step}"):
                share = self.share()
                path = share["SIM_SHARE"] + "-halted"
                job = self.filled(SIM_HALT=f"{name}@{self.first_of(step, name)}:{path}", **share)
                asked = job.asking("sleep")
                if step == "wake":
                    asked.wait()
                    job.do("r = start(lambda: read(a, 8))")
                self.await_file(path)
                self.assertEqual(job.finish(), 0)
                asked.kill()
                asked.wait()
                self.assertEqual(Job(self, share).do("free_bytes()"), 64 << 20)

    def first_of(self, step, name):
        """The number of the first such call of the first fall, or of the wake after it, on a device as that of share."""
        job = self.filled(SIM_MEMORY="64M")
        if step == "wake":
            job.fall_asleep()
        number = job.do(f"count({name!r})") + 1
        job.end()
        return number

    def test_one_of_two_contexts_ends(self):
        job = self.filled(SIM_DEVICES="2")
        job.do("second = begin(1); c = allocate(5*MIB); fill(c, 4, 5*MIB); synchronize()")
        for which, intact in ((1, INTACT), (0, "is_filled(c, 4, 5*MIB)")):
            job.fall_asleep()
            self.assertEqual(job.do(f"cuda.cuDevicePrimaryCtxReset_v2({which})"), 0)
            self.assertTrue(job.is_asleep())
            job.do(f"begin({1 - which})")
            self.assertTrue(job.do(intact))
            job.do("second = begin(1); c = allocate(5*MIB); fill(c, 4, 5*MIB); synchronize()")
        self.assertEqual(job.finish(), 0)

    def test_two_jobs_with_two_contexts_each_do_not_wake_half(self):
        share = self.share()
        jobs = [self.job(BFC_WAIT="30", BFC_SLEEP_IDLE="1", SIM_LATENCY="create:2000", **share) for _ in range(2)]
        for number, job in enumerate(jobs):
            job.do(f"a = allocate(20*MIB); fill(a, {number + 1}, 20*MIB); synchronize()")
            job.do(f"second = another_context(); b = allocate(20*MIB); fill(b, {number + 3}, 20*MIB); synchronize()")
            job.fall_asleep()
        other = Job(self, {"BFC_DISABLE": "1", **share})
        other.do("c = allocate(12*MIB)")  # leaves room for three contexts' memory but for a little
        for job in jobs:
            job.begin("fill(a, read(a, 1)[0] + 8, 20*MIB) or synchronize()")
        self.assertEqual([job.answer() for job in jobs], [0, 0], [job.said() for job in jobs])
        for number, job in enumerate(jobs):
            self.assertTrue(job.do(f"is_filled(a, {number + 9}, 20*MIB) and is_filled(b, {number + 3}, 20*MIB)"))

    def test_memory_from_after_a_capture_sleeps(self):
        job = Job(self, {"BFC_SLEEP_IDLE": "1000"})
        job.do(f"import time; exec(open({MORE}).read(), globals())")
        job.do(FILLED)
        job.do("g = instantiate(capture(lambda one: fill_async(b, 5, 1000, one)))")
        job.do("c = allocate(40*MIB); fill(c, 4, 40*MIB); synchronize()")
        job.fall_asleep()
        self.assertEqual(job.sleep()["kept"], 0)
        self.assertEqual(job.do("launch_graph(g) or synchronize()"), 0)
        self.assertTrue(job.do("is_filled(a, 7, 9*MIB) and is_filled(b, 5, 1000) and is_filled(c, 4, 40*MIB)"))

    def test_unseen_end(self):
        job = self.filled(SIM_DEVICES="2")
        job.do("second = begin(1); c = allocate(5*MIB); fill(c, 4, 5*MIB); synchronize()")
        job.fall_asleep()
        self.assertEqual(job.do("end_unseen(1)"), 0)
        job.do("begin(0)")
        self.assertTrue(job.do(INTACT), job.said())
        self.assertEqual(job.sleep()["state"], "awake")

    def test_peer_access_while_asleep(self):
        job = self.filled(SIM_DEVICES="2")
        job.do("second = begin(1); c = allocate(5*MIB); synchronize()")
        job.fall_asleep()
        self.assertEqual(job.do("cuda.cuCtxEnablePeerAccess(context, 0)"), 0)
        self.assertEqual(job.do("cuda.cuMemcpyDtoD_v2(u64(c), u64(a), size_t(MIB)) or synchronize()"), 0)
        self.assertTrue(job.do("is_filled(c, 7, MIB)"))
        job.do("cuda.cuCtxSetCurrent(context)")
        self.assertTrue(job.do(INTACT))

    def test_answers_as_before(self):
        job = self.filled()
        asked = ("free_bytes()", "attribute(2, a)", "attribute(3, b)", "attribute(11, a + 5)", "attribute(12, a)",
                 "address_range(b + 9)", "attribute(2, 12345)")
        told = [job.do(line) for line in asked]
        for line, answer in zip(asked, told):
            job.fall_asleep()
            self.assertEqual(job.do(line), answer, line)
        job.fall_asleep()
        told = told[1:]
        asked = asked[1:]
        self.assertEqual(job.do(f"at_once(*[lambda line=line: eval(line, globals()) for line in {asked}])"), told)


if __name__ == "__main__":
    main()
