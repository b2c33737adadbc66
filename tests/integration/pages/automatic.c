/*
 * With BFC_BACKING=auto: blocks, then what the argument names (a capture, memory that is
 * registered, exported, or nothing), then larger blocks. Says whether any page was made or moved
 * for these, and whether all blocks hold what was written.
 */
#include "tests/conformance/gpu.h"
#include "tests/conformance/helper.h"

enum { BLOCKS = 6 };

static void allocate_blocks(char **blocks, size_t bytes, unsigned value) {
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = new_block(bytes);
        MUST(cuMemsetD8(address(blocks[i]), (unsigned char)(value + i), bytes));
    }
}

static bool hold_all(char *const *blocks, size_t bytes, unsigned value) {
    bool held = true;
    for (unsigned i = 0; i < BLOCKS; i++)
        held = held && holds(blocks[i], bytes, value + i);
    return held;
}

static void capture(void) {
    CUgraph graph;
    CUstream stream = new_stream();
    MUST(begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(end_capture(stream, &graph));
    MUST(cuGraphDestroy(graph));
    MUST(end_stream(stream));
}

static void do_what(const char *what, const char *block) {
    unsigned on = 1;
    CUipcMemHandle handle;
    int file;
    if (strcmp(what, "capture") == 0)
        capture();
    else if (strcmp(what, "register") == 0)
        MUST(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address(block)));
    else if (strcmp(what, "export") == 0)
        MUST(cuIpcGetMemHandle(&handle, address(block)));
    else if (strcmp(what, "dma-buf") == 0)
        MUST(cuMemGetHandleForAddressRange(&file, address(block), 4 * MIB,
                                           CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
}

int main(int count, char **arguments) {
    char *small[BLOCKS], *large[BLOCKS];
    use_device(0);
    allocate_blocks(small, 4 * MIB, 1);
    do_what(count > 1 ? arguments[1] : "nothing", small[0]);
    for (int i = 1; i < BLOCKS; i += 2)
        MUST(release(small[i]));
    unsigned long long before = counted("cuMemMap");
    allocate_blocks(large, 10 * MIB, 100);
    tell("pages were mapped", counted("cuMemMap") != before);
    for (int i = 1; i < BLOCKS; i += 2) {
        small[i] = new_block(4 * MIB);
        MUST(cuMemsetD8(address(small[i]), (unsigned char)(1 + i), 4 * MIB));
    }
    tell("all is as written", hold_all(small, 4 * MIB, 1) && hold_all(large, 10 * MIB, 100));
    return 0;
}
