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

/* With none that was current before, and allocated and freed. */
static void *free_after_leaving(void *unused) {
    CUcontext left, current = NULL;
    use_device(0);
    for (int i = 0; i < 3; i++)
        MUST(release(new_block(1000)));
    void *popped = new_block(1000), *unset = new_block(1000);
    MUST(DRIVER(cuCtxGetCurrent)(&left));
    MUST(DRIVER(cuCtxSetCurrent)(NULL));
    say("free after the context was unset", release(unset));
    MUST(DRIVER(cuCtxGetCurrent)(&current));
    printf("~ a context is current then: %s\n", current ? "yes" : "no");
    MUST(DRIVER(cuCtxSetCurrent)(left));
    MUST(release(new_block(1000)));
    MUST(DRIVER(cuCtxPopCurrent)(&left));
    say("free after it was popped", release(popped));
    MUST(DRIVER(cuCtxGetCurrent)(&current));
    printf("~ a context is current then: %s\n", current ? "yes" : "no");
    return unused;
}

int main(void) {
    use_device(0);
    void *first = new_block(1000), *second = new_block(3 * MIB);
    in_thread(free_with_none, first);
    in_thread(free_with_another, second);
    in_thread(free_after_leaving, NULL);
    say("free in the first context", release(new_block(1000)));
    return 0;
}
