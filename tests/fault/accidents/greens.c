/* A green context costs the same however many there have been before. */
#include <time.h>

#include "tests/conformance/gpu.h"

enum { ROUND = 100, ROUNDS = 20, BETWEEN = 20000 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void make_and_destroy(CUdevResourceDesc part, unsigned times) {
    CUgreenCtx green;
    CUcontext context;
    for (unsigned i = 0; i < times; i++) {
        MUST(cuGreenCtxCreate(&green, part, 0, CU_GREEN_CTX_DEFAULT_STREAM));
        MUST(cuCtxFromGreenCtx(&context, green));
        MUST(cuGreenCtxDestroy(green));
    }
}

/* The shortest of many rounds, since others may have the processor in most. */
static double time_round(CUdevResourceDesc part) {
    double least = 1e9;
    for (unsigned i = 0; i < ROUNDS; i++) {
        double start = now();
        make_and_destroy(part, ROUND);
        double took = now() - start;
        least = took < least ? took : least;
    }
    return least;
}

int main(void) {
    CUdevResource all;
    CUdevResourceDesc part;
    use_device(0);
    void *block = new_block(MIB);
    MUST(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    MUST(cuDevResourceGenerateDesc(&part, &all, 1));
    double early = time_round(part);
    make_and_destroy(part, BETWEEN);
    double late = time_round(part);
    puts(late > 5 * early ? "the cost grows" : "the cost stays");
    say("free", release(block));
    return 0;
}
