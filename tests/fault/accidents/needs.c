/*
 * Calls that need device memory beside their purpose, on a device that is full of what a pool only
 * caches (SIM_NEEDS: 600 MiB of each device's 1 GiB): natively there is room, so there is with us.
 */
#include "tests/conformance/gpu.h"

/* Newer headers have the newest one only. */
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity, int count,
                        unsigned flags, CUdevice device);

/* On the current device: with us it is cached from then on. */
static void crowd(void) {
    MUST(release(new_block(640 * MIB)));
}

/* A call while the current device is crowded. */
#define AS(call, ...)                                                                              \
    do {                                                                                           \
        crowd();                                                                                   \
        say(#call, (int)DRIVER(call)(__VA_ARGS__));                                                \
    } while (0)

static void make_contexts(void) {
    CUcontext context;
    CUgreenCtx green;
    CUdevResource resource;
    CUdevResourceDesc what;
    AS(cuCtxCreate_v2, &context, 0, 0);
    MUST(DRIVER(cuCtxDestroy)(context));
    AS(cuCtxCreate_v3, &context, NULL, 0, 0, 0);
    MUST(DRIVER(cuCtxDestroy)(context));
    AS(cuCtxCreate_v4, &context, NULL, 0, 0);
    MUST(DRIVER(cuCtxDestroy)(context));
    AS(cuDevicePrimaryCtxRetain, &context, 0);
    MUST(DRIVER(cuDevicePrimaryCtxRelease)(0));
    MUST(DRIVER(cuDeviceGetDevResource)(0, &resource, CU_DEV_RESOURCE_TYPE_SM));
    MUST(DRIVER(cuDevResourceGenerateDesc)(&what, &resource, 1));
    AS(cuGreenCtxCreate, &green, what, 0, CU_GREEN_CTX_DEFAULT_STREAM);
    AS(cuCtxSetLimit, CU_LIMIT_MALLOC_HEAP_SIZE, 16 * MIB);
}

static void make_queues(void) {
    CUstream stream;
    CUevent event;
    AS(cuStreamCreate, &stream, 0);
    AS(cuStreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, 0);
    AS(cuEventCreate, &event, 0);
}

static void load_code(void) {
    CUmodule module;
    CUfunction function;
    CUlibrary library;
    CUkernel kernel_of_library;
    int value;
    unsigned long long us = 1;
    void *arguments[] = {&us};
    AS(cuModuleLoadData, &module, conformance_kernels);
    AS(cuModuleLoadDataEx, &module, conformance_kernels, 0, NULL, NULL);
    AS(cuModuleGetFunction, &function, module, "spin");
    AS(cuLibraryLoadData, &library, conformance_kernels, NULL, NULL, 0, NULL, NULL, 0);
    AS(cuLibraryGetKernel, &kernel_of_library, library, "spin");
    AS(cuKernelGetFunction, &function, kernel_of_library);
    AS(cuFuncGetAttribute, &value, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
    AS(cuFuncLoad, function);
    AS(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL);
}

static void use_graphs(CUfunction function) {
    unsigned long long us = 1;
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec first;
    CUDA_KERNEL_NODE_PARAMS what = {.func = function,
                                    .gridDimX = 1,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = 1,
                                    .blockDimY = 1,
                                    .blockDimZ = 1,
                                    .kernelParams = (void *[]){&us}};
    MUST(DRIVER(cuGraphCreate)(&graph, 0));
    AS(cuGraphAddKernelNode_v2, &node, graph, NULL, 0, &what);
    AS(cuGraphInstantiateWithFlags, &first, graph, 0);
    AS(cuGraphUpload, first, NULL);
    AS(cuGraphLaunch, first, NULL);
}

static CUmemAllocationProp on_device(int device) {
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
}

static void take_memory(void) {
    static char host[8192] __attribute__((aligned(4096)));
    CUmemGenericAllocationHandle memory;
    CUdeviceptr place, at;
    CUmemoryPool pool;
    CUmemAllocationProp what = on_device(0);
    CUmemPoolProps kind = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = what.location};
    CUmemAccessDesc access = {what.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    void *pinned;
    AS(cuMemCreate, &memory, 2 * MIB, &what, 0);
    MUST(DRIVER(cuMemAddressReserve)(&place, 2 * MIB, 0, 0, 0));
    AS(cuMemMap, place, 2 * MIB, 0, memory, 0);
    AS(cuMemSetAccess, place, 2 * MIB, &access, 1);
    AS(cuMemPoolCreate, &pool, &kind);
    AS(cuMemAllocFromPoolAsync, &at, MIB, pool, NULL);
    AS(cuMemAllocAsync, &at, MIB, NULL);
    AS(cuMemAllocManaged, &at, MIB, CU_MEM_ATTACH_GLOBAL);
    AS(cuMemHostAlloc, &pinned, MIB, 0);
    AS(cuMemHostRegister_v2, host, sizeof host, 0);
}

/* ---- the device is not the current one's ---- */

/* The second device is crowded; what is current then is `current`. */
static void crowd_second(CUcontext current) {
    choose_device(1);
    crowd();
    MUST(DRIVER(cuCtxSetCurrent)(current));
}

#define ELSEWHERE(call, ...)                                                                       \
    do {                                                                                           \
        crowd_second(current);                                                                     \
        say(#call, (int)DRIVER(call)(__VA_ARGS__));                                                \
    } while (0)

static void use_second_device(CUcontext current) {
    CUcontext context;
    CUmemGenericAllocationHandle memory;
    CUmemoryPool pool;
    CUlibrary library;
    CUkernel kernel_of_library;
    CUmemAllocationProp what = on_device(1);
    CUmemPoolProps kind = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = what.location};
    puts(current ? "the first device is current" : "none is current");
    ELSEWHERE(cuCtxCreate_v2, &context, 0, 1);
    MUST(DRIVER(cuCtxDestroy)(context));
    ELSEWHERE(cuDevicePrimaryCtxRetain, &context, 1);
    MUST(DRIVER(cuDevicePrimaryCtxRelease)(1));
    ELSEWHERE(cuMemCreate, &memory, 2 * MIB, &what, 0);
    ELSEWHERE(cuMemPoolCreate, &pool, &kind);
    ELSEWHERE(cuLibraryLoadData, &library, conformance_kernels, NULL, NULL, 0, NULL, NULL, 0);
    if (!current)
        ELSEWHERE(cuLibraryGetKernel, &kernel_of_library, library, "spin");
}

/* A stream's memory is its device's, whatever is current. */
static void use_stream_of_second_device(CUcontext current) {
    CUgraph graph;
    CUgraphExec executable;
    CUstream stream;
    choose_device(1);
    stream = new_stream();
    MUST(DRIVER(cuGraphCreate)(&graph, 0));
    MUST(DRIVER(cuGraphInstantiateWithFlags)(&executable, graph, 0));
    ELSEWHERE(cuGraphUpload, executable, stream);
    ELSEWHERE(cuGraphLaunch, executable, stream);
}

int main(void) {
    CUcontext first;
    use_device(0);
    MUST(DRIVER(cuCtxGetCurrent)(&first));
    make_contexts();
    make_queues();
    load_code();
    use_graphs(kernel("spin"));
    take_memory();
    MUST(synchronize());
    use_second_device(first);
    use_second_device(NULL);
    use_stream_of_second_device(first);
    return 0;
}
