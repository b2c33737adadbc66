/*
 * Turns the allocations and frees of a program into lifetimes that can be planned. If no loop was
 * found, all allocations become lifetimes. Else only the allocations before the loop and those of
 * one repetition do, and the plan then serves for all repetitions.
 *
 * In a plan of a loop the time after the end of the repetition continues at its start. So if one
 * repetition allocates a block and the next one frees it, the block gets two rows that share
 * memory: one from its birth to the repetition's end, and one from the repetition's start to its
 * death. A block that lives longer than a repetition gets no offset, because it would need a
 * different one in each repetition. A block that was allocated before the loop, and is not freed by
 * the end of the first repetition, is planned to live until that end. Sizes are rounded as the pool
 * rounds them.
 */
#ifndef BFC_PLAN_FOLD_H
#define BFC_PLAN_FOLD_H

#include "planner/model/lifetimes.h"
#include "planner/period/period.h"

/* Fills in the lifetimes, which the caller frees by lifetimes_free. `path` is the file of the
 * events, for messages, and is not copied. False: the host has no memory. */
bool fold(struct lifetimes *lifetimes, const struct events *events, const struct period *period,
          const char *path, uint64_t program_hash, struct plan_error *error);

#endif
