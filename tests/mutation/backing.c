/*
 * What pages (BFC_BACKING=pages) must be told of, and cudaMalloc's memory need not: a peer reaches
 * what was allocated before its access began and what comes later; a context that ends leaves no
 * memory behind.
 */
#include "tests/conformance/gpu.h"

static const size_t bytes = 4 * MIB;

/* The peer's device is the current one. */
static void use_as_peer(const char *what, CUstream peer, void *block, unsigned value) {
    fill(peer, block, bytes, value);
    say(what, (int)cuStreamSynchronize(peer));
    tell("  its bytes", holds(block, bytes, value));
}

static void *new_block_of(CUcontext owner) {
    void *block = NULL;
    MUST(cuCtxPushCurrent(owner));
    block = new_block(bytes);
    MUST(cuCtxPopCurrent(&owner));
    return block;
}

static void share_with_peer(void) {
    CUcontext owner;
    use_device(0);
    MUST(cuCtxGetCurrent(&owner));
    void *before = new_block_of(owner);
    use_device(1);
    CUstream peer = new_stream();
    say("peer access", (int)cuCtxEnablePeerAccess(owner, 0));
    use_as_peer("a peer uses what was there", peer, before, 1);
    /* Larger than what is cached, so that there is something new behind it. */
    void *later = new_block_of(owner);
    void *last = new_block_of(owner);
    use_as_peer("a peer uses what came later", peer, later, 2);
    use_as_peer("and the last", peer, last, 3);
    say("no peer access", (int)cuCtxDisablePeerAccess(owner));
    say("peer access again", (int)cuCtxEnablePeerAccess(owner, 0));
    use_as_peer("a peer uses it again", peer, last, 4);
    MUST(cuCtxDisablePeerAccess(owner));
    use_device(0);
    MUST(release(before));
    MUST(release(later));
    MUST(release(last));
}

/* Three times two thirds of the device. */
static void end_contexts(void) {
    void *block = NULL;
    use_device(0);
    for (int i = 0; i < 3; i++) {
        CUcontext context;
        MUST(cuCtxCreate(&context, NULL, 0, 0));
        say("two thirds in a new context", allocate(&block, 640 * MIB));
        MUST(cuCtxDestroy(context));
    }
    say("two thirds before a reset", allocate(&block, 640 * MIB));
    say("reset", reset_device());
    use_device(0);
    say("two thirds after it", allocate(&block, 640 * MIB));
}

/* Of a program's own calls for pages, none takes memory of cudaMalloc's for its own. */
static void ask_for_handle(void) {
    CUmemGenericAllocationHandle handle;
    void *block = new_block(8 * MIB);
    say("a handle of it", (int)cuMemRetainAllocationHandle(&handle, block));
    MUST(release(block));
}

/*
 * A copy from device to device behind a kernel that waits for the host, which goes on only if the
 * copy does not wait: natively it does not, unless its memory asks for it.
 */
static void look(const char *what, void *to, const void *from, bool waits) {
    unsigned *flag, wanted = 1;
    CUevent event;
    MUST(cuMemHostAlloc((void **)&flag, sizeof *flag, CU_MEMHOSTALLOC_DEVICEMAP));
    *flag = waits;
    unsigned long long at = address(flag);
    MUST(launch(NULL, "wait_flag", (void *[]){&at, &wanted}));
    spin(NULL, 20);
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventRecord(event, NULL));
    MUST(cuMemcpyDtoD(address(to), address(from), KIB));
    printf("%s: %s\n", what, cuEventQuery(event) == CUDA_SUCCESS ? "waits" : "does not wait");
    *(volatile unsigned *)flag = 1;
    MUST(synchronize());
    MUST(cuEventDestroy(event));
    MUST(cuMemFreeHost(flag));
}

/* An attribute is of all the pages of a block, and of its block alone. */
static void register_block(void) {
    const size_t large = 40 * MIB;
    unsigned on = 1;
    void *from = new_block(KIB);
    char *block = new_block(large);
    look("a copy at first", block + large - KIB, from, false);
    say("SYNC_MEMOPS",
        (int)cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address(block)));
    look("a copy to its start", block, from, true);
    look("a copy to its end", block + large - KIB, from, true);
    MUST(release(block));
    block = new_block(large);
    look("a copy to a later block", block + large - KIB, from, false);
    MUST(release(block));
    MUST(release(from));
}

int main(void) {
    share_with_peer();
    ask_for_handle();
    register_block();
    end_contexts();
    return 0;
}
