/* What follows from a pool's configuration: the policies (policy.h) as data. */
#ifndef BFC_POOL_RULES_H
#define BFC_POOL_RULES_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The steps that an allocation tries when the device has refused a region, in the order that the
 * policy sets; after each step it searches again.
 */
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

/* What follows from a pool's configuration; policy_make computes it once. */
struct rules {
    const enum rung *rungs;
    bool exact;          /* free blocks are sorted, and a region is all of one zone */
    bool picks_by_rules; /* a free block is not picked by its size alone: `exact`, small_most is not
                            0, or a large region is wholly free (whole.h) */
    bool rounds;         /* requests are rounded by more than usual */
    bool cuts_all;       /* every larger block is split */
    bool ages;           /* regions note when they became idle */
    uint64_t small_most; /* bytes: blocks up to this size have regions of their own; 0: no size has.
                            Not with `exact`, where the policy alone says so */
    bool mixes;          /* yet either size takes what the other has, before pages are asked for */
    uint64_t watched;    /* before so many more allocations large pages are remade (remake.h). Not
                            with `exact` */
    bool prepares;       /* `rounds`, or `watched` is not 0 */
    uint64_t whole_above; /* granules: larger regions are kept whole (whole.h) */
    uint64_t plain_most;  /* granules of the largest request that takes the short way; 0, none,
                             unless cuts_all is the only rule above that is set, and no region is
                             set apart; less while a large region is wholly free (whole.h) */
};

#endif
