/*
 * One allocation and one free, again and again: nanoseconds a pair, the best of several rounds, as
 * JSON. usage: pair LABEL [ROUNDS]
 * With RUNTIME: through a shared runtime, as most programs go.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef RUNTIME
int cudaMalloc(uint64_t *pointer, size_t bytes);
int cudaFree(uint64_t pointer);
#define ALLOCATE cudaMalloc
#define RELEASE cudaFree
#else
int cuMemAlloc_v2(uint64_t *pointer, size_t bytes);
int cuMemFree_v2(uint64_t pointer);
#define ALLOCATE cuMemAlloc_v2
#define RELEASE cuMemFree_v2
#endif

enum { PAIRS = 100000, LIVE = 1000 };

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static double time_pairs(void) {
    uint64_t pointer;
    double start = now_ns();
    for (int i = 0; i < PAIRS; i++) {
        ALLOCATE(&pointer, 65536);
        RELEASE(pointer);
    }
    return (now_ns() - start) / PAIRS;
}

int main(int count, char **arguments) {
    int rounds = count > 2 ? atoi(arguments[2]) : 21;
    double best = 1e18;
    static uint64_t live[LIVE];
    for (int i = 0; i < LIVE; i++)
        ALLOCATE(&live[i], 65536);
    for (int i = 0; i < rounds; i++) {
        double pair = time_pairs();
        best = pair < best ? pair : best;
    }
    printf("{\"mode\": \"%s\", \"ns_per_pair\": %.1f}\n", count > 1 ? arguments[1] : "", best);
    return 0;
}
