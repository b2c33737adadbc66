"""Arrays in CuPy that come and go, their contents read back; with its pool, without it
(STEPS_POOL=off), or with the driver's (STEPS_POOL=async). No kernel of its own runs."""
import os

import cupy
import numpy

POOL = os.environ.get("STEPS_POOL", "on")
if POOL == "off":
    cupy.cuda.set_allocator(None)
elif POOL == "async":
    cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
made = numpy.random.default_rng(1)
held = []
streams = [cupy.cuda.Stream(non_blocking=blocks) for blocks in (False, True)]
for step in range(60):
    host = made.standard_normal((64 + step * 37 % 200, 1024), dtype=numpy.float32)
    with streams[step % 2] as stream:
        held.append((host, cupy.empty_like(host)))
        held[-1][1].set(host)
        stream.synchronize()
    if step % 3:
        del held[step % len(held)]
    same = all(numpy.array_equal(here, there.get()) for here, there in held[-3:])
    print(step, len(held), "right" if same else "wrong")
if POOL == "on":
    pool = cupy.get_default_memory_pool()
    print("pool", pool.used_bytes(), pool.total_bytes(), pool.n_free_blocks())
