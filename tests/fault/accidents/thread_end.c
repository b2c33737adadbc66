/* A thread ends while its default stream captures, and the capture with it: what others free after
 * that, and what they freed before it, can be allocated again. */
#include "tests/conformance/gpu.h"

static void *large;

static void *begin_and_end(void *unused) {
    use_device(0);
    MUST(begin_capture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    return unused;
}

static void *free_in_capture(void *unused) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    use_device(0);
    MUST(begin_capture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuThreadExchangeStreamCaptureMode(&mode));
    say("free while it captures", release(large));
    return unused;
}

static void look(const char *when, void *(*work)(void *)) {
    size_t free_bytes, total;
    MUST(memory_info(&free_bytes, &total));
    size_t bytes = free_bytes / 4 * 3;
    puts(when);
    large = new_block(bytes);
    in_thread(work, NULL);
    if (work == begin_and_end)
        say("free", release(large));
    large = NULL;
    say("as large a block", allocate(&large, bytes));
    say("free of it", release(large));
    MUST(synchronize());
}

int main(void) {
    use_device(0);
    look("a capture that ends with its thread", begin_and_end);
    look("a block freed during it", free_in_capture);
    look("again", begin_and_end);
    return 0;
}
