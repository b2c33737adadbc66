/* As 28 and 30, while another thread captures in a way that does not bar this one [D]. */
#include "tests/conformance/gpu.h"

#include <semaphore.h>

static sem_t begun, end;

static void *capture(void *unused) {
    CUgraph graph = NULL;
    choose_device(0);
    CUstream stream = new_stream();
    MUST(begin_capture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    sem_post(&begun);
    sem_wait(&end);
    say("end of the capture", end_capture(stream, &graph));
    return unused;
}

static void look_for_barrier(const char *what, CUstream stream, volatile unsigned *flag) {
    unsigned long long at;
    CUdeviceptr mapped;
    unsigned one = 1;
    *flag = 0;
    MUST(DRIVER(cuMemHostGetDevicePointer)(&mapped, (void *)(uintptr_t)flag, 0));
    at = mapped;
    void *block = new_block(1000);
    spin(stream, 20);
    MUST(launch(stream, "set_flag", (void *[]){&at, &one}));
    say(what, release(block));
    tell("earlier work is done", *flag == 1);
}

int main(void) {
    unsigned long long nowhere = 64;
    unsigned one = 1;
    pthread_t thread;
    void *flag;
    use_device(0);
    CUstream stream = new_stream();
    MUST(DRIVER(cuMemHostAlloc)(&flag, sizeof(unsigned), CU_MEMHOSTALLOC_DEVICEMAP));
    void *block = new_block(4096);
    kernel("spin");
    kernel("set_flag");
    kernel("poke");
    sem_init(&begun, 0, 0);
    sem_init(&end, 0, 0);
    pthread_create(&thread, NULL, capture, NULL);
    sem_wait(&begun);
    look_for_barrier("free after work in a non-blocking stream", stream, flag);
    look_for_barrier("free after work in a per-thread default stream", CU_STREAM_PER_THREAD, flag);
    sem_post(&end);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, capture, NULL);
    sem_wait(&begun);
    spin(stream, 10);
    MUST(launch(stream, "poke", (void *[]){&nowhere, &one}));
    say("free", release(block));
    sem_post(&end);
    pthread_join(thread, NULL);
    say("synchronize", synchronize());
    return 0;
}
