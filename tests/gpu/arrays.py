"""Numba's device arrays, without kernels, which the stand-in GPU cannot run. Exit status 77 where Numba is
not installed."""
import sys

try:
    import numpy
    from numba import cuda
except ImportError as problem:
    print(problem)
    sys.exit(77)

total = 0
for number in range(100):
    values = numpy.arange(1000 + number * 7919 % 50000, dtype=numpy.int64)
    one = cuda.to_device(values)
    other = cuda.device_array_like(one)
    other.copy_to_device(one)
    total += int(other.copy_to_host().sum())
    assert total >= values.sum()
    del one, other
print(total)
