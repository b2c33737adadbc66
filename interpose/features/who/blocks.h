/* Lists the blocks of all pools for another process that asks which code holds the memory
 * (layout/who.h). Not thread-safe. */
#ifndef BFC_INTERPOSE_BLOCKS_H
#define BFC_INTERPOSE_BLOCKS_H

#include "interpose/features/who/sites.h"

enum { BFC_LISTED_REGIONS = 1 << 14, BFC_LISTED_BLOCKS = 1 << 20, BFC_MARKS = 1 << 18 };

/* The list of blocks. It takes about 50 MiB of addresses (interpose/host/scratch.h), but memory
 * only for the part that is filled. */
struct bfc_blocks {
    size_t region_count, block_count, living_count, recent_count;
    uint64_t left_out; /* bytes of the regions that are not listed because an array was full */
    struct bfc_who_region regions[BFC_LISTED_REGIONS];
    struct bfc_who_block blocks[BFC_LISTED_BLOCKS];
    struct bfc_who_mark living[BFC_MARKS], recent[BFC_MARKS];
};

/*
 * Adds the regions of device memory with their blocks to an empty list. The pool's lock is taken
 * anew for each block, so that no allocation waits long. A block that changes meanwhile is listed
 * as it was before or after the change, without gaps or overlaps; a region that is given back is
 * left out.
 */
void bfc_blocks_list(struct bfc_blocks *list);

/* Writes the call stacks (`sites`) into a file of the shared folder (layout/who.h), with the list
 * of blocks unless `blocks` is NULL. Of the file's header, the caller sets the fields about samples
 * and the executable, and this function the others. */
void bfc_who_write_file(const struct bfc_sites *sites, struct bfc_who_header *header,
                        const struct bfc_blocks *blocks);

#endif
