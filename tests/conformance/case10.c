/* Attributes of live memory, one at a time and all at once, at its start and inside it [D]. */
#include "tests/conformance/pointers.h"

static void compare_calls(struct told *all, const char *pointer) {
    struct told one;
    bool same = true;
    memset(&one, 0, sizeof one);
#define ONE(attribute, field)                                                                      \
    {                                                                                              \
        int code = ask(&one.field, CU_POINTER_ATTRIBUTE_##attribute, pointer);                     \
        if (code == 0 && memcmp(&one.field, &all->field, sizeof one.field) != 0)                   \
            same = false;                                                                          \
        if (code != 0)                                                                             \
            printf("%s alone: %s\n", #attribute, name_of(code));                                   \
    }
    ATTRIBUTES(ONE)
#undef ONE
    tell("each alone is the same as in the list", same);
}

static bool is_of_pages(const struct told *told) {
    return told->mapping_base % (2 * MIB) == 0 && told->mapping_size % (2 * MIB) == 0;
}

static void look(const char *block, size_t asked, size_t offset) {
    struct told told;
    CUcontext context;
    memset(&told, 0, sizeof told);
    MUST(DRIVER(cuCtxGetCurrent)(&context));
    say("attributes", ask_all(&told, block + offset));
    tell("the current context's", told.context == context);
    tell("device memory", told.memory_type == CU_MEMORYTYPE_DEVICE);
    tell("its own address", told.device_pointer == address(block + offset));
    tell("no host pointer", told.host_pointer == NULL);
    tell("no SYNC_MEMOPS", (unsigned char)told.sync_memops == 0);
    tell("an id", told.id != 0);
    tell("not managed", (unsigned char)told.managed == 0);
    tell("the first device's", told.ordinal == 0);
    tell("can be exported", (unsigned char)told.ipc == 1);
    tell("the range starts where the allocation does", told.range_start == address(block));
    tell("the range holds what was asked for", told.range_size >= asked);
    tell("mapped", (unsigned char)told.mapped == 1);
    tell("the mapping is whole pages of 2 MiB", is_of_pages(&told));
    tell("the mapping holds the range and no page more",
         told.mapping_base <= told.range_start &&
             told.mapping_base + told.mapping_size >= told.range_start + told.range_size &&
             told.range_start - told.mapping_base < 2 * MIB &&
             told.mapping_size < told.range_size + 4 * MIB);
    printf("~ of %zu at %zu: range %zu\n", asked, offset, told.range_size);
    compare_calls(&told, block + offset);
}

#ifndef ROUTE_DRIVER
static void look_by_runtime(char *block) {
    struct cudaPointerAttributes told;
    say("cudaPointerGetAttributes", (int)cudaPointerGetAttributes(&told, block + 100));
    tell("device memory", told.type == cudaMemoryTypeDevice);
    tell("the first device's", told.device == 0);
    tell("its own address", told.devicePointer == block + 100);
    tell("no host pointer", told.hostPointer == NULL);
}
#endif

int main(void) {
    use_device(0);
    char *first = new_block(5000), *second = new_block(100001), *large = new_block(3 * MIB + 1);
    look(first, 5000, 0);
    look(second, 100001, 100000);
    look(large, 3 * MIB + 1, 2 * MIB);
#ifndef ROUTE_DRIVER
    look_by_runtime(second);
#endif
    say("an unknown attribute", ask(&(uint64_t){0}, (CUpointer_attribute)9999, second));
    say("no place for the answer", ask(NULL, CU_POINTER_ATTRIBUTE_BUFFER_ID, second));
    MUST(release(first));
    MUST(release(second));
    MUST(release(large));
    return 0;
}
