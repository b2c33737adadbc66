"""NVIDIA's Python bindings of the driver (cuda.bindings, which also Numba, CuPy and others now use): device
memory allocated, written, read back and freed. Exit status 77 where they are not installed."""
import sys

try:
    from cuda.bindings import driver
except ImportError as problem:
    print(problem)
    sys.exit(77)


def must(answer):
    assert int(answer[0]) == 0, answer
    return answer[1] if len(answer) == 2 else answer[1:]


must(driver.cuInit(0))
must(driver.cuCtxSetCurrent(must(driver.cuDevicePrimaryCtxRetain(must(driver.cuDeviceGet(0))))))
total = 0
for number in range(200):
    size = 1 + number * 7919 % 50000
    block, text = must(driver.cuMemAlloc(size)), bytearray(size)
    must(driver.cuMemsetD8(block, number % 256, size))
    must(driver.cuMemcpyDtoH(text, block, size))
    assert text == bytes([number % 256]) * size
    total += sum(text)
    must(driver.cuMemFree(block))
    assert int(driver.cuMemFree(block)[0]) != 0
print(total)
