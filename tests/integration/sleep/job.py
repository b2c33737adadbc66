"""A job that does what it is told: each line of its input is an expression over the functions here;
the answer is its value. It reaches the driver by ctypes.
usage: job.py LIBCUDA"""

import ctypes
import os
import random
import sys
import threading

cuda = ctypes.CDLL(sys.argv[1])
u64, size_t = ctypes.c_uint64, ctypes.c_size_t
MIB = 1 << 20


def must(code):
    if code:
        raise RuntimeError(f"code {code}")


def begin(device=0):
    context = ctypes.c_void_p()
    must(cuda.cuInit(0))
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    must(cuda.cuCtxSetCurrent(context))
    return context


def allocate(size):
    pointer = u64()
    must(cuda.cuMemAlloc_v2(ctypes.byref(pointer), size_t(size)))
    return pointer.value


def free(pointer):
    return cuda.cuMemFree_v2(u64(pointer))


def fill(pointer, value, size):
    return cuda.cuMemsetD8_v2(u64(pointer), ctypes.c_ubyte(value), size_t(size))


def fill_async(pointer, value, size, stream):
    return cuda.cuMemsetD8Async(u64(pointer), ctypes.c_ubyte(value), size_t(size), stream)


def write(pointer, data):
    return cuda.cuMemcpyHtoD_v2(u64(pointer), data, size_t(len(data)))


def read(pointer, size):
    data = ctypes.create_string_buffer(size)
    code = cuda.cuMemcpyDtoH_v2(data, u64(pointer), size_t(size))
    return code or data.raw


def is_filled(pointer, value, size):
    return read(pointer, size) == bytes([value]) * size


def stream(flags=0):
    made = ctypes.c_void_p()
    must(cuda.cuStreamCreate(ctypes.byref(made), flags))
    return made


def synchronize():
    return cuda.cuCtxSynchronize()


def free_bytes():
    free_, total = size_t(), size_t()
    must(cuda.cuMemGetInfo_v2(ctypes.byref(free_), ctypes.byref(total)))
    return free_.value


def count(name):
    return cuda.sim_call_count(name.encode())


def attribute(number, pointer):
    value = u64()
    code = cuda.cuPointerGetAttribute(ctypes.byref(value), number, u64(pointer))
    return code or value.value


def at_once(*tasks):
    """Runs the tasks in a thread each, in the first context; returns their values."""
    results = [None] * len(tasks)
    together = threading.Barrier(len(tasks))

    def run(i):
        must(cuda.cuCtxSetCurrent(context))
        together.wait()
        results[i] = tasks[i]()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(tasks))]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return results


def address_range(pointer):
    start, size = u64(), size_t()
    return cuda.cuMemGetAddressRange_v2(ctypes.byref(start), ctypes.byref(size), u64(pointer)) or size.value


def export(pointer):
    return cuda.cuIpcGetMemHandle(ctypes.create_string_buffer(64), u64(pointer))


def register(pointer):
    on = ctypes.c_uint(1)
    return cuda.cuPointerSetAttribute(ctypes.byref(on), 6, u64(pointer))  # SYNC_MEMOPS


def export_range(pointer, size):
    handle = ctypes.c_int()
    return cuda.cuMemGetHandleForAddressRange(ctypes.byref(handle), u64(pointer), size_t(size), 1, u64(0))  # dma-buf


def begin_capture(stream):
    return cuda.cuStreamBeginCapture_v2(stream, 2)


def end_capture(stream):
    graph = ctypes.c_void_p()
    must(cuda.cuStreamEndCapture(stream, ctypes.byref(graph)))
    return graph


def capture(work):
    one = stream(1)
    must(begin_capture(one))
    must(work(one))
    return end_capture(one)


def instantiate(graph):
    made = ctypes.c_void_p()
    must(cuda.cuGraphInstantiateWithFlags(ctypes.byref(made), graph, u64(0)))
    return made


def launch_graph(graph, stream=None):
    return cuda.cuGraphLaunch(graph, stream)


kept = []


def call_host(stream, function):
    kept.append(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: function() and None))
    return cuda.cuLaunchHostFunc(stream, kept[-1], None)


many = []


def use_many_contexts(contexts, blocks):
    """Blocks of all sizes in contexts of two devices in turn, of which every other one is freed again."""
    dice = random.Random(contexts)
    for number in range(contexts):
        made = ctypes.c_void_p()
        if number < 2:
            made = begin(number)
        else:
            must(cuda.cuCtxCreate_v2(ctypes.byref(made), 0, number % 2))
        sizes = [dice.choice((dice.randint(1, 4096), dice.randint(1, 1 << 20), dice.randint(1, 5 << 20)))
                 for _ in range(blocks)]
        held = [(allocate(size), number * 16 + i % 16, size) for i, size in enumerate(sizes)]
        for one in held[1::2]:
            must(free(one[0]))
        for one in held[::2]:
            must(fill(*one))
        must(synchronize())
        many.append((made, held[::2]))


def many_are_intact():
    intact = True
    for made, held in many:
        must(cuda.cuCtxSetCurrent(made))
        intact = intact and all(is_filled(*one) for one in held)
    return intact


def in_child(task):
    """The status of a child that the process forks, which is the task's value."""
    child = os.fork()
    if child == 0:
        os._exit(task())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


cuda.sim_call_count.restype = ctypes.c_ulonglong
context = begin()


def do_as_told():
    print("ready", flush=True)
    for line in sys.stdin:
        try:
            try:
                answer = eval(line, globals())
            except SyntaxError:
                exec(line, globals())
                answer = None
        except RuntimeError as error:
            answer = str(error)
        print(repr(answer) if isinstance(answer, (int, str, bytes, list, tuple)) else None, flush=True)


if __name__ == "__main__":
    do_as_told()
