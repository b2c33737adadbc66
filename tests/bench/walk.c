/*
 * What a call stack of 16 native frames costs: nanoseconds, the best of many rounds, as one line of
 * JSON. With an argument that many walks are made and nothing is timed, for counting instructions.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "interpose/features/who/stacks/walk.h"

enum { FRAMES = 16, MOST = 40, WALKS = 1000, ROUNDS = 200 };

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static size_t walk(long walks) {
    uint64_t calls[MOST];
    size_t frames = 0;
    bool in_handler;
    while (walks-- > 0)
        frames = bfc_walk_stack(calls, MOST, &in_handler);
    return frames;
}

static uint64_t best_of_rounds(void) {
    uint64_t best = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = now_ns();
        walk(WALKS);
        uint64_t took = now_ns() - start;
        best = took < best ? took : best;
    }
    return best;
}

int run_at(size_t depth, long walks);

/* Deeper, until there are so many frames. */
__attribute__((noinline)) int run_at(size_t depth, long walks) {
    size_t frames = walk(1);
    int result = 0;
    if (frames < FRAMES)
        result = run_at(depth + 1, walks);
    else if (walks)
        walk(walks);
    else
        printf("{\"frames\": %zu, \"ns_per_walk\": %.1f}\n", frames,
               (double)best_of_rounds() / WALKS);
    __asm__ volatile("" ::: "memory"); /* no tail call */
    return result;
}

int main(int count, char **arguments) {
    return run_at(0, count > 1 ? strtol(arguments[1], NULL, 10) : 0);
}
