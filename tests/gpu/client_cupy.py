"""CuPy without its own pool: each array is a cudaMalloc."""
import client

STATE = {}


def start():
    import cupy

    cupy.cuda.set_allocator(None)
    cupy.cuda.set_pinned_memory_allocator(None)
    STATE["cupy"] = cupy
    work(1)


def work(rounds):
    cupy = STATE["cupy"]
    total = cupy.zeros((64,), cupy.int64)
    for number in range(rounds):
        values = cupy.arange(1000 + number * 7919 % 200000, dtype=cupy.int64)
        total += (values * 3 + number).sum() + cupy.sort(values[::-1] % 1013)[:64]
    return cupy.asnumpy(total).tobytes()


client.run("cupy", start, work, 400)
