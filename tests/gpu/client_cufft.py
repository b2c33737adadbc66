"""cuFFT, as CuPy uses it: transforms forth and back, each with a plan and memory of its own."""
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
    results = []
    for number in range(rounds):
        values = cupy.arange(1024 + 64 * (number % 7), dtype=cupy.float32) % 13
        results.append(cupy.asnumpy(cupy.fft.ifft(cupy.fft.fft(values)).real).tobytes())
    return b"".join(results)


client.run("cufft", start, work, 200)
