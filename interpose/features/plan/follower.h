/* The tables by which one arena follows one plan. They are made once; what is atomic in them may be
 * written by several threads (follow.c). */
#ifndef BFC_INTERPOSE_FOLLOWER_H
#define BFC_INTERPOSE_FOLLOWER_H

#include "interpose/arena/state.h"
#include "interpose/features/plan/followed_plan.h"
#include "interpose/features/plan/gaps.h"

/* The offset of a block for which the plan has no place. */
#define BFC_NO_PLACE UINT64_MAX

struct bfc_follower {
    const struct bfc_plan *plan;
    struct bfc_follower *next; /* the tables of another plan in the arena's list; NULL: there is no
                                  other */
    uint64_t id;     /* atomic: unique in the process; changes when the plan is followed again */
    bfc_addr memory; /* atomic: where the plan's memory begins; 0: the plan has no memory */
    uint64_t bytes;  /* size of the plan's memory in bytes */
    uint64_t mean;   /* mean size of a planned block in bytes */
    unsigned asks;   /* atomic: 1 while a thread is requesting the plan's memory */
    /* atomic: the repetition of the loop in which the device refused the plan's memory, counted
     * from 1; 0: it did not */
    uint32_t refused_round;
    /* atomic: how often pages of the plan's memory have moved elsewhere, up to a bound */
    uint32_t stripped;
    /* atomic: number of the repetition of the program's loop before which the plan's memory is not
     * requested again */
    uint32_t not_before;
    struct bfc_course *courses;
    uint32_t course_count;
    struct bfc_slot *slots; /* the planned allocations of all threads, one thread's after the
                               other's */
    uint32_t slot_count;
    /* for each of `slots`: places for unplanned allocations (gaps.h); NULL: the host had no
     * memory */
    struct bfc_gaps *gaps;
    uint32_t looked; /* for how many of `slots` the gaps were looked up; used by one thread only */
    bool wants_gaps; /* atomic: whether a thread has asked for gaps that are not looked up yet */
    struct bfc_places places;
};

/* Makes the tables by which the arena follows the plan. NULL: the plan has no block on the arena's
 * device, or the host has no memory. */
struct bfc_follower *bfc_follower_make(const struct bfc_arena *arena, const struct bfc_plan *plan);
void bfc_follower_drop(struct bfc_follower *follower);

/* Returns places that are free while the block of a planned allocation lives (gaps.h). NULL: they
 * are not known; if the planned allocation has a place in the plan, another thread is asked to look
 * them up. */
const struct bfc_gaps *bfc_follower_gaps(struct bfc_follower *follower,
                                         const struct bfc_slot *slot);

/* Looks up the gaps (gaps.h) beside some planned blocks, as many as a short call can. False: all
 * gaps that are wanted are known already. Only one thread may call it at a time. */
bool bfc_follower_look_ahead(struct bfc_follower *follower);

/* Whether, in this repetition of the loop, the plan's memory may be requested again after it was
 * refused or lost. */
bool bfc_follower_may_ask(const struct bfc_follower *follower, uint32_t round);

/* Lets some repetitions of the loop pass before the plan's memory is requested again: if its pages
 * moved away and back in every repetition, that would cost more than the plan saves. */
void bfc_follower_rest(struct bfc_follower *follower);

#endif
