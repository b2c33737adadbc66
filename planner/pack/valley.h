/*
 * Valley greedy: packs boxes from the bottom up, always into the lowest place.
 *
 * The skyline, which is the top of the boxes placed so far, is kept as segments of one height, in a
 * heap by height. Of the boxes that fit into the lowest segment, between its higher neighbours, the
 * one of the lowest rank is placed on it. If none fits, the segment is raised to the height of the
 * lower one of its neighbours. A tree over the boxes in the order of births, with the earliest
 * death and the lowest rank below each node, finds the box. The time is about O((n + sections) log
 * n).
 *
 * Thread-safety: each thread needs its own struct valley; the boxes are only read.
 */
#ifndef BFC_PLAN_VALLEY_H
#define BFC_PLAN_VALLEY_H

#include <stdbool.h>

#include "planner/problem/packing_arena.h"

#define NO_BOX UINT32_MAX

struct valley; /* the working memory of one thread */

/*
 * Makes working memory for parts of up to `boxes` boxes and `sections` sections. NULL: the host has
 * no memory.
 */
struct valley *valley_create(uint32_t boxes, uint32_t sections);
void valley_destroy(struct valley *valley);

struct valley_result {
    uint64_t peak; /* the peak of the packing in bytes; valid only if `done` is set */
    /* the box that would have ended above the limit, which ended the packing; NO_BOX: none did */
    uint32_t failed;
    bool done;
};

/*
 * Packs `n` boxes, which are given in the order of their births; boxes of low rank go first. It
 * stops when a box would end above `limit` bytes, or soon after the atomic flag `stop` is set;
 * `stop` may be NULL. `offsets` has one element for each box, and is complete only if `done` of the
 * result is true. It counts n steps of progress (watch.h).
 */
struct valley_result valley_pack(struct valley *valley, const struct box *boxes, uint32_t n,
                                 uint32_t sections, const uint32_t *rank, uint64_t limit,
                                 const bool *stop, uint64_t *offsets);

#endif
