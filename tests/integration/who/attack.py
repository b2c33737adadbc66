"""Allocates in the corners of CPython, with and without the GIL, and ends with threads under way."""
import asyncio
import ctypes
import gc
import os
import signal
import sys
import threading
import time

cuda, keeps_lock = ctypes.CDLL("libcuda.so.1"), ctypes.PyDLL("libcuda.so.1")
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
cuda.cuCtxSetCurrent(context)


def take(library):
    pointer = ctypes.c_uint64()
    assert library.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(4096)) == 0
    assert library.cuMemFree_v2(pointer) == 0


def both():
    take(cuda)
    take(keeps_lock)


def recurse(depth):
    if depth:
        recurse(depth - 1)
    else:
        both()


def generate():
    while True:
        both()
        yield


async def await_deep(depth):
    both()
    await asyncio.sleep(0)
    if depth:
        await await_deep(depth - 1)


async def await_many():
    await asyncio.gather(*[await_deep(10) for _ in range(20)])


class Circle:
    def __init__(self):
        self.itself = self

    def __del__(self):
        both()


def frames():
    sys.setrecursionlimit(20000)
    recurse(5000)
    generator = generate()
    for _ in range(100):
        next(generator)
    asyncio.run(await_many())
    for _ in range(100):
        Circle()
    gc.collect()
    sorted([3, 1, 2], key=lambda one: both() or one)
    for i in range(200):
        exec(compile(f"def \u0444{i}():\n    both()\n\u0444{i}()", f"\u0444{i}", "exec"), {"both": both})


def exceptions_and_tracing():
    def trace(*_):
        return trace
    sys.settrace(trace)
    both()
    sys.settrace(None)
    sys.setprofile(lambda *_: None)
    both()
    sys.setprofile(None)
    try:
        raise KeyError
    except KeyError:
        both()
    finally:
        both()


def signals():
    signal.signal(signal.SIGALRM, lambda *_: both())
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    for _ in range(1000):
        both()
    signal.setitimer(signal.ITIMER_REAL, 0)


def greenlets():
    try:
        from greenlet import getcurrent, greenlet
    except ImportError:
        return

    def run(depth):
        both()
        if depth:
            greenlet(run).switch(depth - 1)
        getcurrent().parent.switch()
        both()

    def switch():
        cuda.cuCtxSetCurrent(context)
        made = [greenlet(run) for _ in range(20)]
        for one in made:
            one.switch(5)
        for one in made:
            one.switch()
    switch()
    in_threads(switch, 4)


def in_threads(run, count):
    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


INSIDE = f"""
import ctypes
cuda, keeps_lock = ctypes.CDLL("libcuda.so.1"), ctypes.PyDLL("libcuda.so.1")
cuda.cuCtxSetCurrent(ctypes.c_void_p({context.value}))
pointer = ctypes.c_uint64()
def take():
    for library in (cuda, keeps_lock) * 50:
        assert library.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(4096)) == 0
        assert library.cuMemFree_v2(pointer) == 0
take()
"""


def sub_interpreters():
    try:
        if sys.version_info >= (3, 13):
            import _interpreters as interpreters
        else:
            import _xxsubinterpreters as interpreters
    except ImportError:
        return
    options = {True: ["legacy"], False: []}[sys.version_info >= (3, 13)]
    named = {"isolated": False} if sys.version_info < (3, 13) else {}

    def run():
        one = interpreters.create(*options, **named)
        assert not interpreters.run_string(one, INSIDE)
        interpreters.destroy(one)
    run()
    in_threads(run, 1)
    both()


def take_for_ever():
    cuda.cuCtxSetCurrent(context)
    while True:
        take(cuda)


for part in frames, exceptions_and_tracing, signals, greenlets, sub_interpreters:
    part()
if os.fork() == 0:
    os._exit(0)
os.wait()
for _ in range(3):
    threading.Thread(target=take_for_ever, daemon=True).start()
time.sleep(0.02)
print("ready", flush=True)
