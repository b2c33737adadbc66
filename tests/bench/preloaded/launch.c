/*
 * Launches over a driver whose calls do nothing: one line of JSON with how many a second all
 * threads make together, each in the best of its slices. After each launch the program counts to
 * STEPS, in place of what a driver does. For callgrind: THREADS 1, and two different SLICES.
 *
 *   launch THREADS SLICES [STEPS]
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int cuMemAlloc_v2(uint64_t *pointer, size_t bytes);
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **arguments, void **extra);

enum { LAUNCHES = 2000, MOST_THREADS = 64 };
static pthread_barrier_t barrier;
static int slices, steps;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void spend_time(void) {
    for (int i = 0; i < steps; i++)
        __asm__ volatile("");
}

static void *launch(void *rate) {
    double *best = rate;
    for (int slice = 0; slice < slices; slice++) {
        pthread_barrier_wait(&barrier);
        double start = now();
        for (int i = 0; i < LAUNCHES; i++) {
            cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
            spend_time();
        }
        double here = LAUNCHES / (now() - start);
        *best = here > *best ? here : *best;
    }
    return NULL;
}

int main(int count, char **arguments) {
    int threads = count > 1 ? atoi(arguments[1]) : 2;
    pthread_t others[MOST_THREADS];
    double rates[MOST_THREADS] = {0}, sum = 0;
    uint64_t pointer;
    slices = count > 2 ? atoi(arguments[2]) : 300;
    steps = count > 3 ? atoi(arguments[3]) : 0;
    if (threads < 1 || threads > MOST_THREADS)
        return 2;
    cuMemAlloc_v2(&pointer, 4096);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++)
        pthread_create(&others[i], NULL, launch, &rates[i]);
    for (int i = 0; i < threads; i++) {
        pthread_join(others[i], NULL);
        sum += rates[i];
    }
    printf("{\"threads\": %d, \"launches_per_second\": %.0f}\n", threads, sum);
    return 0;
}
