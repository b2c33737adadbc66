/*
 * What the driver returns for memory or for an array may be a pointer to a record of its own, which
 * may lie just before device memory. As many bytes on from there, a pool's blocks are still the
 * program's.
 */
#include "tests/conformance/gpu.h"

enum { THREADS = 4 };
static const size_t page = 2 * MIB, most = 48 * KIB * MIB;
static CUcontext context;

static size_t create(size_t bytes) {
    CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemGenericAllocationHandle handle = 0;
    MUST(cuCtxGetDevice(&wanted.location.id));
    MUST(cuMemCreate(&handle, bytes, &wanted, 0));
    MUST(cuMemRelease(handle));
    return handle;
}

static size_t create_array(size_t bytes) {
    const size_t width = 32 * KIB;
    CUDA_ARRAY_DESCRIPTOR wanted = {.Width = width,
                                    .Height = bytes / width,
                                    .Format = CU_AD_FORMAT_UNSIGNED_INT8,
                                    .NumChannels = 1};
    CUarray array = NULL;
    MUST(cuArrayCreate(&array, &wanted));
    MUST(cuArrayDestroy(array));
    return (uintptr_t)array;
}

/* Of as many bytes as lie between the record and the block, if it is before that. */
static void reach(size_t (*make)(size_t), size_t block) {
    size_t distance = block - make(page);
    if (distance < most)
        make((distance / page + 2) * page);
}

/* A thread's records lie among mappings, as device memory does. */
static void *reach_block(void *block) {
    MUST(cuCtxSetCurrent(context));
    reach(create, address(block));
    reach(create_array, address(block));
    return NULL;
}

int main(void) {
    int count;
    MUST(cuInit(0));
    MUST(cuDeviceGetCount(&count));
    MUST(cuCtxCreate(&context, NULL, 0, count - 1));
    void *first = new_block(MIB), *block = new_block(MIB);
    for (int i = 0; i < THREADS; i++)
        in_thread(reach_block, block);
    say("the free of a block within its region", release(block));
    say("and of the first", release(first));
    MUST(cuCtxDestroy(context));
    return 0;
}
