"""Sleep on a device: a job of PyTorch falls asleep, another takes the device, and the first goes on with the same
contents; then two that each need the whole device take turns. Prints one line of JSON, with what was wrong in
"wrong".
usage: client_sleep.py LIBRARY BFCSTAT FOLDER"""

import contextlib
import ctypes
import json
import os
import pathlib
import select
import subprocess
import sys
import time

LIBRARY, BFCSTAT, FOLDER = sys.argv[1:4]
JOB = [sys.executable, str(pathlib.Path(__file__).with_name("job_sleep.py"))]
GIB = 1 << 30
ON = {"LD_PRELOAD": LIBRARY, "BFC_GATE": "on", "BFC_BACKING": "pages"}
TURNS = {"BFC_SLEEP_QUANTUM": "1", "BFC_WAIT": "30"}
TURN_ROUNDS = 3000
LIMIT = 45  # seconds for each answer of a job


class Device:
    """Its free memory, asked for by a context of our own, so that all that changes is the jobs'."""

    def __init__(self):
        self.cuda, self.total = ctypes.CDLL("libcuda.so.1"), ctypes.c_size_t()
        context = ctypes.c_void_p()
        self.must(self.cuda.cuInit(0))
        self.must(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
        self.must(self.cuda.cuCtxSetCurrent(context))

    @staticmethod
    def must(code):
        if code:
            raise RuntimeError(f"the driver answers {code}")

    def free(self):
        free = ctypes.c_size_t()
        self.must(self.cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(self.total)))
        return free.value

    @contextlib.contextmanager
    def filled(self, leave):
        """All but `leave` bytes are taken while the body runs."""
        pointer = ctypes.c_uint64()
        self.must(self.cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(self.free() - leave)))
        yield
        self.must(self.cuda.cuMemFree_v2(pointer))


class Job:
    def __init__(self, gib, **settings):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("BFC_", "LD_PRELOAD"))}
        self.process = subprocess.Popen([*JOB, str(gib)], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env={**clean, **settings})

    def line(self):
        """The job's next line; RuntimeError: it has ended, or takes too long."""
        if not select.select([self.process.stdout], [], [], LIMIT)[0]:
            self.process.kill()
            raise RuntimeError(f"a job said nothing for {LIMIT} s")
        if not (line := self.process.stdout.readline()):
            raise RuntimeError(f"a job ended: {self.process.wait()}")
        return line

    def begins(self):
        self.line()
        return self

    def begin(self, rounds):
        self.process.stdin.write(f"{rounds}\n")
        self.process.stdin.flush()

    def answer(self):
        return json.loads(self.line())

    def do(self, rounds):
        self.begin(rounds)
        return self.answer()

    def end(self):
        self.process.stdin.close()
        return self.process.wait(timeout=LIMIT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def bfcstat(*arguments):
    done = subprocess.run([BFCSTAT, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"bfcstat {' '.join(arguments)}: {done.stdout} {done.stderr}")
    return done.stdout.strip()


def falls_and_wakes(found, device, gib, native, where, **settings):
    """One job falls asleep by hand, another takes most of the device, and the first goes on."""
    before = device.free()
    with Job(gib, **ON, **settings) as job:
        digests = [job.begins().do(1)["digest"]]
        held = before - device.free()
        begin = time.monotonic()
        said = bfcstat("sleep", str(job.process.pid))
        took = time.monotonic() - begin
        asleep = before - device.free()
        with device.filled(2 * GIB):
            pass
        woken = job.do(1)
        digests.append(woken["digest"])
        found[where] = {"held": held, "left asleep": asleep, "fall, s": round(took, 3), "said": said,
                        "wake and a round, s": woken["first"], "a round, s": job.do(1)["first"]}
        if digests != native:
            found["wrong"].append(f"{where}: contents are not as natively")
        if status := job.end():
            found["wrong"].append(f"{where}: exit status {status}")


def take_turns(found, device, gib, native):
    """With room for one and a half, two work at once."""
    with device.filled((gib + gib // 2 + 2) * GIB), Job(gib, **ON, **TURNS) as one, Job(gib, **ON, **TURNS) as other:
        begin = time.monotonic()
        for job in one, other:
            job.begins().begin(TURN_ROUNDS)
        answers = [job.answer() for job in (one, other)]
        falls = [json.loads(bfcstat("--json", str(job.process.pid)))["sleep"].get("falls") for job in (one, other)]
        statuses = [job.end() for job in (one, other)]
        found["turns"] = {"seconds": round(time.monotonic() - begin, 3), "each": [one["seconds"] for one in answers],
                          "falls": falls}
    if any(answer["digest"] != native for answer in answers) or any(statuses):
        found["wrong"].append(f"turns: contents are not as natively, or exit statuses {statuses}")


def natively(gib, *all_rounds):
    with Job(gib) as job:
        job.begins()
        answers = [job.do(rounds) for rounds in all_rounds]
        job.end()
    return [answer["digest"] for answer in answers], answers[0]["seconds"]


def main():
    found, device = {"wrong": []}, Device()
    large = max(1, min(device.free() // GIB // 2, 24))

    def to_memory():
        falls_and_wakes(found, device, large, natively(large, 1, 1)[0], "to memory")

    def to_a_folder():
        falls_and_wakes(found, device, 4, natively(4, 1, 1)[0], "to a folder", BFC_SLEEP_TO=FOLDER)

    def turns():
        alone, found["alone, s"] = natively(4, TURN_ROUNDS)
        take_turns(found, device, 4, alone[0])

    for step in to_memory, turns, to_a_folder:
        begin = time.monotonic()
        try:
            step()
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as problem:
            found["wrong"].append(step.__name__ + ": " + " ".join(str(problem).split()))
        print(step.__name__, round(time.monotonic() - begin, 1), "s", file=sys.stderr, flush=True)
    print(json.dumps(found))


main()
