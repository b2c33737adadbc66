/* One thread captures again and again; another one allocates and frees all the time, which a
 * thread-local capture allows. No capture is broken by what we do in the other thread's calls. */
#include <stdatomic.h>

#include "tests/conformance/gpu.h"

enum { CAPTURES = 100 };

static const size_t bytes = 10 * KIB;
static atomic_bool done;
static CUstream busy;

static void *churn(void *unused) {
    use_device(0);
    while (!done) {
        void *block = new_block(bytes);
        fill(busy, block, bytes, 1);
        MUST(release(block));
    }
    return unused;
}

static bool capture(CUstream stream, void *block) {
    CUgraph graph = NULL;
    MUST(begin_capture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    usleep(200);
    unsigned long long at = address(block), count = bytes;
    unsigned value = 2;
    /* Refused if the capture is broken already; its end says so too. */
    launch(stream, "fill", (void *[]){&at, &count, &value});
    bool held = end_capture(stream, &graph) == 0;
    if (held)
        MUST(cuGraphDestroy(graph));
    return held;
}

int main(void) {
    pthread_t thread;
    unsigned broken = 0;
    use_device(0);
    kernel("fill");
    busy = new_stream();
    CUstream stream = new_stream();
    void *block = new_block(bytes);
    pthread_create(&thread, NULL, churn, NULL);
    for (unsigned i = 0; i < CAPTURES; i++) {
        broken += !capture(stream, block);
        usleep(300);
    }
    done = true;
    pthread_join(thread, NULL);
    printf("broken captures: %u\n", broken);
    return 0;
}
