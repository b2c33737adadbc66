// The other kinds of memory: stream-ordered, managed, pitched, arrays.
#include "sim/tests/check.h"

#include <cuda.h>
#include <stdint.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static size_t free_bytes(void) {
    size_t now = 0, total = 0;
    DO(cuMemGetInfo(&now, &total));
    return now;
}

static cuuint64_t figure(CUmemoryPool pool, CUmemPool_attribute which) {
    cuuint64_t value = 0;
    DO(cuMemPoolGetAttribute(pool, which, &value));
    return value;
}

static void stream_ordered(void) {
    CUmemoryPool pool = NULL, own = NULL;
    CUdeviceptr memory = 0, again = 0, plain = 0;
    CUstream stream = NULL;
    cuuint64_t keep = UINT64_MAX, none = 0;
    size_t before = free_bytes();
    DO(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    DO(cuDeviceGetDefaultMemPool(&pool, 0));
    DO(cuMemAllocAsync(&memory, 4 * MIB, stream));
    CHECK(figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 4 * MIB);
    DO(cuMemsetD8Async(memory, 5, 4 * MIB, stream));
    DO(cuMemFreeAsync(memory, stream));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(memory, stream));
    DO(cuStreamSynchronize(stream));
    CHECK(free_bytes() == before); // the threshold is 0
    DO(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    DO(cuMemAllocAsync(&memory, 4 * MIB, stream));
    DO(cuMemFreeAsync(memory, stream));
    DO(cuStreamSynchronize(stream));
    CHECK(before - free_bytes() == 4 * MIB);
    DO(cuMemAllocAsync(&again, 4 * MIB, stream));
    CHECK(again == memory);
    DO(cuMemFree(again)); // legal, and waits for nothing
    DO(cuMemPoolTrimTo(pool, 0));
    CHECK(free_bytes() == before);
    DO(cuMemAllocAsync(&memory, before / 2, stream));
    DO(cuMemFreeAsync(memory, stream));
    DO(cuStreamSynchronize(stream));
    DO(cuMemAllocAsync(&again, before / 2 + 8 * MIB, stream)); // of another size, on a full device
    ANSWERS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocAsync(&memory, before / 2, stream));
    DO(cuMemFreeAsync(again, stream));
    DO(cuStreamSynchronize(stream));
    DO(cuMemPoolTrimTo(pool, 0));
    CHECK(free_bytes() == before);
    DO(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &none));

    DO(cuMemAlloc(&plain, 8 * MIB));
    DO(cuMemFreeAsync(plain, stream)); // legal too
    DO(cuStreamSynchronize(stream));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemFree(plain));
    CHECK(free_bytes() == before);

    CUmemPoolProps wanted = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                             .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    DO(cuMemPoolCreate(&own, &wanted));
    DO(cuMemAllocFromPoolAsync(&memory, 100, own, stream));
    CHECK(figure(own, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 100);
    DO(cuMemFreeAsync(memory, stream));
    DO(cuStreamSynchronize(stream));
    DO(cuMemPoolDestroy(own));
    DO(cuStreamDestroy(stream));
}

static void captured_memory(void) {
    CUstream stream = NULL;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUdeviceptr memory = 0, plain = 0;
    size_t before = free_bytes(), nodes = 0;
    DO(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    DO(cuMemAlloc(&plain, 1));
    DO(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    DO(cuMemAllocAsync(&memory, 4 * MIB, stream));
    DO(cuMemsetD8Async(memory, 1, 4 * MIB, stream));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(plain, stream)); // not the graph's
    DO(cuMemFreeAsync(memory, stream));
    DO(cuStreamEndCapture(stream, &graph));
    DO(cuGraphGetNodes(graph, NULL, &nodes));
    CHECK(nodes == 3);
    DO(cuGraphInstantiate(&exec, graph, 0));
    DO(cuGraphLaunch(exec, stream));
    DO(cuStreamSynchronize(stream));
    DO(cuGraphExecDestroy(exec));
    DO(cuGraphDestroy(graph));
    DO(cuMemFree(plain));
    CHECK(free_bytes() == before);
    DO(cuStreamDestroy(stream));
}

static void managed(void) {
    CUdeviceptr memory = 0;
    unsigned char is_managed = 0;
    DO(cuMemAllocManaged(&memory, 1000, CU_MEM_ATTACH_GLOBAL));
    DO(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, memory));
    CHECK(is_managed);
    DO(cuMemsetD8(memory, 'm', 1000));
    DO(cuCtxSynchronize());
    CHECK(*(char *)(uintptr_t)(memory + 999) == 'm');
    DO(cuMemFree(memory));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemFree(memory));
}

static void pitched(void) {
    CUdeviceptr memory = 0;
    size_t pitch = 0;
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&memory, &pitch, 10, 10, 3));
    DO(cuMemAllocPitch(&memory, &pitch, 1000, 10, 4));
    CHECK(pitch >= 1000 && pitch % 256 == 0);
    DO(cuMemsetD2D8(memory, pitch, 1, 1000, 10));
    DO(cuMemFree(memory));
}

static void arrays(void) {
    CUarray array = NULL;
    CUDA_ARRAY3D_DESCRIPTOR shape = {.Width = 10,
                                     .Height = 4,
                                     .Depth = 3,
                                     .Format = CU_AD_FORMAT_UNSIGNED_INT8,
                                     .NumChannels = 1};
    unsigned char in[120], out[120];
    for (size_t i = 0; i < sizeof in; i++) {
        in[i] = (unsigned char)i;
    }
    DO(cuArray3DCreate(&array, &shape));
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = in,
                          .srcPitch = 10,
                          .srcHeight = 4,
                          .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                          .dstArray = array,
                          .WidthInBytes = 10,
                          .Height = 4,
                          .Depth = 3};
    DO(cuMemcpy3D(&copy));
    CUDA_MEMCPY3D back = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                          .srcArray = array,
                          .srcZ = 1,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = out,
                          .dstPitch = 10,
                          .dstHeight = 4,
                          .WidthInBytes = 10,
                          .Height = 4,
                          .Depth = 2};
    DO(cuMemcpy3D(&back));
    CHECK(memcmp(out, in + 40, 80) == 0);
    DO(cuArrayDestroy(array));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(array));
}

int main(void) {
    CUcontext context = NULL;
    DO(cuInit(0));
    DO(cuDevicePrimaryCtxRetain(&context, 0));
    DO(cuCtxSetCurrent(context));
    stream_ordered();
    captured_memory();
    managed();
    pitched();
    arrays();
    return 0;
}
