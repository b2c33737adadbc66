/* The loops that a pool is known to run, with their plans, and which of them runs now. Not
 * thread-safe. */
#ifndef BFC_INTERPOSE_LEARNED_LOOPS_H
#define BFC_INTERPOSE_LEARNED_LOOPS_H

#include "interpose/features/plan/followed_plan.h"
#include "planner/loop/loop.h"

/* The most loops of one pool: enough for a training step, an evaluation step and a checkpoint,
 * twice over. */
#define BFC_MOST_LEARNED_LOOPS 8

struct bfc_learned_loop {
    struct bfc_plan plan;
    struct plan_lead lead; /* the allocations that came before the loop */
    uint64_t bound, peak;  /* in bytes: the least that any plan of the loop needs, and what this
                              plan needs */
};

struct bfc_learned_loops {
    struct bfc_learned_loop *list[BFC_MOST_LEARNED_LOOPS];
    unsigned count;
    /* the loop whose plan was dropped last because few allocations got their planned places, so
     * that it is not recognised at once again; NULL: none */
    const struct bfc_learned_loop *avoided;
};

/* Where the program is in a loop: which event of the loop's plan comes next. */
struct bfc_position {
    const struct bfc_learned_loop *learned_loop; /* NULL: the program runs no known loop */
    uint32_t event;
};

/* Finds which known loop the program runs, and where in it the program is, by the sizes of the last
 * allocations. Some of these may differ from the loop's, be missing or be additional. O(allocations
 * of all loops) at worst, and some hundred alignments (planner/period/align.h) of a few
 * allocations. */
struct bfc_position bfc_learned_loops_recognise(const struct bfc_learned_loops *learned_loops,
                                                const struct events *events);

/* Looks for a loop in a sequence of events, plans it and adds it to the known ones. A loop is
 * planned only if its first repetition ended within the first `wanted` events. `whole` says that
 * the events are all calls since the context began. Returns the position in the loop; its
 * `learned_loop` is NULL if no loop was found or the loop could not be planned, which is logged.
 * Takes as long as the limits of planning allow. */
struct bfc_position bfc_learned_loops_learn(struct bfc_learned_loops *learned_loops,
                                            const struct events *events, uint64_t wanted,
                                            bool whole, const struct loop_limits *limits);

/* Frees all loops; nobody may follow their plans any more. */
void bfc_learned_loops_forget(struct bfc_learned_loops *learned_loops);

#endif
