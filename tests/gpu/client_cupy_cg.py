"""CuPy: conjugate gradients for Poisson's equation, each array a cudaMalloc. CLIENT_POOL=own: with CuPy's pool."""
import os

import client

SIDE = int(os.environ.get("CLIENT_SIDE", 512))
STATE = {}


def start():
    import cupy

    if os.environ.get("CLIENT_POOL") != "own":
        cupy.cuda.set_allocator(None)
        cupy.cuda.set_pinned_memory_allocator(None)
    STATE["cupy"] = cupy
    work(1)


def poisson(x):
    """Four times each point, less its neighbours."""
    image = 4 * x
    image[1:] -= x[:-1]
    image[:-1] -= x[1:]
    image[:, 1:] -= x[:, :-1]
    image[:, :-1] -= x[:, 1:]
    return image


def solve(right, steps):
    """Fixed in number, so that rounding does not decide how many there are."""
    x, rest = STATE["cupy"].zeros_like(right), right.copy()
    direction, square = rest.copy(), (rest * rest).sum()
    for _ in range(steps):
        image = poisson(direction)
        length = square / (direction * image).sum()
        x, rest = x + length * direction, rest - length * image
        before, square = square, (rest * rest).sum()
        direction = rest + square / before * direction
    return x


def work(rounds):
    cupy = STATE["cupy"]
    total = cupy.zeros((SIDE, SIDE))
    for number in range(rounds):
        right = cupy.sin(cupy.arange(SIDE * SIDE) * (number + 1.0)).reshape(SIDE, SIDE)
        total += solve(right, 100)
    return cupy.asnumpy(total).tobytes()


client.run("cupy_cg", start, work, 8)
