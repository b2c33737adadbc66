"""Allocates and frees, some thousand calls a second, until a line comes; then one allocation fails in
the midst of them; then it waits for the end of standard input. Prints the last size before the failure."""
import ctypes
import select
import sys
import time

calls = ctypes.CDLL("libcuda.so.1")
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
assert calls.cuInit(0) == 0
assert calls.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert calls.cuCtxSetCurrent(context) == 0
size = 0


def pair():
    global size
    size += 1
    assert calls.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)) == 0
    assert calls.cuMemFree_v2(pointer) == 0


held = ctypes.c_uint64()
assert calls.cuMemAlloc_v2(ctypes.byref(held), ctypes.c_size_t(300 << 20)) == 0
pair()
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    pair()
    time.sleep(0.0005)
sys.stdin.readline()
for _ in range(200):
    pair()
before = size
assert calls.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(900 << 20)) == 2  # out of memory
for _ in range(200):
    pair()
print(before, flush=True)
sys.stdin.read()
