/*
 * The loops that one pool is known to run, each with its plan; and which of them runs now.
 *
 * Not thread-safe.
 */
#ifndef BFC_INTERPOSE_LESSONS_H
#define BFC_INTERPOSE_LESSONS_H

#include "interpose/features/plan/followed_plan.h"
#include "interpose/features/plan/learn/stream.h"
#include "planner/loop/loop.h"

/* Training step, evaluation step, checkpoint, and as many again: then no more is learned. */
#define BFC_MOST_LESSONS 8

struct bfc_lesson {
    struct bfc_plan plan;
    struct file_text bytes; /* the plan's */
    struct plan_lead lead;  /* what came before it */
    uint64_t bound, peak;   /* bytes */
};

struct bfc_lessons {
    struct bfc_lesson *list[BFC_MOST_LESSONS];
    unsigned count;
    const struct bfc_lesson *avoided; /* is not recognised; NULL: all are */
};

/* Where in a loop a stream stands: the event of the plan that the next allocation is. */
struct bfc_position {
    const struct bfc_lesson *lesson; /* NULL: in none that is known */
    uint32_t event;
};

/*
 * By the sizes of the last allocations, of which some may be others, be missing or have come in
 * between. O(allocations of all loops) at worst, and some hundred alignments of a few allocations.
 */
struct bfc_position bfc_lessons_recognise(const struct bfc_lessons *lessons,
                                          const struct events *events);

/*
 * Looks for a loop in the stream, plans it, and adds it. `wanted`: only one whose first repetition
 * was over after so many events is planned. `whole`: the stream has all calls since the context
 * began. Where the stream stood in it; no lesson: there is none, or it could not be
 * planned, which is logged. Takes as long as the limits say.
 */
struct bfc_position bfc_lessons_learn(struct bfc_lessons *lessons, const struct events *events,
                                      uint64_t wanted, bool whole,
                                      const struct loop_limits *limits);

/* Frees them all: nobody follows their plans any more. */
void bfc_lessons_forget(struct bfc_lessons *lessons);

#endif
