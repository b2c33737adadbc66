/* Places for allocations that a plan does not foresee: gaps between planned blocks that stay free
 * as long as the allocation probably lives. It is taken to live as long as the planned block in
 * whose place it came. */
#ifndef BFC_INTERPOSE_GAPS_H
#define BFC_INTERPOSE_GAPS_H

#include "interpose/features/plan/cursor.h"

/* All blocks of a plan that are in the memory of one arena. */
struct bfc_places {
    const struct bfc_slot **all; /* the planned blocks, sorted by their offsets */
    uint32_t count;
    uint64_t bytes; /* size of the plan's memory in bytes */
};

enum { BFC_GAPS = 8 };

/* The largest gaps between planned blocks that stay free while one planned block lives, in
 * ascending order of size. */
struct bfc_gaps {
    struct bfc_gap {
        uint64_t start, size; /* offset in the plan's memory, and size, in bytes */
        uint64_t before;      /* offset of the planned block that ends where the gap begins */
    } list[BFC_GAPS];
    uint32_t count;
    /* atomic: enum bfc_gaps_state; the gaps may be read once this is BFC_GAPS_KNOWN */
    uint32_t state;
};

enum bfc_gaps_state { BFC_GAPS_UNKNOWN, BFC_GAPS_WANTED, BFC_GAPS_KNOWN };

/* Finds the gaps for a planned allocation; its own planned place counts as free. O(planned blocks),
 * so no call of the program makes it. One thread at a time. */
void bfc_gaps_find(struct bfc_gaps *gaps, const struct bfc_places *places,
                   const struct bfc_plan *plan, const struct bfc_slot *slot);

#endif
