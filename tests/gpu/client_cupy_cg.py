"""CuPy: conjugate gradients for Poisson's equation, each array a cudaMalloc. CLIENT_POOL=own: with CuPy's pool."""
import os

import client

SIDE = int(os.environ.get("CLIENT_SIDE", 512))
STATE = {}


def start():
    import cupy
    from cupyx.scipy import sparse

    if os.environ.get("CLIENT_POOL") != "own":
        cupy.cuda.set_allocator(None)
        cupy.cuda.set_pinned_memory_allocator(None)
    ones = cupy.ones(SIDE)
    line = sparse.diags([-ones, 2 * ones, -ones], [-1, 0, 1], shape=(SIDE, SIDE))
    plane = (sparse.kron(line, sparse.eye(SIDE)) + sparse.kron(sparse.eye(SIDE), line)).tocsr()
    STATE.update(cupy=cupy, plane=plane)
    work(1)


def solve(right, steps):
    """Fixed in number, so that rounding does not decide how many there are."""
    cupy, plane = STATE["cupy"], STATE["plane"]
    x, rest = cupy.zeros_like(right), right.copy()
    direction, square = rest.copy(), rest @ rest
    for _ in range(steps):
        image = plane @ direction
        length = square / (direction @ image)
        x, rest = x + length * direction, rest - length * image
        direction, square = rest + (rest @ rest) / square * direction, rest @ rest
    return x


def work(rounds):
    cupy = STATE["cupy"]
    total = cupy.zeros(SIDE * SIDE)
    for number in range(rounds):
        total += solve(cupy.sin(cupy.arange(SIDE * SIDE) * (number + 1.0)), 100)
    return cupy.asnumpy(total.round(6)).tobytes()


client.run("cupy_cg", start, work, 8)
