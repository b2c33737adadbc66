/*
 * A follower: one plan and one arena, as tables.
 *
 * They are made once; what is atomic in them may be written by several threads (follow.c).
 */
#ifndef BFC_INTERPOSE_FOLLOWER_H
#define BFC_INTERPOSE_FOLLOWER_H

#include "interpose/arena/state.h"
#include "interpose/features/plan/followed_plan.h"
#include "interpose/features/plan/gaps.h"

/* The offset of what the plan does not place. */
#define BFC_NO_PLACE UINT64_MAX

struct bfc_follower {
    const struct bfc_plan *plan;
    struct bfc_follower *next; /* of the arena's */
    uint64_t id;               /* atomic: of this time that it is followed, unique in the process */
    bfc_addr memory;           /* atomic: where offset 0 is; 0: there is no memory for the plan */
    uint64_t bytes;            /* of it */
    uint64_t mean;             /* bytes of a planned block */
    unsigned asks;             /* atomic: whether a thread asks for the memory */
    uint32_t refused_round;    /* in which the memory was refused; it is asked for again later */
    uint32_t stripped;         /* atomic: how often pages of it went elsewhere... */
    uint32_t not_before;       /* ...and the round before which it is not asked for again */
    struct bfc_course *courses;
    uint32_t course_count;
    struct bfc_slot *slots; /* of all courses */
    uint32_t slot_count;
    struct bfc_gaps *gaps; /* of each slot; NULL: the host had no memory for them */
    uint32_t looked;       /* slots before it have their gaps; by the library's own thread */
    bool wants_gaps;       /* atomic: a slot's gaps are wanted and not known */
    struct bfc_places places;
};

/* NULL: nothing of the plan is of the arena's device, or the host has no memory. */
struct bfc_follower *bfc_follower_make(const struct bfc_arena *arena, const struct bfc_plan *plan);
void bfc_follower_drop(struct bfc_follower *follower);

/* The gaps of one of its slots; NULL: not known yet, but wanted. */
const struct bfc_gaps *bfc_follower_gaps(struct bfc_follower *follower,
                                         const struct bfc_slot *slot);

/* Looks up gaps of slots for a while. False: all that are wanted are known. One thread at a time.
 */
bool bfc_follower_look_ahead(struct bfc_follower *follower);

#endif
