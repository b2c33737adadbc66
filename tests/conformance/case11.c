/*
 * Attributes of freed memory: the singular call fails, the plural one succeeds with NULLs [D], but
 * leaves the range as it was (driver 580 on an H100). So too for what lies behind a smaller block
 * that took its place.
 */
#include "tests/conformance/pointers.h"

static void look(const char *pointer) {
    struct told told;
    CUdeviceptr start = 0;
    size_t size = 0;
    memset(&told, 0x55, sizeof told);
    const CUdeviceptr untouched = told.range_start;
    say("address range", (int)DRIVER(cuMemGetAddressRange)(&start, &size, address(pointer)));
    say("an id", ask(&told.id, CU_POINTER_ATTRIBUTE_BUFFER_ID, pointer));
    say("its memory's type", ask(&told.memory_type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer));
    say("its range", ask(&told.range_size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, pointer));
    say("all", ask_all(&told, pointer));
    tell("no context", told.context == NULL);
    tell("no device pointer", told.device_pointer == 0);
    tell("no id", told.id == 0);
    tell("no mapping", told.mapping_base == 0 && told.mapping_size == 0);
    tell("not mapped", (unsigned)told.mapped == 0);
    tell("its range is left as it was",
         told.range_start == untouched && told.range_size == untouched);
    printf("~ type %u, ordinal %d\n", told.memory_type, told.ordinal);
}

static void set(const char *pointer) {
    unsigned on = 1;
    say("SYNC_MEMOPS", (int)DRIVER(cuPointerSetAttribute)(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
                                                          address(pointer)));
}

#ifndef ROUTE_DRIVER
static void look_by_runtime(char *block) {
    struct cudaPointerAttributes told;
    say("cudaPointerGetAttributes", (int)cudaPointerGetAttributes(&told, block));
    tell("unregistered", told.type == cudaMemoryTypeUnregistered);
    tell("no device pointer", told.devicePointer == NULL);
}
#endif

int main(void) {
    use_device(0);
    char *kept = new_block(64 * KIB), *block = new_block(5 * MIB);
    MUST(release(block));
    look(block);
    look(block + 3 * MIB);
    set(block);
#ifndef ROUTE_DRIVER
    look_by_runtime(block);
#endif
    char *smaller = new_block(2 * MIB);
    if (smaller == block)
        look(block + 4 * MIB); /* else there is nothing to see */
    else
        look(block + 4 * MIB < smaller || block + 4 * MIB >= smaller + 2 * MIB ? block + 4 * MIB
                                                                               : block);
    MUST(release(smaller));
    MUST(release(kept));
    return 0;
}
