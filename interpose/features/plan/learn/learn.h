/*
 * BFC_PLAN=auto: finds the loops that the program runs, plans them in another thread, and has the
 * plans followed.
 *
 * A pool notes its calls (bfc_pool_take_notes) while nothing repeats or a plan no longer fits. A
 * thread of low priority looks at the notes now and then. If it recognises a loop that it has
 * planned, that plan is followed again; if the last allocations repeat three times, they are
 * planned and the plan is followed. The program's calls only take notes. Bounds: after notes of
 * BFC_LEARN_NOTES calls there is a pause; a pool has at most BFC_MOST_LEARNED_LOOPS plans; planning
 * takes a few seconds a plan, and looking a small fraction of one processor.
 *
 * Nothing is learned in a forked child or once the process exits. Learning for a pool ends with its
 * context, even while a plan is being made.
 */
#ifndef BFC_INTERPOSE_LEARN_H
#define BFC_INTERPOSE_LEARN_H

#include "interpose/arena/state.h"

#define BFC_LEARN_NOTES ((uint64_t)1 << 20)

/* Starts learning what the program does in the arena, if BFC_PLAN=auto. With BFC_PLAN=FILE, keeps
 * the memory outside the plan small. Thread-safe. */
void bfc_learn_begin(struct bfc_arena *arena);

#endif
