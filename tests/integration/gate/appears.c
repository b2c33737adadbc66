/*
 * All work goes to one stream, and a block that it still fills is freed and handed out again. Then
 * the next owner's block is used by another way, which the library must order behind the fill:
 * whoever is to set the bytes last sets them last. The calls of that way come by the route that is
 * named.
 *
 * Way `owns`: the first stream is a thread's own, which is never the only one. Way `early`: two
 * streams have work, then one.
 *
 * usage: appears WAY ROUTE
 */
#include "tests/conformance/processes.h"

enum { OLD_VALUE = 1, NEW_VALUE = 2, FILL_MS = 40 };
static const size_t bytes = MIB;

/* ---- routes ---- */

/* By link, which in a program of a runtime means the runtime's own calls; by dlsym; by
 * cuGetProcAddress in both its forms. */
static enum route { LINK, DLSYM, OLD_FORM, NEW_FORM, ROUTES } route;
static const char *const route_names[ROUTES] = {"link", "dlsym", "old", "new"};

static void fail(const char *what) {
    puts(what);
    fflush(stdout);
    _exit(1);
}

static void *driver_name(const char *name) {
    void *found = dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
    if (!found)
        fail("no such call");
    return found;
}

/* A call by its symbol; by cuGetProcAddress it has the name and version. */
static void *entry(const char *symbol, const char *name, int version, cuuint64_t flags) {
    CUresult (*old_form)(const char *, void **, int, cuuint64_t);
    CUresult (*new_form)(const char *, void **, int, cuuint64_t, int *);
    void *found = NULL;
    if (route == DLSYM)
        return driver_name(symbol);
    *(void **)&old_form = driver_name("cuGetProcAddress");
    *(void **)&new_form = driver_name("cuGetProcAddress_v2");
    MUST(route == OLD_FORM ? old_form(name, &found, version, flags)
                           : new_form(name, &found, version, flags, NULL));
    return found;
}

/* ---- calls by the route ---- */

static void set(void *block, CUstream stream) {
    CUresult (*by_name)(CUdeviceptr, unsigned char, size_t, CUstream);
    if (route == LINK) {
#ifdef ROUTE_DRIVER
        MUST(cuMemsetD8Async(address(block), NEW_VALUE, bytes, stream));
#else
        MUST(cudaMemsetAsync(block, NEW_VALUE, bytes, stream));
#endif
        return;
    }
    *(void **)&by_name = entry("cuMemsetD8Async", "cuMemsetD8Async", 13000, 0);
    MUST(by_name(address(block), NEW_VALUE, bytes, stream));
}

#ifdef ROUTE_DRIVER
extern CUresult cuMemsetD8Async_ptsz(CUdeviceptr, unsigned char, size_t, CUstream);
#endif

static void set_in_own_stream(void *block) {
    CUresult (*by_name)(CUdeviceptr, unsigned char, size_t, CUstream);
    if (route == LINK) {
#ifdef ROUTE_DRIVER
        MUST(cuMemsetD8Async_ptsz(address(block), NEW_VALUE, bytes, NULL));
#else
        MUST(cudaMemsetAsync(block, NEW_VALUE, bytes, cudaStreamPerThread));
#endif
        return;
    }
    *(void **)&by_name = entry("cuMemsetD8Async_ptsz", "cuMemsetD8Async", 13000,
                               CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    MUST(by_name(address(block), NEW_VALUE, bytes, NULL));
}

static CUcontext make_context(void) {
    CUresult (*by_name)(CUcontext *, unsigned, CUdevice);
    CUcontext context;
    if (route == LINK) {
        MUST(CREATE_CONTEXT(&context, 0));
        return context;
    }
    *(void **)&by_name = entry("cuCtxCreate_v2", "cuCtxCreate", 3020, 0);
    MUST(by_name(&context, 0, 0));
    return context;
}

static CUcontext from_green(CUgreenCtx green) {
    CUresult (*by_name)(CUcontext *, CUgreenCtx);
    CUcontext context;
    if (route == LINK) {
        MUST(DRIVER(cuCtxFromGreenCtx)(&context, green));
        return context;
    }
    *(void **)&by_name = entry("cuCtxFromGreenCtx", "cuCtxFromGreenCtx", 13000, 0);
    MUST(by_name(&context, green));
    return context;
}

static void enable_peer(CUcontext owner) {
    CUresult (*by_name)(CUcontext, unsigned);
    if (route == LINK) {
#ifdef ROUTE_DRIVER
        MUST(cuCtxEnablePeerAccess(owner, 0));
#else
        MUST(cudaDeviceEnablePeerAccess(0, 0));
#endif
        return;
    }
    *(void **)&by_name = entry("cuCtxEnablePeerAccess", "cuCtxEnablePeerAccess", 13000, 0);
    MUST(by_name(owner, 0));
}

static CUipcMemHandle export_block(void *block) {
    CUresult (*by_name)(CUipcMemHandle *, CUdeviceptr);
    CUipcMemHandle handle;
    if (route == LINK) {
#ifdef ROUTE_DRIVER
        MUST(cuIpcGetMemHandle(&handle, address(block)));
#else
        MUST(cudaIpcGetMemHandle((cudaIpcMemHandle_t *)&handle, block));
#endif
        return handle;
    }
    *(void **)&by_name = entry("cuIpcGetMemHandle", "cuIpcGetMemHandle", 13000, 0);
    MUST(by_name(&handle, address(block)));
    return handle;
}

static void begin(CUstream stream) {
    CUresult (*by_name)(CUstream, CUstreamCaptureMode);
    if (route == LINK) {
        MUST(begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        return;
    }
    *(void **)&by_name = entry("cuStreamBeginCapture_v2", "cuStreamBeginCapture", 13000, 0);
    MUST(by_name(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
}

static void launch_graph(CUgraphExec graph, CUstream stream) {
    CUresult (*by_name)(CUgraphExec, CUstream);
    if (route == LINK) {
#ifdef ROUTE_DRIVER
        MUST(cuGraphLaunch(graph, stream));
#else
        MUST(cudaGraphLaunch(graph, stream));
#endif
        return;
    }
    *(void **)&by_name = entry("cuGraphLaunch", "cuGraphLaunch", 13000, 0);
    MUST(by_name(graph, stream));
}

/* ---- ways in which another stream appears ---- */

static CUcontext first; /* the context */
static CUstream only;
static struct other importer;

static void by_stream(void *block) {
    set(block, new_stream());
}

static void by_own_stream(void *block) {
    set_in_own_stream(block);
}

static void *in_its_stream(void *block) {
    MUST(DRIVER(cuCtxSetCurrent)(first));
    set_in_own_stream(block);
    MUST(DRIVER(cuStreamSynchronize)(CU_STREAM_PER_THREAD));
    return NULL;
}

static void by_thread(void *block) {
    in_thread(in_its_stream, block);
}

static void by_graph(void *block) {
    CUstream captured = new_stream();
    CUgraph graph;
    CUgraphExec ready;
    begin(captured);
    set(block, captured);
    MUST(end_capture(captured, &graph));
    MUST(DRIVER(cuGraphInstantiateWithFlags)(&ready, graph, 0));
    launch_graph(ready, new_stream());
}

static void by_context(void *block) {
    CUcontext other = make_context();
    void *from = new_block(bytes);
    set(from, NULL);
    MUST(DRIVER(cuStreamSynchronize)(NULL));
    MUST(DRIVER(cuMemcpyPeerAsync)(address(block), first, address(from), other, bytes,
                                   new_stream()));
    MUST(DRIVER(cuCtxSynchronize)());
    MUST(DRIVER(cuCtxSetCurrent)(first));
}

static void by_peer(void *block) {
    use_device(1);
    enable_peer(first);
    fill(new_stream(), block, bytes, NEW_VALUE);
    MUST(synchronize());
    choose_device(0);
}

static void by_export(void *block) {
    CUipcMemHandle handle = export_block(block);
    give(&importer, &handle, sizeof handle);
    await(&importer);
}

/* The default stream of a green context is a stream of its own. */
static void by_green(void *block) {
    CUgreenCtx green;
    CUcontext own;
    CUdevResource all;
    CUdevResourceDesc part;
    MUST(DRIVER(cuDeviceGetDevResource)(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    MUST(DRIVER(cuDevResourceGenerateDesc)(&part, &all, 1));
    MUST(DRIVER(cuGreenCtxCreate)(&green, part, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    own = from_green(green);
    MUST(DRIVER(cuCtxSetCurrent)(own));
    set(block, NULL);
    MUST(DRIVER(cuCtxSynchronize)());
    MUST(DRIVER(cuCtxSetCurrent)(first));
}

/* A call that is newer than the library's tables is only looked up. By link: newer.c. */
static void by_unknown_call(void *block) {
    if (route != LINK &&
        !entry("cuStreamBeginUnheardOfCapture", "cuStreamBeginUnheardOfCapture", 99000, 0))
        fail("no such call");
    set(block, only);
}

static int import(void) {
    CUipcMemHandle handle;
    CUdeviceptr at;
    use_device(0);
    pass(&importer);
    take(&importer, &handle, sizeof handle);
    MUST(DRIVER(cuIpcOpenMemHandle)(&at, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    MUST(DRIVER(cuMemsetD8)(at, NEW_VALUE, bytes));
    MUST(synchronize());
    MUST(DRIVER(cuIpcCloseMemHandle)(at));
    pass(&importer);
    return 0;
}

/* ---- one stream ---- */

static unsigned long long records(void) {
    unsigned long long (*count)(const char *);
    *(void **)&count = driver_name("sim_call_count");
    return count("event_records");
}

static void use(CUstream stream, int rounds) {
    for (int i = 0; i < rounds; i++) {
        void *block = new_block(bytes);
        fill(stream, block, bytes, OLD_VALUE);
        MUST(release(block));
    }
}

static void look(void (*use_otherwise)(void *)) {
    use(only, 2);
    unsigned long long before = records();
    use(only, 4);
    tell("frees needed a fence", records() > before);
    void *block = new_block(bytes);
    slow_fill(only, block, bytes, OLD_VALUE, FILL_MS);
    MUST(release(block));
    void *next = new_block(bytes);
    tell("the same block", next == block);
    use_otherwise(next);
    MUST(synchronize());
    tell("the next owner's bytes", holds(next, bytes, NEW_VALUE));
    before = records();
    use(only, 2);
    tell("frees need a fence now", records() > before);
}

/* Work goes on in one of two streams alone, while the other still fills a block of a size of its
 * own, which is then freed. */
static void look_early(void) {
    CUstream left = new_stream();
    void *block = new_block(3 * bytes);
    use(only, 1);
    slow_fill(left, block, 3 * bytes, OLD_VALUE, 5 * FILL_MS);
    use(only, 64);
    MUST(release(block));
    void *next = new_block(3 * bytes);
    set(next, only);
    MUST(synchronize());
    tell("the next owner's bytes", holds(next, bytes, NEW_VALUE));
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*use_otherwise)(void *);
    } ways[] = {{"stream", by_stream},       {"own", by_own_stream}, {"thread", by_thread},
                {"context", by_context},     {"peer", by_peer},      {"export", by_export},
                {"graph", by_graph},         {"green", by_green},    {"owns", by_thread},
                {"unknown", by_unknown_call}};
    if (count != 3)
        fail("usage: appears WAY ROUTE");
    while (route < ROUTES && strcmp(arguments[2], route_names[route]) != 0)
        route++;
    if (strcmp(arguments[1], "export") == 0) {
        if (fork_other(&importer))
            return import();
        await(&importer);
    }
    use_device(0);
    MUST(DRIVER(cuCtxGetCurrent)(&first));
    only = strcmp(arguments[1], "owns") == 0    ? CU_STREAM_PER_THREAD
           : strcmp(arguments[1], "green") == 0 ? NULL
                                                : new_stream();
    if (strcmp(arguments[1], "early") == 0)
        look_early();
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (strcmp(arguments[1], ways[i].name) == 0)
            look(ways[i].use_otherwise);
    return 0;
}
