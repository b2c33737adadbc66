"""Threads with two streams each that allocate, write, copy, launch kernels and graphs, export, read and free at
random, with pauses in which the job falls asleep; every byte that is read is compared. A call that is refused is
made again. With `loop` the threads keep their blocks, and one more runs a loop of steps with the same allocations,
as a training does; if BFC_RECORD is set, that alone, and no more than a dozen steps, to make a plan of.
usage: rounds.py LIBCUDA SEED ROUNDS BFCSTAT KERNELS [loop]"""

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

SEED, ROUNDS, BFCSTAT, KERNELS, LOOPS = int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:6], "loop" in sys.argv[6:]
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


def load_kernel(name):
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    with open(KERNELS, "rb") as file:
        text = file.read() + b"\0"
    made(lambda: cuda.cuModuleLoadData(ctypes.byref(module), text))
    made(lambda: cuda.cuModuleGetFunction(ctypes.byref(function), module, name))
    return function


def make(call, *arguments):
    handle = ctypes.c_void_p()
    made(lambda: call(ctypes.byref(handle), *arguments))
    return handle


def launch_fill(block, value, stream):
    values = (u64(block[0]), u64(block[1]), ctypes.c_uint(value))
    places = (ctypes.c_void_p * 3)(*(ctypes.addressof(one) for one in values))
    return cuda.cuLaunchKernel(fill_kernel, 4, 1, 1, 64, 1, 1, 0, stream, places, None)


class Player:
    """A block is its address, its size, what fills it, and the graph that fills it with a value of its own, if any."""

    def __init__(self, number):
        self.dice = random.Random(f"{SEED} {number}")
        self.blocks = []
        self.exported = False
        self.streams = [make(cuda.cuStreamCreate, flags) for flags in (0, 1)]
        self.event = make(cuda.cuEventCreate, 2)
        self.stream = self.streams[0]

    def change_stream(self, block):
        """What follows is ordered after what went before, by an event or by the host."""
        other = self.streams[self.stream is self.streams[0]]
        if self.dice.random() < 0.5:
            made(lambda: cuda.cuEventRecord(self.event, self.stream))
            made(lambda: cuda.cuStreamWaitEvent(other, self.event, 0))
        else:
            made(lambda: cuda.cuStreamSynchronize(self.stream))
        self.stream = other

    def allocate(self):
        pointer, size = u64(), self.dice.choice((self.dice.randint(1, 5000), self.dice.randint(1, LARGEST)))
        if cuda.cuMemAlloc_v2(ctypes.byref(pointer), size_t(size)) == 0:
            self.blocks.append([pointer.value, size, None, None])
            self.fill(self.blocks[-1])

    def fill(self, block):
        value = self.dice.randrange(256)
        made(lambda: cuda.cuMemsetD8Async(u64(block[0]), ctypes.c_ubyte(value), size_t(block[1]), self.stream))
        block[2] = value

    def fill_by_kernel(self, block):
        value = self.dice.randrange(256)
        made(lambda: launch_fill(block, value, self.stream))
        block[2] = value

    def capture(self, block, value):
        one = make(cuda.cuStreamCreate, 1)
        made(lambda: cuda.cuStreamBeginCapture_v2(one, 2))
        for filled in (255 - value, value):
            if self.dice.random() < 0.5:
                made(lambda: launch_fill(block, filled, one))
            else:
                must(cuda.cuMemsetD8Async(u64(block[0]), ctypes.c_ubyte(filled), size_t(block[1]), one))
        graph = ctypes.c_void_p()
        must(cuda.cuStreamEndCapture(one, ctypes.byref(graph)))
        run = make(cuda.cuGraphInstantiateWithFlags, graph, u64(0))
        cuda.cuGraphDestroy(graph)
        cuda.cuStreamDestroy_v2(one)
        return run, value

    def fill_by_graph(self, block):
        """A graph outlasts many sleeps: it is launched again and again as long as its block is there."""
        if not block[3]:
            block[3] = self.capture(block, self.dice.randrange(256))
            self.pause()
        run, value = block[3]
        made(lambda: cuda.cuGraphLaunch(run, self.stream))
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
        if LOOPS:
            return
        self.check(block)
        self.blocks.remove(block)
        if block[3]:
            cuda.cuGraphExecDestroy(block[3][0])
        made(lambda: cuda.cuMemFree_v2(u64(block[0])))

    def ask(self, block):
        kind = ctypes.c_uint()
        made(lambda: cuda.cuPointerGetAttribute(ctypes.byref(kind), 2, u64(block[0])))
        if kind.value != 2:
            wrong.append(block)

    def export(self, block):
        """What is exported stays on the device with all of its page, and is as good as the rest."""
        if not self.exported and not LOOPS:
            self.exported = True
            cuda.cuIpcGetMemHandle(ctypes.create_string_buffer(64), u64(block[0]))

    def pause(self):
        time.sleep(self.dice.choice((0, 0, 0, 0.008)))
        go.wait()

    def play(self):
        must(cuda.cuCtxSetCurrent(job.context))
        moves = (self.fill, self.fill_by_kernel, self.copy, self.check, self.free, self.ask, self.export,
                 self.fill_by_graph, self.fill_by_graph, self.change_stream)
        while not over.is_set() and not wrong:
            if len(self.blocks) < BLOCKS:
                self.allocate()
            if self.blocks:
                self.dice.choice(moves)(self.dice.choice(self.blocks))
            self.pause()
        for block in self.blocks:
            self.check(block)


class Looper(Player):
    SIZES = (1 << 20, 300_000, 2 << 20, 70_000, 3 << 20, 5000, 1 << 20)

    def step(self):
        held = []
        for size in self.SIZES:
            pointer = u64()
            made(lambda: cuda.cuMemAlloc_v2(ctypes.byref(pointer), size_t(size)))
            held.append([pointer.value, size, None, None])
            self.dice.choice((self.fill, self.fill_by_kernel))(held[-1])
            self.pause()
        for block in reversed(held):
            self.check(block)
            made(lambda: cuda.cuMemFree_v2(u64(block[0])))

    def play(self):
        must(cuda.cuCtxSetCurrent(job.context))
        while not over.is_set() and not wrong:
            self.step()


def shown():
    clean = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    said = subprocess.run([BFCSTAT, "--json", str(os.getpid())], capture_output=True, text=True, env=clean)
    return json.loads(said.stdout)


failed = []


def run(player):
    try:
        player.play()
    except BaseException as error:
        failed.append(repr(error))
        over.set()


def followed():
    return sum(pool["plan"]["followed"] for pool in shown()["pools"] if pool["plan"])


def begin_loop(looper):
    """Runs the loop without pauses until the plan is followed."""
    go.set()
    steps = 0
    while not followed() and steps < 12:
        looper.step()
        steps += 1
    go.clear()
    if "BFC_RECORD" in os.environ:
        sys.exit()
    if wrong or not followed():
        sys.exit(f"seed {SEED}: wrong {wrong}, followed {followed()}")


fill_kernel = load_kernel(b"fill")
players = [Player(number) for number in range(THREADS)] + [Looper(THREADS)] * LOOPS
if LOOPS:
    for player in players[:THREADS]:
        while len(player.blocks) < BLOCKS:
            player.allocate()
    begin_loop(players[THREADS])


def pace():
    """Pauses about as long as a fall takes, so that some are over and some are broken off. It ends early where the
    job cannot sleep any more: the pool takes regions in place of pages that were refused."""
    dice = random.Random(SEED)
    told, slept = shown()["sleep"], time.monotonic()
    while not over.is_set() and not wrong and told["falls"] < ROUNDS and time.monotonic() < slept + 20:
        for _ in range(10):
            go.set()
            time.sleep(dice.choice((0.005, 0.01, 0.02)))
            go.clear()
            time.sleep(0.005 + dice.random() * min(1, max(0.02, 2.5e-9 * told["fall_ns"])))
        before, told = told, shown()["sleep"]
        slept = time.monotonic() if told["falls"] > before["falls"] else slept
    over.set()
    go.set()


# A plan is followed by the thread that began it.
threads = [threading.Thread(target=run, args=(player,)) for player in players[:THREADS]] + [threading.Thread(target=pace)]
for thread in threads:
    thread.start()
print("plays", flush=True)
for looper in players[THREADS:]:
    run(looper)
for thread in threads:
    thread.join()
if wrong or failed:
    sys.exit(f"seed {SEED}: wrong {wrong} failed {failed}")
told = shown()["sleep"]
print(f"seed {SEED}: fell asleep {told['falls']} times, woke {told['wakes']} times, {followed()} allocations by plan")
