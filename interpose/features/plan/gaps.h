/*
 * Places for what a plan does not foresee: gaps between planned blocks that stay free for as long
 * as the block probably lives, which is as long as the one in whose stead it came.
 */
#ifndef BFC_INTERPOSE_GAPS_H
#define BFC_INTERPOSE_GAPS_H

#include "interpose/features/plan/cursor.h"

/* The planned blocks in the order of places. */
struct bfc_places {
    const struct bfc_slot **all; /* by offset */
    uint32_t count;
    uint64_t bytes; /* of the plan's memory */
};

enum { BFC_GAPS = 8 };

/* The largest gaps that stay free while one planned block lives, the smallest of them first. */
struct bfc_gaps {
    struct bfc_gap {
        uint64_t start, size; /* bytes */
        uint64_t before;      /* where the planned block begins at whose end it begins */
    } list[BFC_GAPS];
    uint32_t count;
    uint32_t state; /* atomic: enum bfc_gaps_state; all else is read only once they are known */
};

enum bfc_gaps_state { BFC_GAPS_UNKNOWN, BFC_GAPS_WANTED, BFC_GAPS_KNOWN };

/* Looks the gaps of a slot up, its own place being among what is free. O(planned blocks), so not
 * for a call of the program: one thread of the library does it. */
void bfc_gaps_find(struct bfc_gaps *gaps, const struct bfc_places *places,
                   const struct bfc_plan *plan, const struct bfc_slot *slot);

#endif
