/*
 * A tool that allocates, frees and asks for free memory in the middle of each call that the library
 * makes for a pool that grows, moves pages or ends: nothing hangs, and every allocation is served.
 */
#include <dlfcn.h>

#include "tests/conformance/gpu.h"

enum { BLOCKS = 40, ROOM = 256 };

static bool is_in_tool;
static int refused;
/* what the tool has allocated, more each time, so that the pool has no free block for it */
static void *kept[ROOM];
static unsigned count;

static void use_memory(const char *call) {
    size_t left, all;
    void *block;
    if (is_in_tool || strncmp(call, "cuMem", 5) != 0 || count == ROOM)
        return;
    is_in_tool = true;
    bool served = allocate(&kept[count], 20 * MIB) == CUDA_SUCCESS;
    count += served;
    refused += !served || cuMemGetInfo(&left, &all) != CUDA_SUCCESS;
    refused += allocate(&block, 512) != CUDA_SUCCESS || release(block) != CUDA_SUCCESS;
    is_in_tool = false;
}

static void watch(void (*told)(const char *)) {
    void (*begin)(void (*)(const char *));
    *(void **)&begin = dlsym(RTLD_DEFAULT, "sim_tool_watch");
    begin(told);
}

static void tell_refused(const char *when) {
    watch(NULL);
    printf("%s: %d refused\n", when, refused);
    while (count)
        MUST(release(kept[--count]));
}

int main(void) {
    CUcontext context;
    void *blocks[BLOCKS], *large;
    use_device(0);
    MUST(CREATE_CONTEXT(&context, 0));
    blocks[0] = new_block(MIB);
    watch(use_memory);
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = new_block(20 * MIB);
    tell_refused("while it grows");
    for (int i = 0; i < BLOCKS; i += 2)
        MUST(release(blocks[i]));
    watch(use_memory);
    large = new_block(BLOCKS / 2 * 20 * MIB - 30 * MIB);
    tell_refused("while pages move");
    fill(NULL, large, MIB, 3);
    printf("its bytes are %s\n", holds(large, MIB, 3) ? "right" : "wrong");
    return 0;
}
