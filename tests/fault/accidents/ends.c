/* A context is destroyed while other threads allocate and free in it: they get errors from then on,
 * the program goes on, and other contexts' blocks are not touched. */
#include <stdatomic.h>

#include "tests/conformance/gpu.h"

enum { ROUNDS = 25, THREADS = 3 };

static CUcontext context;
static atomic_uint begun, strange;

/* Until the context's end is noticed. */
static void *churn(void *unused) {
    int code = (int)cuCtxSetCurrent(context);
    void *block = NULL;
    atomic_fetch_add(&begun, 1);
    while (code == 0 && (code = allocate(&block, 1000)) == 0)
        code = release(block);
    /* The block may be gone, or the context. */
    if (code != 1 && code != 201 && code != 709)
        atomic_fetch_add(&strange, 1);
    return unused;
}

int main(void) {
    const size_t bytes = 100 * KIB;
    use_device(0);
    void *kept = new_block(bytes);
    fill(NULL, kept, bytes, 5);
    MUST(synchronize());
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        CUcontext popped;
        MUST(cuCtxCreate(&context, NULL, 0, 0));
        MUST(cuCtxPopCurrent(&popped));
        begun = 0;
        for (int i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, churn, NULL);
        while (begun < THREADS)
            usleep(50);
        usleep((unsigned)round * 40);
        MUST(cuCtxDestroy(context));
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        void *block = new_block(bytes);
        fill(NULL, block, bytes, 6);
        MUST(synchronize());
        if (!holds(block, bytes, 6) || !holds(kept, bytes, 5))
            puts("a block was touched");
        MUST(release(block));
    }
    printf("strange codes: %u\n", strange);
    say("free of the first block", release(kept));
    return 0;
}
