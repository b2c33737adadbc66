/* While another thread captures in a way that does not bar this one, its allocations and frees go
 * on as ever [D]: what was freed can be had again, by whatever call. */
#include "tests/conformance/gpu.h"

#include <semaphore.h>

static const size_t part = 192 * MIB, most = 448 * MIB;

struct capture {
    int device;
    CUstreamCaptureMode mode;
    sem_t begun, end;
    pthread_t thread;
    int code;
};

static void *capture(void *argument) {
    struct capture *at = argument;
    CUgraph graph = NULL;
    choose_device(at->device);
    CUstream stream = new_stream();
    MUST(begin_capture(stream, at->mode));
    sem_post(&at->begun);
    sem_wait(&at->end);
    at->code = end_capture(stream, &graph);
    MUST(end_stream(stream));
    return NULL;
}

static void begin(struct capture *at) {
    sem_init(&at->begun, 0, 0);
    sem_init(&at->end, 0, 0);
    pthread_create(&at->thread, NULL, capture, at);
    sem_wait(&at->begun);
}

static void end(struct capture *at) {
    sem_post(&at->end);
    pthread_join(at->thread, NULL);
    say("  end of the capture", at->code);
}

/* Blocks that work still uses when they are freed, over and over. */
static void allocate_and_free(CUstream stream) {
    CUstream other = new_stream();
    int rounds = 0;
    bool intact = true;
    void *block;
    for (; rounds < 60 && allocate(&block, part) == 0; rounds++) {
        if (rounds % 10 == 0) {
            slow_fill(other, block, part / 64, 1, 20);
            MUST(release(block));
            MUST(allocate(&block, part));
            fill(stream, block, part / 64, 2);
            MUST(DRIVER(cuStreamSynchronize)(stream));
            MUST(DRIVER(cuStreamSynchronize)(other)); /* whoever writes late has written by now */
            intact = intact && holds(block, part / 64, 2);
        }
        MUST(release(block));
    }
    MUST(end_stream(other));
    printf("  rounds: %d\n", rounds);
    tell("  contents are intact", intact);
}

static void take_all(CUstream stream) {
    void *block = NULL, *parts[3];
    say("  malloc of most", allocate(&block, most));
    MUST(release(block));
    say("  cudaMallocAsync of most", allocate_async(&block, most, stream));
    say("  cudaFreeAsync", release_async(block, stream));
    MUST(DRIVER(cuStreamSynchronize)(stream));
    for (int i = 0; i < 2; i++)
        parts[i] = new_block(part);
    for (int i = 0; i < 2; i++)
        MUST(release(parts[i]));
    say("  malloc of most, after parts", allocate(&block, most));
    MUST(release(block));
    say("  cudaMallocAsync of most, again", allocate_async(&block, most, stream));
    say("  cudaFreeAsync", release_async(block, stream));
    MUST(DRIVER(cuStreamSynchronize)(stream));
}

static void look(const char *what, int device, CUstreamCaptureMode mode, CUstreamCaptureMode own) {
    struct capture other = {.device = device, .mode = mode};
    CUstreamCaptureMode before = own;
    CUstream stream = new_stream();
    puts(what);
    fill(stream, new_block(1), 1, 0); /* the kernels are loaded before */
    slow_fill(stream, new_block(1), 1, 0, 1);
    MUST(DRIVER(cuStreamSynchronize)(stream));
    begin(&other);
    MUST(DRIVER(cuThreadExchangeStreamCaptureMode)(&before));
    allocate_and_free(stream);
    take_all(stream);
    MUST(DRIVER(cuThreadExchangeStreamCaptureMode)(&before));
    end(&other);
    MUST(end_stream(stream));
}

int main(void) {
    size_t free_bytes, total;
    if (device_count() < 2)
        skip("two devices");
    use_device(0);
    MUST(release(new_block(1)));
    MUST(memory_info(&free_bytes, &total));
    hog(free_bytes - most - 64 * MIB);
    look("a thread-local capture", 0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
         CU_STREAM_CAPTURE_MODE_GLOBAL);
    look("a thread-local capture on another device", 1, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
         CU_STREAM_CAPTURE_MODE_GLOBAL);
    look("a global capture, this thread is relaxed", 0, CU_STREAM_CAPTURE_MODE_GLOBAL,
         CU_STREAM_CAPTURE_MODE_RELAXED);
    look("a global capture, this thread looks at its own only", 0, CU_STREAM_CAPTURE_MODE_GLOBAL,
         CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    return 0;
}
