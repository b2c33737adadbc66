"""PyCUDA: arithmetic on arrays, each result an allocation; then sines by a kernel of our own, each into a new array, as
in PyCUDA's example of what speed is to be had. CLIENT_POOL=own: with PyCUDA's pool."""
import os

import client

STATE = {}


def start():
    import numpy
    import pycuda.autoinit  # noqa: F401
    from pycuda import cumath, driver, elementwise, gpuarray, tools

    own = os.environ.get("CLIENT_POOL") == "own"
    allocate = tools.DeviceMemoryPool().allocate if own else driver.mem_alloc
    sine = elementwise.ElementwiseKernel("float *to, float *from", "to[i] = sinf(from[i])", "sine")
    STATE.update(sine=sine, numpy=numpy, cumath=cumath, gpuarray=gpuarray, allocate=allocate)
    work(1)


def work(rounds):
    numpy, results = STATE["numpy"], []
    for number in range(rounds):
        values = numpy.linspace(0, 1, 10000 + number * 7919 % 500000, dtype=numpy.float32)
        array = STATE["gpuarray"].to_gpu(values, allocator=STATE["allocate"])
        for _ in range(10):
            array = STATE["cumath"].sin(array) + array * 2
        for _ in range(10):
            there = STATE["gpuarray"].empty_like(array)
            STATE["sine"](there, array)
            array = there
        results.append(array.get().tobytes())
    return b"".join(results)


client.run("pycuda", start, work, 100)
