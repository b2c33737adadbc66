"""Threads with a stream each that allocate, write, copy, launch graphs, read and free at random, with pauses in
which the job falls asleep; every byte that is read is compared. A call that is refused is made again.
usage: rounds.py LIBCUDA SEED ROUNDS [BFCSTAT]"""

import ctypes
import json
import os
import random
import subprocess
import sys
import threading
import time

import job
from job import cuda, must, size_t, u64

SEED, ROUNDS, BFCSTAT = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
THREADS, BLOCKS, LARGEST = 3, 6, 3 << 20
TRIES = 200
wrong = []
over = threading.Event()
go = threading.Event()  # not set: all threads pause, so that the job falls asleep


def made(call):
    """Makes a call until it is not refused; the stand-in refuses each by itself."""
    for _ in range(TRIES):
        if (code := call()) == 0:
            return
    raise RuntimeError(f"refused with code {code} each time")


class Player:
    def __init__(self, number):
        self.dice = random.Random(f"{SEED} {number}")
        self.blocks = []
        made(self.make_stream)

    def make_stream(self):
        self.stream = ctypes.c_void_p()
        return cuda.cuStreamCreate(ctypes.byref(self.stream), self.dice.choice((0, 1)))

    def allocate(self):
        pointer, size = u64(), self.dice.choice((self.dice.randint(1, 5000), self.dice.randint(1, LARGEST)))
        if cuda.cuMemAlloc_v2(ctypes.byref(pointer), size_t(size)) == 0:
            self.blocks.append([pointer.value, size, None])
            self.fill(self.blocks[-1])

    def fill(self, block):
        value = self.dice.randrange(256)
        made(lambda: cuda.cuMemsetD8Async(u64(block[0]), ctypes.c_ubyte(value), size_t(block[1]), self.stream))
        block[2] = value

    def fill_by_graph(self, block):
        value = self.dice.randrange(256)
        graph, run = ctypes.c_void_p(), ctypes.c_void_p()
        one = ctypes.c_void_p()
        made(lambda: cuda.cuStreamCreate(ctypes.byref(one), 1))
        made(lambda: cuda.cuStreamBeginCapture_v2(one, 2))
        must(cuda.cuMemsetD8Async(u64(block[0]), ctypes.c_ubyte(value), size_t(block[1]), one))
        must(cuda.cuStreamEndCapture(one, ctypes.byref(graph)))
        made(lambda: cuda.cuGraphInstantiateWithFlags(ctypes.byref(run), graph, u64(0)))
        self.pause()
        made(lambda: cuda.cuGraphLaunch(run, self.stream))
        made(lambda: cuda.cuStreamSynchronize(self.stream))
        cuda.cuGraphExecDestroy(run)
        cuda.cuGraphDestroy(graph)
        cuda.cuStreamDestroy_v2(one)
        block[2] = value

    def copy(self, block):
        other = self.dice.choice(self.blocks)
        if other is not block and other[1] >= block[1]:
            made(lambda: cuda.cuMemcpyDtoDAsync_v2(u64(block[0]), u64(other[0]), size_t(block[1]), self.stream))
            block[2] = other[2]

    def check(self, block):
        made(lambda: cuda.cuStreamSynchronize(self.stream))
        data = ctypes.create_string_buffer(block[1])
        made(lambda: cuda.cuMemcpyDtoH_v2(data, u64(block[0]), size_t(block[1])))
        if data.raw != bytes([block[2]]) * block[1]:
            wrong.append(block)

    def free(self, block):
        self.check(block)
        self.blocks.remove(block)
        made(lambda: cuda.cuMemFree_v2(u64(block[0])))

    def ask(self, block):
        kind = ctypes.c_uint()
        made(lambda: cuda.cuPointerGetAttribute(ctypes.byref(kind), 2, u64(block[0])))
        if kind.value != 2:
            wrong.append(block)

    def pause(self):
        time.sleep(self.dice.choice((0, 0, 0, 0.008)))
        go.wait()

    def play(self):
        must(cuda.cuCtxSetCurrent(job.context))
        while not over.is_set() and not wrong:
            if len(self.blocks) < BLOCKS:
                self.allocate()
            if self.blocks:
                self.dice.choice((self.fill, self.fill, self.copy, self.check, self.free, self.ask,
                                  self.fill_by_graph))(self.dice.choice(self.blocks))
            self.pause()
        for block in self.blocks:
            self.check(block)


def sleeps():
    clean = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    shown = subprocess.run([BFCSTAT, "--json", str(os.getpid())], capture_output=True, text=True, env=clean)
    return json.loads(shown.stdout)["sleep"]


failed = []


def run(player):
    try:
        player.play()
    except BaseException as error:
        failed.append(error)
        over.set()


players = [Player(number) for number in range(THREADS)]
threads = [threading.Thread(target=run, args=(player,)) for player in players]
for thread in threads:
    thread.start()
dice = random.Random(SEED)
while not over.is_set() and not wrong and sleeps()["falls"] < ROUNDS:
    for _ in range(10):
        go.set()
        time.sleep(dice.choice((0.005, 0.01, 0.02)))
        go.clear()
        time.sleep(dice.choice((0.005, 0.01, 0.02, 0.03)))
over.set()
go.set()
for thread in threads:
    thread.join()
if wrong or failed:
    sys.exit(f"seed {SEED}: wrong {wrong} failed {failed}")
shown = sleeps()
print(f"seed {SEED}: fell asleep {shown['falls']} times, woke {shown['wakes']} times")
