"""What a job of test_corners.py can do besides job.py, whose names are here too."""

NO_ARGUMENTS = [None] * 6
WATCHED = ("cuMemUnmap", "cuMemRelease", "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemHostAlloc", "cuMemFreeHost",
           "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2", "cuStreamSynchronize", "cuCtxRecordEvent", "cuStreamCreate",
           "cuStreamDestroy_v2", "cuEventQuery")


def call(name):
    """Calls a function of the driver that gets no address at all."""
    return getattr(cuda, name)(*NO_ARGUMENTS)


def allocate_pitched(width, height):
    pointer, pitch = u64(), size_t()
    must(cuda.cuMemAllocPitch_v2(ctypes.byref(pointer), ctypes.byref(pitch), size_t(width), size_t(height), 4))
    return pointer.value


class MemsetNode(ctypes.Structure):
    _fields_ = [("to", u64), ("pitch", size_t), ("value", ctypes.c_uint), ("element", ctypes.c_uint), ("width", size_t),
                ("height", size_t)]


def graph_that_sets(pointer, value, size):
    graph, node = ctypes.c_void_p(), ctypes.c_void_p()
    must(cuda.cuGraphCreate(ctypes.byref(graph), 0))
    what = MemsetNode(pointer, size, value, 1, size, 1)
    must(cuda.cuGraphAddMemsetNode(ctypes.byref(node), graph, None, size_t(0), ctypes.byref(what), context))
    return instantiate(graph)


def start(task):
    """Runs the task in a thread, in the first context; the list gets its value."""
    value = []

    def run():
        must(cuda.cuCtxSetCurrent(context))
        value.append(task())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    kept.append(thread)
    return value


def await_value(value):
    kept[-1].join()
    return value[0]


def watch(told):
    """Has a tool told of each call of the driver, before it is made, in the calling thread."""
    kept.append(ctypes.CFUNCTYPE(None, ctypes.c_char_p)(lambda name: told(name.decode())))
    cuda.sim_tool_watch(kept[-1])


in_tool = threading.local()
tool_calls = {}


def use_everything(name):
    """A tool that calls the driver whenever the library does, and must not get stuck."""
    if name not in WATCHED or getattr(in_tool, "on", False):
        return
    in_tool.on = True
    tool_calls[name] = tool_calls.get(name, 0) + 1
    free_bytes()
    for size in 512, 48 * MIB:
        made = u64()
        if cuda.cuMemAlloc_v2(ctypes.byref(made), size_t(size)) == 0:
            free(made.value)
    fill(tool_memory, 3, 512)
    attribute(2, tool_memory)
    cuda.cuMemGetInfo_v2(ctypes.byref(size_t()), ctypes.byref(size_t()))
    in_tool.on = False


def forked_at(names, task):
    """The status of a child that a tool's callback forks in the middle of a call that the task makes, and that goes on
    with the task; None: it hangs."""
    children = []

    def told(name):
        if name in names and not children:
            children.append(os.fork())

    watch(told)
    value = task()
    if children == [0]:
        os._exit(value)
    watch(lambda name: None)
    until = time.monotonic() + 20
    while children and time.monotonic() < until:
        child, status = os.waitpid(children[0], os.WNOHANG)
        if child:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    if children:
        os.kill(children[0], 9)
        os.waitpid(children[0], 0)
    return None


def code_of_allocation(size):
    made = u64()
    return cuda.cuMemAlloc_v2(ctypes.byref(made), size_t(size))


def block_until(stream, seconds):
    """The stream's work ends after so long."""
    over = threading.Event()
    call_host(stream, over.wait)
    threading.Timer(seconds, over.set).start()


def hold_devices(count, seconds):
    """In each of the devices a block, and work that ends `seconds` after that of the next."""
    for device in range(count):
        begin(device)
        fill(allocate(MIB), 1, MIB)
        synchronize()
        block_until(stream(1), seconds * (count - device))


def end_unseen(device):
    """Ends a context past every hook."""
    find = cuda.sim_private_call
    find.restype = ctypes.c_void_p
    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(find(b"cuDevicePrimaryCtxRelease"))(device)


def ends_in_the_middle(at, end, argument, lasts):
    """Has another thread end the context when the library first makes the call `at`, which is made when the end's own
    call has begun. That lasts so many seconds. If it lasts none, pages stay mapped until it has given addresses back."""
    ended, begun, freed = [], threading.Event(), threading.Semaphore(0)

    def told(name):
        if name == at and not ended:
            ended.append(start(lambda: getattr(cuda, end)(argument)))
            begun.wait(10)
        elif name == end:
            begun.set()
            time.sleep(lasts)
        elif name == "cuMemAddressFree":
            freed.release()
        if name == "cuMemUnmap" and not lasts and threading.get_ident() != kept[-1].ident:
            while freed.acquire(timeout=0.3):
                pass

    watch(told)
    return ended


def is_reserved(pointer):
    return attribute(11, pointer) > 1000  # RANGE_START_ADDR, or else the error


def another_context():
    made = ctypes.c_void_p()
    must(cuda.cuCtxCreate_v2(ctypes.byref(made), 0, 0))
    return made
