/*
 * A device is full, what the pool only caches goes back, and the first page of it cannot be
 * unmapped (SIM_FAIL): BFC_LIMIT holds afterwards as before. Preloaded alone.
 */
#include "tests/conformance/gpu.h"

int main(void) {
    CUmemGenericAllocationHandle most;
    CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    void *block = NULL;
    use_device(0);
    MUST(release(new_block(150 * MIB)));
    say("most of the device", (int)cuMemCreate(&most, 960 * MIB, &what, 0));
    MUST(cuMemRelease(most));
    say("more than the limit", allocate(&block, 300 * MIB));
    say("less than the limit", allocate(&block, 100 * MIB));
    return 0;
}
