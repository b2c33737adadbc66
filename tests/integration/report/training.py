"""Allocates as a training loop does, by functions of known names: weights, which stay; activations, which are freed
in each step; a cache, which leaks. Prints its PID, and then does what the lines of standard input say: "train STEPS",
"holes BLOCKS" (of 256 KiB, of which every other one is freed), "free", "fail BYTES"; it answers each with a line."""
import ctypes
import os
import random
import sys

calls = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
assert calls.cuInit(0) == 0
assert calls.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert calls.cuCtxSetCurrent(context) == 0


def allocate(size):
    pointer = ctypes.c_uint64()
    assert calls.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)) == 0
    return pointer


def weights():
    return [allocate(32 << 20) for _ in range(4)]


def activations(draw):
    return [allocate(draw.randrange(1, 4 << 20)) for _ in range(20)]


def cache():
    return allocate(300000)


def train(steps):
    draw = random.Random(1)
    held = weights()
    for _ in range(steps):
        step = activations(draw)
        draw.shuffle(step)
        held.append(cache())
        for pointer in step:
            assert calls.cuMemFree_v2(pointer) == 0
    return held


def holes(blocks):
    pointers = [allocate(256 << 10) for _ in range(blocks)]
    for pointer in pointers[::2]:
        assert calls.cuMemFree_v2(pointer) == 0
    return pointers[1::2]


def free():
    for pointer in held:
        assert calls.cuMemFree_v2(pointer) == 0
    return []


def fail(size):
    assert calls.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(size)) == 2  # out of memory
    return held


held = train(int(sys.argv[1]))
print(os.getpid(), flush=True)
for line in sys.stdin:
    name, *arguments = line.split()
    held = {"train": train, "holes": holes, "free": free, "fail": fail}[name](*map(int, arguments))
    print("done", flush=True)
