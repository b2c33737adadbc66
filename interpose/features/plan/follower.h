/* The tables by which one arena follows one plan. They are made once; what is atomic in them may be
 * written by several threads (follow.c). */
#ifndef BFC_INTERPOSE_FOLLOWER_H
#define BFC_INTERPOSE_FOLLOWER_H

#include "interpose/arena/state.h"
#include "interpose/features/plan/followed_plan.h"
#include "interpose/features/plan/gaps.h"

/* The offset of an allocation for which the plan has no place. */
#define BFC_NO_PLACE UINT64_MAX

struct bfc_follower {
    const struct bfc_plan *plan;
    struct bfc_follower *next; /* next in the arena's list */
    uint64_t id;     /* atomic: unique in the process for each time that the plan is followed */
    bfc_addr memory; /* atomic: address of offset 0; 0: the plan has no memory */
    uint64_t bytes;  /* size of the plan's memory */
    uint64_t mean;   /* mean bytes of a planned block */
    unsigned asks;   /* atomic: 1 while a thread requests the memory */
    uint32_t refused_round; /* atomic: round in which the memory was refused; 0: it was not */
    uint32_t stripped;   /* atomic: how often pages of the memory were moved elsewhere, bounded */
    uint32_t not_before; /* atomic: the memory is not requested before this round */
    struct bfc_course *courses;
    uint32_t course_count;
    struct bfc_slot *slots; /* slots of all courses */
    uint32_t slot_count;
    struct bfc_gaps *gaps; /* gaps of each slot; NULL: the host had no memory for them */
    uint32_t looked;       /* number of slots whose gaps were looked up; used by one thread */
    bool wants_gaps;       /* atomic: a thread has asked for gaps that are not looked up yet */
    struct bfc_places places;
};

/* Makes the tables. NULL: the plan has no block on the arena's device, or the host no memory. */
struct bfc_follower *bfc_follower_make(const struct bfc_arena *arena, const struct bfc_plan *plan);
void bfc_follower_drop(struct bfc_follower *follower);

/* Returns the gaps of a slot. NULL: they are not known yet; they will be looked up later. */
const struct bfc_gaps *bfc_follower_gaps(struct bfc_follower *follower,
                                         const struct bfc_slot *slot);

/* Looks up the gaps (gaps.h) of some slots, as many as a short call can. False: all gaps that are
 * wanted are known already. Only one thread may call it at a time. */
bool bfc_follower_look_ahead(struct bfc_follower *follower);

#endif
