/*
 * Goes through the births and deaths of intervals in the order of time, to number the sections
 * (packing_arena.h) and to find the most bytes that are live at any time. O(n) after radix sorts.
 */
#ifndef BFC_PLAN_SWEEP_H
#define BFC_PLAN_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

struct interval {
    uint64_t birth; /* the interval begins at `birth` and ends before `death`, which is later */
    uint64_t death;
    uint64_t size;
};

struct sweep {
    /* By interval: the first section in which the interval is alive, and the section after its last
     * one. The caller provides both arrays, or sets them to NULL. */
    uint32_t *birth;
    uint32_t *death;
    uint32_t sections;
    /* the most bytes that are live at any time; UINT64_MAX if it is a larger number */
    uint64_t most;
    /* index of the interval at whose birth `most` bytes were live for the first time */
    uint32_t most_at;
};

/* Fills in the sweep from the intervals. False: the host has no memory. */
bool sweep_run(struct sweep *sweep, const struct interval *intervals, uint32_t count);

#endif
