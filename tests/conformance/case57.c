/* As 28 and 30, while another thread captures in a way that does not bar this one [D]. */
#include <semaphore.h>

#include "tests/conformance/barrier.h"

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

int main(void) {
    unsigned long long nowhere = 64;
    unsigned one = 1;
    pthread_t thread;
    use_device(0);
    CUstream stream = new_stream();
    volatile unsigned *flag = new_flag();
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
