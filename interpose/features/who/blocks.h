/* The blocks of all pools, as a reader asked for them (layout/who.h). One thread. */
#ifndef BFC_INTERPOSE_BLOCKS_H
#define BFC_INTERPOSE_BLOCKS_H

#include <stddef.h>

#include "layout/who.h"

enum { BFC_LISTED_REGIONS = 1 << 14, BFC_LISTED_BLOCKS = 1 << 20, BFC_MARKS = 1 << 18 };

/* Some 50 MiB of addresses (interpose/host/scratch.h), of which what is filled takes memory. */
struct bfc_blocks {
    size_t region_count, block_count, living_count, recent_count;
    uint64_t left_out; /* bytes of regions for which there was no room */
    struct bfc_who_region regions[BFC_LISTED_REGIONS];
    struct bfc_who_block blocks[BFC_LISTED_BLOCKS];
    struct bfc_who_mark living[BFC_MARKS], recent[BFC_MARKS];
};

/*
 * Adds the regions of device memory with their blocks to an empty list. A pool's lock is held for
 * one block at a time, so that no allocation waits; what changes meanwhile is seen as before or as
 * after, without gaps or overlaps. A region that has gone meanwhile is left out.
 */
void bfc_blocks_list(struct bfc_blocks *list);

#endif
