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
    /* for each interval: the first section that it is in, and the one after its last; NULL: not
     * wanted */
    uint32_t *birth;
    uint32_t *death;
    uint32_t sections;
    uint64_t most;    /* the most live bytes; UINT64_MAX if they are more */
    uint32_t most_at; /* the interval at whose birth the live bytes first reached `most` */
};

/* False: no host memory. */
bool sweep_run(struct sweep *sweep, const struct interval *intervals, uint32_t count);

#endif
