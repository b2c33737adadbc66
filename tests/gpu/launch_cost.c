// What a launch of a kernel that does nothing costs a thread that launches it, in nanoseconds,
// while as many threads launch, each into a stream of its own: the median of many batches, each so
// small that the driver's queue takes it without waiting, and the slowest thread's. usage:
// launch_cost KERNELS_PTX THREADS [BATCHES]
#include "tests/gpu/measuring.h"

#include <pthread.h>

enum { MOST_BATCHES = 400, LAUNCHES = 200, MOST_THREADS = 16 };

static pthread_barrier_t together;
static uint64_t medians[MOST_THREADS];
static size_t batches = MOST_BATCHES;

static void *launch_all(void *number) {
    uint64_t took[MOST_BATCHES];
    MUST(cuCtxSetCurrent(context));
    CUstream stream = new_stream();
    for (size_t batch = 0; batch < batches; batch++) {
        pthread_barrier_wait(&together);
        uint64_t begin = now();
        for (int i = 0; i < LAUNCHES; i++)
            start_spin_of(stream, 0);
        took[batch] = (now() - begin) / LAUNCHES;
        MUST(cuStreamSynchronize(stream));
    }
    medians[(intptr_t)number] = median(took, batches);
    return NULL;
}

int main(int count, char **arguments) {
    int threads = count > 2 ? atoi(arguments[2]) : 0;
    if (count > 3)
        batches = strtoul(arguments[3], NULL, 10);
    if (threads < 1 || threads > MOST_THREADS || !batches || batches > MOST_BATCHES)
        return 1;
    begin_with(arguments[1]);
    pthread_t made[MOST_THREADS];
    pthread_barrier_init(&together, NULL, (unsigned)threads);
    for (intptr_t i = 0; i < threads; i++)
        if (pthread_create(&made[i], NULL, launch_all, (void *)i))
            return 1;
    uint64_t slowest = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(made[i], NULL);
        slowest = medians[i] > slowest ? medians[i] : slowest;
    }
    printf("%lld\n", (long long)slowest);
    return 0;
}
