/*
 * Where one thread is in a plan: its allocations in the order of the plan, and the one that is to
 * come next. What comes is matched by its size; where it differs, the neighbourhood is searched,
 * then what is unique in the plan (anchors); after many that match nothing the place is lost until
 * the period begins again.
 *
 * Not thread-safe: one thread uses a course. Whatever a plan says, nothing here reaches outside its
 * tables.
 */
#ifndef BFC_INTERPOSE_CURSOR_H
#define BFC_INTERPOSE_CURSOR_H

#include <stdbool.h>

#include "interpose/features/plan/followed_plan.h"

/* One planned allocation. */
struct bfc_slot {
    uint64_t size;    /* bytes, as bfc_plan_round has it */
    uint64_t offset;  /* bytes from the start of the plan's memory; UINT64_MAX: no place */
    uint32_t event;   /* of the plan */
    uint32_t matched; /* the round in which it came last */
    bfc_addr below[BFC_PLACE_HINTS]; /* for bfc_pool_allocate_at */
};

enum { BFC_SIZE_WORDS = 64 };

struct bfc_course {
    struct bfc_slot *slots; /* in order */
    uint32_t count, prefix; /* of slots; and of those before the period */
    uint32_t at;            /* the next one; `count`: none is left */
    uint32_t round;         /* from 1 on, rises with each period */
    int64_t miss_budget;    /* for its user: what may still miss... */
    int64_t earned;         /* ...and what the changes of this period added */
    int32_t moved;          /* slots by which the place moved last in this period; 0: none... */
    uint32_t moved_at;      /* ...and the slot that was to come then */
    uint32_t unmatched;     /* in a row that matched nothing */
    uint32_t begun; /* while lost: how many in a row came as at the beginning of the period */
    bool lost;
    bool periodic;                  /* after the last slot comes that of `prefix` */
    bool jitter;                    /* sizes up to the slot's are as planned */
    uint32_t thread, device;        /* as the plan numbers them */
    const struct bfc_plan *plan;    /* for its anchors */
    uint64_t owner;                 /* atomic: the number of the thread that has it; 0: none has */
    uint64_t sizes[BFC_SIZE_WORDS]; /* of the slots: a bit of each one's hash */
};

/* What an allocation is in the plan. */
struct bfc_match {
    uint32_t at;     /* of its slot, or the one instead of which it came; if `known` */
    bool known;      /* false: the course is lost or at its end */
    bool same;       /* it is the planned one */
    bool next_round; /* of the next period */
    bool jumped;     /* it is not the one that was to come next */
    bool returned;   /* it is where the place would be had it not moved */
};

/* Once the slots are there: notes which sizes they have. */
void bfc_cursor_note_sizes(struct bfc_course *course);

/* Looks the size up, which is rounded as in the plan; nothing changes. */
struct bfc_match bfc_cursor_look(const struct bfc_course *course, uint64_t size);

/* The allocation was served, or failed for good: the next one is awaited. */
void bfc_cursor_pass(struct bfc_course *course, const struct bfc_match *match, uint64_t size);

/* Goes to the first slot that is not before this event, as at a plan's beginning. */
void bfc_cursor_begin(struct bfc_course *course, uint32_t event);

#endif
