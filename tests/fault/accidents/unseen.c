/*
 * Contexts end by calls that the library need not see: cuCtxDetach, and private ways to the driver
 * that have no name. What was cached for one is no longer the library's: its addresses and its
 * handle are given to others, whose memory nobody may free; and what the program had there is
 * nobody's.
 */
#include "tests/conformance/gpu.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* programs still call cuCtxDetach */

enum { ROUNDS = 12, BLOCKS = 6 };
static const size_t bytes = 32 * MIB, marked = 64 * KIB;

/* What a real driver's private tables have. */
static CUresult (*private_retain)(CUcontext *, CUdevice), (*private_enter)(CUcontext),
    (*private_release)(CUdevice);

static bool find_private_calls(void) {
    void (*(*private_call)(const char *))(void);
    *(void **)&private_call = dlsym(RTLD_DEFAULT, "sim_private_call");
    if (!private_call)
        return false;
    private_retain = (CUresult(*)(CUcontext *, CUdevice))private_call("cuDevicePrimaryCtxRetain");
    private_enter = (CUresult(*)(CUcontext))private_call("cuCtxSetCurrent");
    private_release = (CUresult(*)(CUdevice))private_call("cuDevicePrimaryCtxRelease");
    return true;
}

static void begin_own(void) {
    CUcontext context;
    MUST(cuCtxCreate(&context, NULL, 0, 0));
}

static void end_detached(void) {
    CUcontext current;
    MUST(cuCtxGetCurrent(&current));
    MUST(cuCtxDetach(current));
}

static void begin_primary(void) {
    CUcontext context;
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
}

static void end_privately(void) {
    MUST(private_release(0));
}

/* A handle may be used again by a context that does nothing. */
static CUcontext idle;

static void begin_beside_idle(void) {
    MUST(cuCtxCreate(&idle, NULL, 0, 0));
    begin_own();
}

static void end_beside_idle(void) {
    end_detached();
    MUST(cuCtxDestroy(idle));
}

/* What was made and entered by calls that nobody sees, the library learns of as it allocates. */
static void begin_privately(void) {
    CUcontext context;
    MUST(private_retain(&context, 0));
    MUST(private_enter(context));
}

static size_t whole; /* of the device's memory */

static size_t free_memory(void) {
    size_t unused;
    MUST(cuMemGetInfo(&unused, &whole));
    return unused;
}

/* Cached, freed in part and leaked blocks, which all go with their context. */
static void use_much(void *kept[2]) {
    void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = new_block(bytes);
    for (int i = 0; i < BLOCKS - 2; i++)
        MUST(release(blocks[i]));
    kept[0] = blocks[BLOCKS - 2];
    kept[1] = blocks[BLOCKS - 1];
}

static void say_free_of(const char *what, void *block) {
    say(what, release(block));
}

/* A call past the pool for which the pools give back all that they cache. */
static void want_too_much(void) {
    CUdeviceptr none;
    CUresult result = cuMemAllocAsync(&none, 4096 * MIB, NULL);
    if (result != CUDA_ERROR_OUT_OF_MEMORY)
        say("more than the device has", (int)result);
}

static void mark(const void *block, int value) {
    MUST(cuMemsetD8(address(block), (unsigned char)value, marked));
    MUST(cuMemsetD8(address(block) + bytes - marked, (unsigned char)value, marked));
}

static bool is_marked(const char *block, int value) {
    return holds(block, marked, (unsigned)value) &&
           holds(block + bytes - marked, marked, (unsigned)value);
}

static int touched, misplaced, misfreed, miscounted;

static void live_after(void *const *ended) {
    void *blocks[BLOCKS];
    CUdeviceptr start;
    size_t size;
    miscounted += free_memory() > whole;
    misfreed += release(ended[0]) != 1;
    misplaced += cuMemGetAddressRange(&start, &size, address(ended[1])) == CUDA_SUCCESS;
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = new_block(bytes);
        mark(blocks[i], 10 + i);
    }
    miscounted += free_memory() + BLOCKS * bytes > whole;
    want_too_much();
    void *more = new_block(bytes);
    mark(more, 9);
    MUST(synchronize());
    for (int i = 0; i < BLOCKS; i++) {
        touched += !is_marked(blocks[i], 10 + i);
        misfreed += release(blocks[i]) != 0;
    }
    MUST(release(more));
    miscounted += free_memory() > whole;
}

/* An address that was the pool's is now of memory that the driver gave out itself. */
static void live_past_the_pool(void) {
    CUdeviceptr managed[2];
    for (int i = 0; i < 2; i++)
        MUST(cuMemAllocManaged(&managed[i], bytes, CU_MEM_ATTACH_GLOBAL));
    for (int i = 0; i < 2; i++)
        misfreed += cuMemFree(managed[i]) != 0;
    CUdeviceptr ordered[2];
    for (int i = 0; i < 2; i++)
        MUST(cuMemAllocAsync(&ordered[i], bytes, NULL));
    MUST(synchronize());
    for (int i = 0; i < 2; i++)
        misfreed += cuMemFree(ordered[i]) != 0;
}

static void look(const char *what, void (*begin)(void), void (*end)(void), void (*again)(void),
                 void (*end_again)(void)) {
    void *kept[2];
    touched = misplaced = misfreed = miscounted = 0;
    for (int round = 0; round < ROUNDS; round++) {
        begin();
        use_much(kept);
        end();
        again();
        if (begin != begin_privately) /* a free may be the last call that is wrong:
                                         docs/internals/safety.md */
            misfreed += release(kept[1]) != 1;
        if (round % 2)
            live_past_the_pool();
        live_after(kept);
        end_again();
    }
    printf("%s: %d touched, %d not found, %d wrong frees, %d wrong counts\n", what, touched,
           misplaced, misfreed, miscounted);
}

/* No context is current any more, or another one is. */
static void look_from_elsewhere(void) {
    CUcontext context, other;
    void *kept[2];
    begin_own();
    use_much(kept);
    end_detached();
    say_free_of("free of an ended block without a context", kept[0]);
    MUST(cuCtxCreate(&other, NULL, 0, 0));
    MUST(cuCtxCreate(&context, NULL, 0, 0));
    use_much(kept);
    end_detached();
    say_free_of("free of an ended block from another context", kept[0]);
    say_free_of("and of another one", kept[1]);
    MUST(cuCtxDestroy(other));
}

/* Only the last of those that attached a context ends it. */
static void look_at_attached(void) {
    CUcontext context;
    begin_own();
    void *block = new_block(bytes);
    mark(block, 3);
    MUST(cuCtxAttach(&context, 0));
    MUST(cuCtxDetach(context));
    MUST(synchronize());
    tell("an attached context lives on", is_marked(block, 3));
    say_free_of("its block's free", block);
    MUST(cuCtxDestroy(context));
}

int main(void) {
    MUST(cuInit(0));
    if (!find_private_calls())
        skip("a driver whose private calls are known");
    look_from_elsewhere();
    look_at_attached();
    look("own contexts", begin_own, end_detached, begin_own, end_detached);
    look("own contexts, beside an idle one", begin_own, end_detached, begin_beside_idle,
         end_beside_idle);
    look("primary ones", begin_primary, end_privately, begin_primary, end_privately);
    look("primary ones, back unseen", begin_privately, end_privately, begin_privately,
         end_privately);
    look("a primary one, then own ones", begin_primary, end_privately, begin_own, end_detached);
    return 0;
}
