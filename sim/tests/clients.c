// What others' programs were seen to need: calls without a current context, copies between devices
// in the null stream, memory made while a stream captures, batches of copies, objects of graphs,
// the linker, contexts that were reset. Two devices.
#include "sim/tests/check.h"

#include "kernels_ptx.h"
#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

static CUcontext contexts[2];

static void raise_flag(void *flag) {
    atomic_store((atomic_int *)flag, 1);
}

static void CUDA_CB raise_older(CUstream stream, CUresult result, void *flag) {
    (void)stream, (void)result;
    raise_flag(flag);
}

static void without_context(void) {
    atomic_int flag = 0, older = 0;
    CUstream stream = NULL;
    CUdeviceptr memory = 0, told = 0;
    CUpointer_attribute which = CU_POINTER_ATTRIBUTE_DEVICE_POINTER;
    void *into = &told;
    DO(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    DO(cuMemAllocAsync(&memory, 1000, stream));
    DO(cuCtxSetCurrent(NULL));
    DO(cuLaunchHostFunc(stream, raise_flag, &flag));
    DO(cuStreamAddCallback(stream, raise_older, &older, 0));
    DO(cuPointerGetAttributes(1, &which, &into, memory));
    CHECK(told == memory);
    DO(cuPointerGetAttribute(&told, which, memory));
    DO(cuMemFreeAsync(memory, stream));
    ANSWERS(CUDA_ERROR_INVALID_CONTEXT, cuLaunchHostFunc(NULL, raise_flag, &flag));
    DO(cuCtxSetCurrent(contexts[0]));
    DO(cuStreamSynchronize(stream));
    CHECK(atomic_load(&flag) == 1 && atomic_load(&older) == 1);
    DO(cuStreamDestroy(stream));
}

// The copy waits for the source's device, and the device for the copy.
static void between_devices(void) {
    unsigned char back[4096];
    unsigned value = 'f';
    unsigned long long count = sizeof back, us = 20000;
    CUdeviceptr from = 0, to = 0;
    CUstream slow = NULL;
    CUmodule module = NULL;
    CUfunction fill = NULL;
    DO(cuModuleLoadData(&module, kernels_ptx));
    DO(cuModuleGetFunction(&fill, module, "slow_fill"));
    DO(cuStreamCreate(&slow, CU_STREAM_NON_BLOCKING));
    DO(cuMemAlloc(&from, count));
    DO(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, slow, (void *[]){&from, &count, &value, &us},
                      NULL));
    DO(cuCtxSetCurrent(contexts[1]));
    DO(cuMemAlloc(&to, count));
    DO(cuMemcpyDtoDAsync(to, from, count, NULL));
    DO(cuCtxSetCurrent(contexts[0]));
    DO(cuMemsetD8Async(from, 'x', count, slow));
    DO(cuCtxSetCurrent(contexts[1]));
    DO(cuMemcpyDtoH(back, to, count));
    CHECK(back[0] == 'f' && back[4095] == 'f');
    DO(cuMemFree(to));
    DO(cuCtxSetCurrent(contexts[0]));
    DO(cuMemFree(from));
    DO(cuStreamDestroy(slow));
    DO(cuModuleUnload(module));
}

static void made_while_capturing(void) {
    const size_t size = 2 << 20;
    CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemAccessDesc access = {.location = wanted.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr place = 0;
    CUstream stream = NULL;
    CUgraph graph = NULL;
    DO(cuMemAddressReserve(&place, size, 0, 0, 0));
    DO(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    DO(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    DO(cuMemCreate(&handle, size, &wanted, 0));
    DO(cuMemMap(place, size, 0, handle, 0));
    DO(cuMemSetAccess(place, size, &access, 1));
    DO(cuMemsetD8Async(place, 1, size, stream));
    DO(cuStreamEndCapture(stream, &graph));
    DO(cuGraphDestroy(graph));
    DO(cuMemUnmap(place, size));
    DO(cuMemRelease(handle));
    DO(cuMemAddressFree(place, size));
    DO(cuStreamDestroy(stream));
}

static void batches(void) {
    unsigned char in[8] = "abcdefg", out[8] = {0};
    CUdeviceptr memory = 0;
    CUstream stream = NULL;
    CUmemcpyAttributes how = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    size_t first = 0;
    DO(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    DO(cuMemAlloc(&memory, 8));
    CUdeviceptr to[] = {memory, memory + 4}, from[] = {(uintptr_t)in, (uintptr_t)in + 4};
    size_t sizes[] = {4, 4};
    DO(cuMemcpyBatchAsync(to, from, sizes, 2, &how, &first, 1, stream));
    DO(cuMemcpyDtoHAsync(out, memory, 8, stream));
    DO(cuStreamSynchronize(stream));
    CHECK(memcmp(in, out, 8) == 0);
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemcpyBatchAsync(to, from, sizes, 2, &how, &first, 1, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemcpyBatchAsync(to, from, sizes, 2, NULL, NULL, 0, stream));
    DO(cuMemFree(memory));
    DO(cuStreamDestroy(stream));
}

static bool comes(atomic_int *flag) {
    for (int i = 0; i < 10000 && atomic_load(flag) == 0; i++) {
        usleep(1000);
    }
    return atomic_load(flag) == 1;
}

static void objects_of_graphs(void) {
    static atomic_int ended, moved;
    CUuserObject object = NULL, other = NULL;
    CUgraph graph = NULL, copy = NULL;
    DO(cuGraphCreate(&graph, 0));
    DO(cuUserObjectCreate(&object, &ended, raise_flag, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    DO(cuUserObjectCreate(&other, &moved, raise_flag, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuUserObjectCreate(&object, NULL, raise_flag, 1, 0));
    DO(cuGraphRetainUserObject(graph, object, 2, 0));
    DO(cuGraphRetainUserObject(graph, other, 1, CU_GRAPH_USER_OBJECT_MOVE));
    DO(cuUserObjectRelease(object, 1));
    DO(cuGraphClone(&copy, graph));
    DO(cuGraphDestroy(graph));
    DO(cuGraphReleaseUserObject(copy, object, 1));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphReleaseUserObject(copy, object, 2));
    CHECK(atomic_load(&ended) == 0 && atomic_load(&moved) == 0);
    DO(cuGraphDestroy(copy));
    CHECK(comes(&ended) && comes(&moved));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuUserObjectRetain(object, 1));
}

static void linked(void) {
    CUlinkState state = NULL;
    CUmodule module = NULL;
    CUfunction fill = NULL;
    void *image = NULL;
    size_t size = 0;
    char log[8] = "unread";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    DO(cuLinkCreate(2, options, values, &state));
    CHECK(log[0] == '\0' && values[1] == NULL);
    DO(cuLinkDestroy(state));
    DO(cuLinkCreate(0, NULL, NULL, &state));
    ANSWERS(CUDA_ERROR_INVALID_IMAGE, cuLinkComplete(state, &image, &size));
    ANSWERS(CUDA_ERROR_INVALID_PTX,
            cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)"no PTX", 7, "x", 0, NULL, NULL));
    DO(cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)(uintptr_t)kernels_ptx,
                     strlen(kernels_ptx) + 1, "kernels", 0, NULL, NULL));
    DO(cuLinkComplete(state, &image, &size));
    CHECK(size > strlen(kernels_ptx));
    DO(cuModuleLoadData(&module, image));
    DO(cuLinkDestroy(state));
    DO(cuModuleGetFunction(&fill, module, "fill"));
    DO(cuModuleUnload(module));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuLinkDestroy(state));
}

static void host_memory(void) {
    static char registered[8192];
    unsigned on = 1;
    bool told = false;
    CUdeviceptr managed = 0;
    DO(cuMemHostRegister(registered, sizeof registered, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemHostUnregister(registered + 4096));
    DO(cuMemHostUnregister(registered));
    ANSWERS(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(registered));
    DO(cuMemAllocManaged(&managed, 1000, CU_MEM_ATTACH_GLOBAL));
    DO(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, managed));
    DO(cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, managed));
    CHECK(told);
    DO(cuMemFree(managed));
}

// Made current all the same; what uses it is told.
static void reset_context(void) {
    CUdeviceptr memory = 0;
    DO(cuDevicePrimaryCtxReset(1));
    DO(cuCtxSetCurrent(contexts[1]));
    ANSWERS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc(&memory, 1));
    DO(cuCtxSetCurrent(contexts[0]));
}

int main(void) {
    DO(cuInit(0));
    DO(cuDevicePrimaryCtxRetain(&contexts[1], 1));
    DO(cuDevicePrimaryCtxRetain(&contexts[0], 0));
    DO(cuCtxSetCurrent(contexts[0]));
    without_context();
    between_devices();
    made_while_capturing();
    batches();
    objects_of_graphs();
    linked();
    host_memory();
    reset_context();
    return 0;
}
