/*
 * BFC_PLAN=auto: finds the loops that the program runs, plans them aside, and has them followed.
 *
 * A pool notes its calls (bfc_pool_take_notes) while nothing repeats or a plan no longer fits. A
 * thread of low priority looks at the notes now and then: at a loop that is known, its plan is
 * followed again; where what came last repeats three times, that is planned and followed. The
 * program's calls do nothing but note. In bounds: notes of BFC_LEARN_NOTES calls, after which there
 * is a pause; BFC_MOST_LEARNED_LOOPS plans a pool; a few seconds a plan, a small part of one
 * processor for looking.
 *
 * In a forked child, and once the process exits, nothing is learned any more; what a context's pool
 * was to learn ends with the context, planning under way too.
 */
#ifndef BFC_INTERPOSE_LEARN_H
#define BFC_INTERPOSE_LEARN_H

#include "interpose/arena/state.h"

#define BFC_LEARN_NOTES ((uint64_t)1 << 20)

/* From now on learns what the arena's program does, if BFC_PLAN=auto; of BFC_PLAN=FILE, keeps what
 * lies beside the plan small. Thread-safe. */
void bfc_learn_begin(struct bfc_arena *arena);

#endif
