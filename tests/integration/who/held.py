"""Holds device memory allocated at known lines, until its standard input ends."""
import ctypes
import sys
import threading

# CDLL releases the GIL around calls, as most programs do; PyDLL keeps it.
cuda = getattr(ctypes, sys.argv[1])("libcuda.so.1")
context = ctypes.c_void_p()


def begin():
    if cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0):
        sys.exit(1)
    cuda.cuCtxSetCurrent(context)


def allocate(size):
    pointer = ctypes.c_uint64()
    if cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)):
        sys.exit(1)
    return pointer


class Loader:
    def load(self):
        for _ in range(2):
            allocate(32 << 20)  # line: load


def work():
    cuda.cuCtxSetCurrent(context)
    Loader().load()  # line: work


def generate():
    yield allocate(16 << 20)  # line: generate


begin()
thread = threading.Thread(target=work)
thread.start()
thread.join()
held = list(generate())
try:
    raise ValueError
except ValueError:
    allocate(8 << 20)  # line: except
print("ready", flush=True)
sys.stdin.read()
