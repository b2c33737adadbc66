/* Allocations and frees of another thread: barred by a global capture, unless that thread is
 * relaxed; not by a thread-local one [D]. */
#include "tests/conformance/gpu.h"

static const size_t bytes = 4096;

struct call {
    CUstreamCaptureMode own; /* the other thread's mode */
    bool frees;
    void *block;
    int code;
};

static void *make_call(void *argument) {
    struct call *call = argument;
    CUstreamCaptureMode mode = call->own;
    MUST(DRIVER(cuThreadExchangeStreamCaptureMode)(&mode));
    choose_device(0);
    call->code = call->frees ? release(call->block) : allocate(&call->block, bytes);
    return NULL;
}

static void look(const char *what, CUstreamCaptureMode capture, CUstreamCaptureMode own,
                 bool frees) {
    CUgraph graph = NULL;
    CUstream stream = new_stream();
    struct call call = {.own = own, .frees = frees, .block = frees ? new_block(bytes) : NULL};
    puts(what);
    MUST(begin_capture(stream, capture));
    in_thread(make_call, &call);
    say(frees ? "  free" : "  malloc", call.code);
    say("  end of the capture", end_capture(stream, &graph));
    if ((call.code == 0) != frees)
        say("  free afterwards", release(call.block));
    MUST(end_stream(stream));
}

static void look_at_both(const char *what, CUstreamCaptureMode capture, CUstreamCaptureMode own) {
    look(what, capture, own, false);
    look(what, capture, own, true);
}

int main(void) {
    use_device(0);
    MUST(release(new_block(bytes)));
    look_at_both("global capture", CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_GLOBAL);
    look_at_both("global capture, relaxed thread", CU_STREAM_CAPTURE_MODE_GLOBAL,
                 CU_STREAM_CAPTURE_MODE_RELAXED);
    look_at_both("thread-local capture", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                 CU_STREAM_CAPTURE_MODE_GLOBAL);
    look_at_both("relaxed capture", CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_GLOBAL);
    return 0;
}
