/*
 * Valley greedy: packs boxes from the bottom up, always into the lowest place.
 *
 * The skyline is kept as maximal level segments, the lowest on top of a heap. Of the boxes that fit
 * between the walls of the lowest segment the best-ranked is laid on it; when none fits the segment
 * is raised to its lower neighbour. A tree over boxes in order of birth that holds (least death,
 * best rank) finds the box. About O((n + sections) log n).
 *
 * Thread-safety: one workspace a thread; the boxes are only read.
 */
#ifndef BFC_PLAN_VALLEY_H
#define BFC_PLAN_VALLEY_H

#include <stdbool.h>

#include "planner/problem/packing_arena.h"

#define NO_BOX UINT32_MAX

struct valley; /* the working memory of one thread */

/*
 * Makes a workspace for parts of up to `boxes` boxes and `sections` sections; NULL: no host memory.
 */
struct valley *valley_create(uint32_t boxes, uint32_t sections);
void valley_destroy(struct valley *valley);

struct valley_result {
    uint64_t peak;   /* the peak of the packing; valid only if `done` is set */
    uint32_t failed; /* the box that did not fit below the limit; NO_BOX: there was none */
    bool done;
};

/*
 * Packs `n` boxes (by birth) preferring low ranks. Gives up as soon as a box ends above `limit`
 * bytes, or soon after `stop`, which is atomic, is set (NULL: it never is). `offsets` is by box,
 * complete only when the result is done. Counts n steps (watch.h).
 */
struct valley_result valley_pack(struct valley *valley, const struct box *boxes, uint32_t n,
                                 uint32_t sections, const uint32_t *rank, uint64_t limit,
                                 const bool *stop, uint64_t *offsets);

#endif
