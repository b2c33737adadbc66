/*
 * Captures of two contexts under way at once. The end of one in a thread's default stream is not
 * that of the other one in its default stream of another context; and a capture ends with its
 * stream's context, whichever one was current when it began.
 */
#include "tests/conformance/gpu.h"

static const size_t bytes = 64 * KIB, large = 512 * MIB;

static CUcontext first, second;

static void *free_one(void *block) {
    MUST(cuCtxSetCurrent(first));
    say("  free by another thread", release(block));
    return NULL;
}

static int end_of(CUstream stream) {
    CUgraph graph = NULL;
    int code = end_capture(stream, &graph);
    if (code == 0)
        MUST(cuGraphDestroy(graph));
    return code;
}

/* Both begin, the second one ends, and another thread frees. */
static void look_at_default_streams(void) {
    void *block = new_block(bytes);
    puts("default streams");
    MUST(begin_capture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    MUST(cuCtxSetCurrent(second));
    MUST(begin_capture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    say("  end of the second", end_of(CU_STREAM_PER_THREAD));
    in_thread(free_one, block);
    MUST(cuCtxSetCurrent(first));
    say("  end of the first", end_of(CU_STREAM_PER_THREAD));
}

/* The context of a stream that captures ends: memory that is freed after that is there again. */
static void look_at_the_end(void) {
    puts("a context's end");
    MUST(cuCtxSetCurrent(second));
    CUstream stream = new_stream();
    MUST(cuCtxSetCurrent(first));
    MUST(begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuCtxDestroy(second));
    for (int i = 0; i < 3; i++) {
        void *block = new_block(large);
        say("  free", release(block));
    }
}

int main(void) {
    use_device(0);
    MUST(cuCtxGetCurrent(&first));
    MUST(CREATE_CONTEXT(&second, 0));
    MUST(cuCtxSetCurrent(first));
    look_at_default_streams();
    look_at_the_end();
    return 0;
}
