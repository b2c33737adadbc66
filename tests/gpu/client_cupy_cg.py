"""CuPy: its own conjugate gradients for Poisson's equation, each array a cudaMalloc. The matrix is a function, since the
sums of cuSPARSE's products have no fixed order. CLIENT_POOL=own: with CuPy's pool."""
import os

import client

SIDE = int(os.environ.get("CLIENT_SIDE", 512))
STATE = {}


def start():
    import cupy
    from cupyx.scipy.sparse import linalg

    if os.environ.get("CLIENT_POOL") != "own":
        cupy.cuda.set_allocator(None)
        cupy.cuda.set_pinned_memory_allocator(None)
    STATE.update(cupy=cupy, linalg=linalg)
    work(1)


def poisson(x):
    """Four times each point, less its neighbours."""
    image = 4 * x
    image[1:] -= x[:-1]
    image[:-1] -= x[1:]
    image[:, 1:] -= x[:, :-1]
    image[:, :-1] -= x[:, 1:]
    return image


def solve(right):
    """In at most a hundred steps."""
    linalg = STATE["linalg"]
    operator = linalg.LinearOperator((SIDE * SIDE,) * 2, dtype=right.dtype,
                                     matvec=lambda x: poisson(x.reshape(SIDE, SIDE)).reshape(-1))
    return linalg.cg(operator, right, maxiter=100)[0]


def work(rounds):
    cupy = STATE["cupy"]
    total = cupy.zeros(SIDE * SIDE)
    for number in range(rounds):
        right = cupy.sin(cupy.arange(SIDE * SIDE) * (number + 1.0))
        total += solve(right)
    return cupy.asnumpy(total).tobytes()


client.run("cupy_cg", start, work, 8)
