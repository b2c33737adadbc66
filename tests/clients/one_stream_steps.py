"""Steps of a program with one stream, so many as it is told: Numba's arrays, CuPy's without its pool, or training in
PyTorch without its cache.
usage: one_stream_steps.py numba|cupy|torch STEPS"""
import sys

STEPS = int(sys.argv[2])


def play_numba():
    import numpy
    from numba import cuda
    for step in range(STEPS):
        device = cuda.to_device(numpy.full(1000 * (1 + step % 5), step, dtype=numpy.int32))
        cuda.device_array_like(device).copy_to_device(device)


def play_cupy():
    import cupy
    cupy.cuda.set_allocator(None)
    for step in range(STEPS):
        array = cupy.empty(1000 * (1 + step % 5), dtype=cupy.float32)
        array.fill(step)
        cupy.add(array, array)


def play_torch():
    """By PyTorch's own kernels: the libraries it brings along do not start over the stand-in."""
    import torch
    weights = torch.ones(64, device="cuda", requires_grad=True)
    for step in range(STEPS):
        batch = torch.ones(16 * (1 + step % 5), 64, device="cuda")
        torch.relu(batch * weights + step).sum().backward()
        with torch.no_grad():
            weights -= 0.1 * weights.grad
        weights.grad = None


{"numba": play_numba, "cupy": play_cupy, "torch": play_torch}[sys.argv[1]]()
print("played")
