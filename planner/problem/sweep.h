/*
 * A sweep over intervals of time: numbers the sections (packing_arena.h) and finds the most live
 * bytes.
 * O(n) after radix sorts.
 */
#ifndef BFC_PLAN_SWEEP_H
#define BFC_PLAN_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

struct interval {
    uint64_t birth; /* the interval contains its birth but not its death; birth < death */
    uint64_t death;
    uint64_t size;
};

struct sweep {
    uint32_t *birth; /* by interval: its sections, half-open; NULL: not wanted */
    uint32_t *death;
    uint32_t sections;
    uint64_t most;    /* the most live bytes; UINT64_MAX if they are more */
    uint32_t most_at; /* the interval whose birth first reached `most` */
};

/* False: no host memory. */
bool sweep_run(struct sweep *sweep, const struct interval *intervals, uint32_t count);

#endif
