"""ctypes: on a library handle, or on the process. usage: ctypes_route.py handle|process"""
import ctypes
import sys

libcuda = ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
calls = ctypes.CDLL(None) if sys.argv[1] == "process" else libcuda
context = ctypes.c_void_p()
assert libcuda.cuInit(0) == 0
assert libcuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert libcuda.cuCtxSetCurrent(context) == 0

u64, size = ctypes.c_uint64, ctypes.c_size_t
for i in range(200):
    pointer, text = u64(), ctypes.create_string_buffer(64)
    assert calls.cuMemAlloc_v2(ctypes.byref(pointer), size(1000 + i)) == 0
    assert calls.cuMemsetD8_v2(pointer, ctypes.c_ubyte(i), size(1000 + i)) == 0
    assert calls.cuMemcpyDtoH_v2(text, pointer, size(64)) == 0
    assert text.raw == bytes([i]) * 64
    assert calls.cuMemFree_v2(pointer) == 0
print("free again", calls.cuMemFree_v2(pointer))
try:
    calls.cuNoSuchCall
except AttributeError as error:
    print(error)
