"""Allocates as a training loop does, by functions of known names: weights, which stay; activations, which are freed
in each step; a cache, which leaks. Prints its PID and waits for the end of standard input."""
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


train(int(sys.argv[1]))
print(os.getpid(), flush=True)
sys.stdin.read()
