/*
 * The loops that one pool is known to run, each with its plan; and which of them runs now.
 *
 * Not thread-safe.
 */
#ifndef BFC_INTERPOSE_LEARNED_LOOPS_H
#define BFC_INTERPOSE_LEARNED_LOOPS_H

#include "interpose/features/plan/followed_plan.h"
#include "interpose/features/plan/learn/stream.h"
#include "planner/loop/loop.h"

/* Training step, evaluation step, checkpoint, and as many again: then no more is learned. */
#define BFC_MOST_LEARNED_LOOPS 8

struct bfc_learned_loop {
    struct bfc_plan plan;
    struct file_text bytes; /* the plan's */
    struct plan_lead lead;  /* what came before it */
    uint64_t bound, peak;   /* bytes */
};

struct bfc_learned_loops {
    struct bfc_learned_loop *list[BFC_MOST_LEARNED_LOOPS];
    unsigned count;
    const struct bfc_learned_loop *avoided; /* is not recognised; NULL: all are */
};

/* Where in a loop a stream stands: the event of the plan that the next allocation is. */
struct bfc_position {
    const struct bfc_learned_loop *learned_loop; /* NULL: in none that is known */
    uint32_t event;
};

/*
 * By the sizes of the last allocations, of which some may be others, be missing or have come in
 * between. O(allocations of all loops) at worst, and some hundred alignments of a few allocations.
 */
struct bfc_position bfc_learned_loops_recognise(const struct bfc_learned_loops *learned_loops,
                                                const struct events *events);

/*
 * Looks for a loop in the stream, plans it, and adds it. `wanted`: only one whose first repetition
 * was over after so many events is planned. `whole`: the stream has all calls since the context
 * began. Where the stream stood in it; no learned_loop: there is none, or it could not be
 * planned, which is logged. Takes as long as the limits say.
 */
struct bfc_position bfc_learned_loops_learn(struct bfc_learned_loops *learned_loops,
                                            const struct events *events, uint64_t wanted,
                                            bool whole, const struct loop_limits *limits);

/* Frees them all: nobody follows their plans any more. */
void bfc_learned_loops_forget(struct bfc_learned_loops *learned_loops);

#endif
