/*
 * Hole filling: places items one by one into the holes between those already placed, at the lowest
 * place or in the tightest hole. Honours every constraint: pieces, pins, streams. A tree over
 * pieces in order of birth, holding the latest death of those placed, finds the pieces that a piece
 * overlaps: O(log n) for each piece met, so O(n × met × log n). After XLA's heap simulator and
 * TFLite's greedy planner.
 *
 * Thread-safety: one workspace a thread; the arena is only read.
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
 * Places all items, the pinned ones first, the others by rank. Gives up as soon as one ends above
 * `limit` bytes. `offsets` is by item. The caller must have checked that pinned items do not
 * overlap.
 */
struct fill_result fill_pack(struct fill *fill, const uint32_t *rank, bool tightest, uint64_t limit,
                             uint64_t *offsets);

#endif
