/*
 * The position of one thread in a plan. A course has the allocations that the plan foresees for the
 * thread (slots), in order, and the slot that is expected next. An allocation is matched by its
 * size. If the expected slot has another size, its neighbours are searched, then the sizes that are
 * unique in the plan (anchors). After many allocations without a match the position is lost until
 * the period begins again.
 *
 * Not thread-safe: one thread uses a course. Whatever a plan contains, nothing outside its tables
 * is accessed.
 */
#ifndef BFC_INTERPOSE_CURSOR_H
#define BFC_INTERPOSE_CURSOR_H

#include <stdbool.h>

#include "interpose/features/plan/followed_plan.h"

/* One planned allocation. */
struct bfc_slot {
    uint64_t size;    /* bytes, rounded by bfc_plan_round */
    uint64_t offset;  /* bytes from the start of the plan's memory; UINT64_MAX: no place */
    uint32_t event;   /* index of the event in the plan that allocates the block */
    uint32_t matched; /* `round` of the course when an allocation last matched the slot */
    bfc_addr below[BFC_PLACE_HINTS]; /* hints for bfc_pool_allocate_at */
};

enum { BFC_SIZE_WORDS = 64 };

struct bfc_course {
    struct bfc_slot *slots; /* the slots, in the order of the plan */
    uint32_t count, prefix; /* number of slots; number of slots before the period */
    uint32_t at;            /* index of the expected slot; `count`: no slot comes any more */
    uint32_t round;         /* number of the current period, that is repetition of the loop, from
                               1 on */
    int64_t miss_budget;    /* how many more planned allocations may lose their place to others,
                               in units that follow.c defines */
    int64_t earned;         /* how many units this period has added to `miss_budget` */
    int32_t moved;          /* by how many slots the position last jumped in this period,
                               backwards if negative; 0: it did not jump */
    uint32_t moved_at;      /* index of the slot that was expected just after the last jump */
    uint32_t unmatched;     /* allocations in a row without a match */
    /* while the position is lost: how many allocations in a row match the period's first slots */
    uint32_t begun;
    bool lost;
    bool periodic;               /* whether the period begins again after the last slot */
    bool jitter;                 /* whether a slot also matches sizes down to half its own */
    uint32_t thread, device;     /* the numbers of the thread and the device in the plan */
    const struct bfc_plan *plan; /* the plan whose anchors are searched */
    uint64_t owner; /* atomic: number of the thread that uses the course; 0: no thread does */
    /* one bit for each value of a hash, set if some slot's size has it */
    uint64_t sizes[BFC_SIZE_WORDS];
};

/* The slot that the plan has for an allocation. */
struct bfc_match {
    uint32_t at;     /* if `known`: index of the matched slot, else of the expected one */
    bool known;      /* false: the position is lost, or no slot is left */
    bool same;       /* the allocation matches the slot */
    bool next_round; /* whether the slot belongs to the next period */
    bool jumped;     /* whether the slot is not the expected one */
    bool returned;   /* whether this match shows that the position's last jump was a mistake, and
                        undoes it */
};

/* Fills in `sizes` of the course, which needs its slots. */
void bfc_cursor_note_sizes(struct bfc_course *course);

/* Finds the slot for an allocation of this size, which must be rounded by bfc_plan_round. Changes
 * nothing. */
struct bfc_match bfc_cursor_look(const struct bfc_course *course, uint64_t size);

/* Moves the position past an allocation that was served, or that has failed for good. */
void bfc_cursor_pass(struct bfc_course *course, const struct bfc_match *match, uint64_t size);

/* Moves to the first slot whose event is not before `event`, and begins a new period. */
void bfc_cursor_begin(struct bfc_course *course, uint32_t event);

#endif
