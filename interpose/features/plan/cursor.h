/*
 * The position of one thread in a plan. A course has the allocations that the plan foresees for the
 * thread (slots), in order, and the slot that is expected next. An allocation is matched by its
 * size. If the expected slot has another size, its neighbours are searched, then the sizes that are
 * unique in the plan (anchors). After many allocations without a match the position is lost until
 * the thread seems to begin the plan's loop again.
 *
 * Not thread-safe: one thread uses a course. Whatever a plan contains, nothing outside its tables
 * is accessed.
 */
#ifndef BFC_INTERPOSE_CURSOR_H
#define BFC_INTERPOSE_CURSOR_H

#include <stdbool.h>

#include "interpose/features/plan/followed_plan.h"

/* One allocation that the plan foresees for a thread. */
struct bfc_slot {
    uint64_t size;    /* bytes, rounded by bfc_plan_round */
    uint64_t offset;  /* bytes from the start of the plan's memory; UINT64_MAX: no place */
    uint32_t event;   /* index of the event in the plan that allocates the block */
    uint32_t matched; /* the course's `round` when an allocation last matched the slot */
    /* where blocks below this one may begin: hints for the search of bfc_pool_allocate_at */
    bfc_addr below[BFC_PLACE_HINTS];
};

enum { BFC_SIZE_WORDS = 64 };

struct bfc_course {
    struct bfc_slot *slots; /* the planned allocations, in the order of the plan */
    uint32_t count, prefix; /* how many planned allocations there are; how many of them come before
                               the loop */
    uint32_t at;            /* index of the planned allocation that is expected next; `count`: none
                               comes any more */
    uint32_t round;         /* number of the present repetition of the loop, from 1 on */
    int64_t miss_budget;    /* how many more planned allocations may lose their place to others,
                               in units that follow.c defines */
    int64_t earned;         /* how many units this repetition of the loop has added to
                               `miss_budget` */
    int32_t moved;          /* by how many planned allocations the position last jumped in this
                               repetition of the loop, backwards if negative; 0: it did not jump */
    uint32_t moved_at;      /* index of the planned allocation that was expected just after the last
                               jump */
    uint32_t unmatched;     /* how many allocations in a row did not match the plan */
    /* while the position is lost: how many allocations in a row match the first ones of the loop */
    uint32_t begun;
    bool lost;
    bool periodic;               /* whether the loop begins again after the last planned
                                    allocation */
    bool jitter;                 /* whether a planned allocation also matches sizes down to half its
                                    own */
    uint32_t thread, device;     /* the numbers of the thread and the device in the plan */
    const struct bfc_plan *plan; /* the plan whose anchors are searched */
    uint64_t owner; /* atomic: number of the thread that uses the course; 0: no thread does */
    /* one bit for each value of a hash of sizes, set if a planned allocation has such a size */
    uint64_t sizes[BFC_SIZE_WORDS];
};

/* Which planned allocation corresponds to one that the program makes. */
struct bfc_match {
    uint32_t at;     /* index of the planned allocation: if `known`, of the corresponding one, else
                        of the one that is expected next */
    bool known;      /* false: the position in the plan is lost, or no planned allocation is left */
    bool same;       /* whether the program's allocation matches the planned one in size */
    bool next_round; /* whether the planned allocation belongs to the loop's next repetition */
    bool jumped;     /* whether the planned allocation is not the one that was expected next */
    bool returned;   /* whether this match undoes the last jump of the position, as a mistake */
};

/* Sets the bits of `sizes` of the course, from its planned allocations, which must be filled in. */
void bfc_cursor_note_sizes(struct bfc_course *course);

/* Finds the planned allocation that corresponds to an allocation of this size, which must be
 * rounded by bfc_plan_round. Changes nothing. */
struct bfc_match bfc_cursor_look(const struct bfc_course *course, uint64_t size);

/* Moves the thread's position in the plan past an allocation that was served, or that has failed
 * for good. */
void bfc_cursor_pass(struct bfc_course *course, const struct bfc_match *match, uint64_t size);

/* Moves the position to the first planned allocation whose event in the plan is not before `event`,
 * and begins a new repetition of the loop. */
void bfc_cursor_begin(struct bfc_course *course, uint32_t event);

#endif
