/* Allocations and frees of a thread that captures: only in relaxed mode [D]; what is barred breaks
 * the capture, and a block that could not be freed is still there. */
#include "tests/conformance/gpu.h"

static const size_t bytes = 4096;

static void end(CUstream stream) {
    CUgraph graph = NULL;
    int code = end_capture(stream, &graph);
    say("  end of the capture", code);
    if (code == 0)
        MUST(DRIVER(cuGraphDestroy)(graph));
}

static void look_at_malloc(CUstream stream, CUstreamCaptureMode mode) {
    void *block = NULL;
    MUST(begin_capture(stream, mode));
    int code = allocate(&block, bytes);
    say("  malloc", code);
    end(stream);
    if (code == 0)
        MUST(release(block));
}

static void look_at_free(CUstream stream, CUstreamCaptureMode mode) {
    void *block = new_block(bytes);
    MUST(begin_capture(stream, mode));
    int code = release(block);
    say("  free", code);
    end(stream);
    if (code != 0)
        say("  free after the capture", release(block));
    say("  and once more", release(block));
}

static void look_at(const char *name, CUstreamCaptureMode mode) {
    CUstream stream = new_stream();
    puts(name);
    look_at_malloc(stream, mode);
    look_at_free(stream, mode);
    MUST(end_stream(stream));
}

int main(void) {
    use_device(0);
    MUST(release(new_block(bytes)));
    look_at("global", CU_STREAM_CAPTURE_MODE_GLOBAL);
    look_at("thread-local", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    look_at("relaxed", CU_STREAM_CAPTURE_MODE_RELAXED);
    return 0;
}
