/* A context is destroyed while another thread's free in it waits for work: the free succeeds, or
 * its context is destroyed. Its pointer was valid when it began. */
#include <stdatomic.h>

#include "tests/conformance/gpu.h"

enum { ROUNDS = 40 };
static const size_t bytes = 100 * KIB;

static CUcontext context;
static atomic_bool frees;
static int code;

static void *free_late(void *unused) {
    MUST(cuCtxSetCurrent(context));
    void *block = new_block(bytes);
    slow_fill(NULL, block, bytes, 1, 4);
    frees = true;
    code = release(block);
    return unused;
}

int main(void) {
    unsigned others = 0;
    use_device(0);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t thread;
        CUcontext popped;
        MUST(cuCtxCreate(&context, NULL, 0, 0));
        kernel("slow_fill");
        MUST(cuCtxPopCurrent(&popped));
        frees = false;
        pthread_create(&thread, NULL, free_late, NULL);
        while (!frees)
            usleep(50);
        usleep(500);
        MUST(cuCtxDestroy(context));
        pthread_join(thread, NULL);
        others += code != 0 && code != 709;
    }
    printf("frees with another error: %u\n", others);
    return 0;
}
