/* A freed block's memory serves arrays, managed memory and cuMemCreate, though nearly nothing else
 * is left. */
#include "tests/conformance/gpu.h"

static const size_t most = 192 * MIB;

static int make_array(void) {
    CUarray array;
    CUDA_ARRAY_DESCRIPTOR shape = {
        .Width = 16384, .Height = most / 16384 / 4, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    int code = (int)DRIVER(cuArrayCreate)(&array, &shape);
    if (code == 0)
        MUST(DRIVER(cuArrayDestroy)(array));
    return code;
}

static int make_managed(void) {
    CUdeviceptr at;
    int code = (int)DRIVER(cuMemAllocManaged)(&at, most, CU_MEM_ATTACH_GLOBAL);
    if (code == 0)
        MUST(DRIVER(cuMemFree)(at));
    return code;
}

static int make_physical(void) {
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    int code = (int)DRIVER(cuMemCreate)(&handle, most, &what, 0);
    if (code == 0)
        MUST(DRIVER(cuMemRelease)(handle));
    return code;
}

int main(void) {
    size_t free_bytes, total;
    use_device(0);
    MUST(release(new_block(1)));
    MUST(memory_info(&free_bytes, &total));
    hog(free_bytes - most - 64 * MIB);
    MUST(release(new_block(most)));
    say("an array", make_array());
    MUST(release(new_block(most)));
    say("managed memory", make_managed());
    MUST(release(new_block(most)));
    say("cuMemCreate", make_physical());
    return 0;
}
