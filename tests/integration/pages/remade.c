/*
 * A huge block, freed while its last work may still be under way, then blocks that are much
 * smaller, for which its pages are remade; and the huge one again. Contents stay what they were,
 * also where calls fail (SIM_FAIL), and while a stream captures no page is remade. Says so, and
 * stays until its input ends: for bfcstat.
 */
#include "tests/conformance/gpu.h"
#include "tests/conformance/helper.h"

enum { SMALL = 24, ROUNDS = 3 };
#define HUGE_BLOCK (2048 * MIB)

static void use_huge(CUstream stream) {
    char *huge = new_block(HUGE_BLOCK);
    slow_fill(stream, huge, MIB, 99, 1);
    slow_fill(stream, huge + HUGE_BLOCK - MIB, MIB, 99, 1);
    MUST(release(huge));
}

static size_t size_of(unsigned i) {
    return (1 + i % 7) * MIB + i * 4096;
}

static unsigned use_small(CUstream stream) {
    char *small[SMALL];
    unsigned wrong = 0;
    for (unsigned i = 0; i < SMALL; i++) {
        small[i] = new_block(size_of(i));
        slow_fill(stream, small[i], size_of(i), i + 1, 1);
    }
    MUST(synchronize());
    for (unsigned i = 0; i < SMALL; i++)
        wrong += !holds(small[i], size_of(i), i + 1);
    for (unsigned i = 0; i < SMALL; i++)
        MUST(release(small[i]));
    return wrong;
}

static bool leaves_captures_alone(CUstream stream) {
    CUgraph graph;
    use_huge(stream);
    MUST(synchronize());
    MUST(begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    unsigned long long before = counted("cuMemUnmap");
    char *small = new_block(MIB);
    bool alone = counted("cuMemUnmap") == before;
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphDestroy(graph));
    MUST(release(small));
    return alone;
}

int main(void) {
    unsigned wrong = 0;
    use_device(0);
    CUstream stream = new_stream();
    tell("a capture is left alone", leaves_captures_alone(stream));
    for (int round = 0; round < ROUNDS; round++) {
        use_huge(stream);
        wrong += use_small(stream);
    }
    tell("contents are intact", wrong == 0);
    puts("ready");
    fflush(stdout);
    getchar();
    return 0;
}
