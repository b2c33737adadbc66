/*
 * Hole filling: places items one by one, each at the lowest offset that is free or in the smallest
 * hole that fits. It respects all constraints: items of several pieces, given offsets, and the time
 * that must lie between rows of different streams. To find the pieces that are alive together with
 * a given one, it searches a binary tree: the leaves are the pieces in the order of births, and
 * each other node has the latest death of the placed pieces below it. Each find takes O(log n). The
 * idea is that of XLA's heap simulator and TFLite's greedy planner.
 *
 * Thread-safety: each thread needs its own struct fill; the problem (struct arena) is only read.
 */
#ifndef BFC_PLAN_FILL_H
#define BFC_PLAN_FILL_H

#include "planner/problem/packing_arena.h"

struct fill; /* the working memory of one thread */

struct fill *fill_create(const struct arena *arena);
void fill_destroy(struct fill *fill);

struct fill_result {
    uint64_t peak;
    bool done;
    bool no_memory;
};

/*
 * Places all items: first those that have a given offset (a pin), then the others by rising rank,
 * each at the lowest free offset or (if `tightest`) in the smallest hole. It stops when an item
 * would end above `limit` bytes; `done` of the result is then false. `offsets` has one element for
 * each item. The caller must have checked that pinned items do not overlap.
 */
struct fill_result fill_pack(struct fill *fill, const uint32_t *rank, bool tightest, uint64_t limit,
                             uint64_t *offsets);

#endif
