"""Numba: ctypes to the driver, arrays on the device, kernels compiled as the program runs."""
import client

STATE = {}


def start():
    global cuda  # where Numba's simulator, which is for trying this without a GPU, looks for it
    import numpy
    from numba import cuda

    @cuda.jit
    def add(out, one, other):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = one[i] + 3 * other[i]

    STATE.update(numpy=numpy, add=add)
    work(1)


def work(rounds):
    numpy = STATE["numpy"]
    sums = []
    for number in range(rounds):
        size = 1000 + number * 7919 % 100000
        one = cuda.to_device(numpy.arange(size, dtype=numpy.int64))
        out = cuda.device_array(size, numpy.int64)
        STATE["add"][(size + 255) // 256, 256](out, one, one)
        sums.append(int(out.copy_to_host().sum()))
    return repr(sums).encode()


client.run("numba", start, work, 300)
