/*
 * Policies: what differs between `bfc`, `tf` and `pytorch`, as data and a few small functions over
 * the pool's one mechanism. Sources of the rules: openxla/xla's bfc_allocator for `tf`, PyTorch's
 * CUDACachingAllocator for `pytorch`; docs/tuning.md describes both.
 *
 * Everything here is called under the pool's lock. Sizes are in bytes.
 */
#ifndef BFC_POOL_POLICY_H
#define BFC_POOL_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "pool/block.h"

struct bfc_pool;
struct request;

/* What an allocation tries when the device has refused, in order, with another look after each. */
enum rung {
    RUNG_END,
    RUNG_WAIT_ENOUGH,   /* wait for the oldest marks that suffice */
    RUNG_RELEASE_EACH,  /* give idle regions back one by one, growing after each */
    RUNG_RELEASE_LARGE, /* pytorch: one idle region that is large enough, or several large ones */
    RUNG_WAIT_ALL,      /* wait for all marks */
    RUNG_RELEASE_IDLE,  /* give all idle regions back, if that can help, then grow */
    RUNG_RELEASE_ALL,   /* the same, whether or not it can help */
    RUNG_ASK,           /* ask the neighbours, then grow */
};

#define RUNGS_MOST 6

enum back_off { BACK_OFF_TO_SIZE, BACK_OFF_ABOVE_SIZE, BACK_OFF_NONE };

/* What follows from a pool's configuration, worked out once. */
struct rules {
    const enum rung *rungs;
    uint64_t unit;       /* a granule: sizes are multiples of it */
    bool exact;          /* free blocks are sorted, and a region is all of one zone */
    bool rounds;         /* requests are rounded by more than the unit */
    bool cuts_all;       /* whatever is larger than the request is split */
    bool ages;           /* regions note when they became idle */
    uint64_t plain_most; /* granules of the largest request that goes the short way; 0, none does,
                            unless of the above there is but cuts_all */
};

void policy_make(struct bfc_pool *pool);

/* The block size for a request, at least `bytes`, in whole units. */
uint64_t policy_round(const struct bfc_pool *pool, uint64_t bytes);

/* The zone whose regions serve blocks of this size. */
enum block_zone policy_zone(const struct bfc_pool *pool, uint64_t size);

/* May a request of `size` have the smallest free block that is large enough? */
bool policy_fits(const struct bfc_pool *pool, uint64_t size, uint64_t block);

/* Is a block that a request of `size` is given cut? */
bool policy_splits(const struct bfc_pool *pool, uint64_t size, uint64_t block);

/* The next region for a request of `size`, before limit and device have their say; and what to do
 * when the device refuses it. Raises the step where the policy does so before it asks. */
uint64_t policy_growth(struct bfc_pool *pool, uint64_t size);
enum back_off policy_back_off(const struct bfc_pool *pool, uint64_t size);

/* A region was had. */
void policy_grown(struct bfc_pool *pool, uint64_t size);

#endif
