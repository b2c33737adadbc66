/*
 * Places for what a plan does not foresee: gaps between planned blocks that stay free for as long
 * as the block probably lives, which is as long as the one in whose stead it came.
 */
#ifndef BFC_INTERPOSE_GAPS_H
#define BFC_INTERPOSE_GAPS_H

#include "interpose/plan/cursor.h"

/* A planned block in the order of places. */
struct bfc_placed {
    const struct bfc_slot *slot;
    const struct bfc_course *course;
};

struct bfc_places {
    struct bfc_placed *all; /* by offset */
    uint32_t count;
    uint64_t bytes; /* of the plan's memory */
};

enum { BFC_GAPS = 4 };

/* Writes the offsets of gaps of at least `size` bytes, the smallest gaps first; returns how many,
 * at most BFC_GAPS. `match` is where the course's cursor is. O(planned blocks). */
unsigned bfc_gaps_find(const struct bfc_places *places, const struct bfc_course *course,
                       const struct bfc_match *match, uint64_t size, uint64_t offsets[BFC_GAPS]);

#endif
