"""The same by ctypes: blocks that come, are used in one stream and go.
usage: one_stream.py libcuda.so.1|libcudart.so.13 ROUNDS"""

import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
rounds = int(sys.argv[2])


def must(code):
    if code:
        sys.exit(f"code {code}")


def play_driver(size):
    block = ctypes.c_uint64()
    must(library.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(size)))
    must(library.cuMemsetD8Async(block, ctypes.c_ubyte(1), ctypes.c_size_t(size), None))
    must(library.cuMemFree_v2(block))


def play_runtime(size):
    block = ctypes.c_void_p()
    must(library.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(size)))
    must(library.cudaMemsetAsync(block, 1, ctypes.c_size_t(size), None))
    must(library.cudaFree(block))


if "cudart" in sys.argv[1]:
    play = play_runtime
else:
    play = play_driver
    context = ctypes.c_void_p()
    must(library.cuInit(0))
    must(library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    must(library.cuCtxSetCurrent(context))
for number in range(rounds):
    play((1 + number % 5) * 100000)
