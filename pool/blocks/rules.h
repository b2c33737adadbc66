/* The policies (pool/policy/policy.h) as data. */
#ifndef BFC_POOL_RULES_H
#define BFC_POOL_RULES_H

#include <stdbool.h>
#include <stdint.h>

/* The steps that an allocation tries when the device has refused a region, in the order that the
 * policy sets. After each step the allocation searches for a block again. */
enum rung {
    RUNG_END,
    RUNG_WAIT_ENOUGH,   /* wait for the oldest fences that suffice */
    RUNG_RELEASE_EACH,  /* give idle regions back one by one, growing after each */
    RUNG_RELEASE_LARGE, /* pytorch: one idle region that is large enough, or several large ones */
    RUNG_WAIT_ALL,      /* wait for all fences */
    RUNG_RELEASE_IDLE,  /* give all idle regions back, if that can help, then grow */
    RUNG_RELEASE_ALL,   /* the same, whether or not it can help */
};

#define RUNGS_MOST 5

/* policy_make computes these from the pool's configuration; later events change a few of them. */
struct rules {
    const enum rung *rungs;
    bool exact;          /* free blocks are sorted, and all of a region is of one zone */
    bool picks_by_rules; /* a free block is not picked by its size alone: `exact`, small_most is not
                            0, or a large region is wholly free (whole.h) */
    bool rounds;         /* requests are rounded to more than whole granules and BFC_LARGE */
    bool cuts_all;       /* every larger block is split */
    bool ages;           /* regions note when they became idle */
    uint64_t small_most; /* blocks of at most this many bytes have regions of their own; 0: none
                            have, or `exact` is set and the policy decides */
    bool mixes;          /* a request may take a block of the other zone before the pool grows */
    uint64_t watched;    /* remake.h checks this many more allocations; 0 with `exact` */
    bool prepares;       /* `rounds` is set, or `watched` is not 0 */
    uint64_t whole_above; /* regions of more than this many granules are kept whole (whole.h) */
    uint64_t plain_most;  /* granules of the largest request that the hot path serves. 0 unless
                             cuts_all is the only rule above that is set, and no region is set
                             apart; less while a large region is wholly free (whole.h) */
};

#endif
