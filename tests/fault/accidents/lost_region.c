/*
 * The driver refuses to free a region, and the host has no memory to note that the library still
 * has it: the region counts against BFC_LIMIT all the same. It takes an unlucky moment: the room
 * for the note is taken by another context, which grows in a tool's callback in the middle of the
 * call.
 */
#include "tests/conformance/gpu.h"

enum { REGIONS = 64 }; /* as many as the library has room for at first */

static CUcontext first, second;
static bool has_grown, has_no_memory;

/* volatile, lest the compiler makes a call of calloc of what calloc does here */
static void *(*volatile get)(size_t) = malloc;

void *calloc(size_t count, size_t size) {
    void *memory = has_no_memory ? NULL : get(count * size);
    return memory ? memset(memory, 0, count * size) : NULL;
}

static void grow_in_the_other(const char *call) {
    if (strcmp(call, "cuMemFree_v2") != 0 || has_grown)
        return;
    has_grown = true;
    MUST(DRIVER(cuCtxSetCurrent)(second));
    new_block(2 * MIB);
    MUST(DRIVER(cuCtxSetCurrent)(first));
    has_no_memory = true;
}

static void try_block(size_t mib) {
    void *block;
    printf("%zu MiB: %s\n", mib, name_of(allocate(&block, mib * MIB)));
}

int main(void) {
    void (*watch)(void (*)(const char *));
    unsigned long long (*trim)(unsigned long long);
    void *blocks[REGIONS];
    use_device(0);
    MUST(CREATE_CONTEXT(&second, 0));
    MUST(CREATE_CONTEXT(&first, 0));
    *(void **)&watch = dlsym(RTLD_DEFAULT, "sim_tool_watch");
    *(void **)&trim = dlsym(RTLD_DEFAULT, "bfc_trim");
    for (int i = 0; i < REGIONS; i++)
        blocks[i] = new_block(2 * MIB);
    for (int i = 0; i < REGIONS; i++)
        MUST(release(blocks[i]));
    watch(grow_in_the_other);
    trim(2 * MIB);
    watch(NULL);
    has_no_memory = false;
    try_block(197);
    try_block(196);
    return 0;
}
