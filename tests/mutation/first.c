/* A process's first captures begin while another thread frees, which a thread-local capture allows:
 * whatever that free waits with, the capture is not broken by it. The stand-in GPU takes its time
 * between the call and the look at captures (SIM_LATENCY), as a thread that is held up there does.
 */
#include <stdatomic.h>

#include "tests/conformance/gpu.h"

static atomic_bool begun;
static int code;

static void *free_block(void *block) {
    use_device(0);
    begun = true;
    code = release(block);
    return NULL;
}

static void capture_beside(CUstream stream) {
    pthread_t thread;
    CUgraph graph = NULL;
    void *block = new_block(10 * KIB);
    begun = false;
    pthread_create(&thread, NULL, free_block, block);
    while (!begun)
        ;
    usleep(2000);
    MUST(begin_capture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    usleep(30000);
    int end = end_capture(stream, &graph);
    pthread_join(thread, NULL);
    say("free", code);
    printf("broken captures: %d\n", end != 0);
}

int main(void) {
    use_device(0);
    CUstream stream = new_stream();
    capture_beside(stream);
    capture_beside(stream);
    return 0;
}
