/* A block is freed by a thread with another context, or with none: frees go by pointer
 * [F cuda-python#2750]. */
#include "tests/conformance/gpu.h"

static void *free_with_none(void *block) {
    say("free by a new thread", release(block));
    say("and once more", release(block));
    return NULL;
}

static void *free_with_another(void *block) {
    CUcontext own;
    MUST(CREATE_CONTEXT(&own, 0));
    say("free in another context", release(block));
    say("and once more", release(block));
    void *other = new_block(1000);
    say("free of its own block", release(other));
    MUST(DRIVER(cuCtxDestroy)(own));
    return NULL;
}

int main(void) {
    use_device(0);
    void *first = new_block(1000), *second = new_block(3 * MIB);
    in_thread(free_with_none, first);
    in_thread(free_with_another, second);
    say("free in the first context", release(new_block(1000)));
    return 0;
}
