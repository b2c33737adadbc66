/*
 * One allocation and one free, again and again: nanoseconds a pair, the best of several rounds, as
 * JSON. usage: pair LABEL [ROUNDS]
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int cuMemAlloc_v2(uint64_t *pointer, size_t bytes);
int cuMemFree_v2(uint64_t pointer);

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
        cuMemAlloc_v2(&pointer, 65536);
        cuMemFree_v2(pointer);
    }
    return (now_ns() - start) / PAIRS;
}

int main(int count, char **arguments) {
    int rounds = count > 2 ? atoi(arguments[2]) : 21;
    double best = 1e18;
    static uint64_t live[LIVE];
    for (int i = 0; i < LIVE; i++)
        cuMemAlloc_v2(&live[i], 65536);
    for (int i = 0; i < rounds; i++) {
        double pair = time_pairs();
        best = pair < best ? pair : best;
    }
    printf("{\"mode\": \"%s\", \"ns_per_pair\": %.1f}\n", count > 1 ? arguments[1] : "", best);
    return 0;
}
