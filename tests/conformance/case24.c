/* The same with two threads, each in its own per-thread default stream. */
#include "tests/conformance/reuse.h"

static const size_t bytes = 100 * KIB;

static void *write_and_free(void *unused) {
    use_device(0);
    void *block = new_block(bytes);
    slow_fill(CU_STREAM_PER_THREAD, block, bytes, OLD, SLOW_MS);
    say("free", release(block));
    return unused;
}

static void *allocate_and_look(void *unused) {
    use_device(0);
    look_at_reuse(bytes, CU_STREAM_PER_THREAD);
    return unused;
}

int main(void) {
    use_device(0);
    for (int round = 0; round < 2; round++) {
        in_thread(write_and_free, NULL);
        in_thread(allocate_and_look, NULL);
    }
    return 0;
}
