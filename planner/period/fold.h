/*
 * Turns a stream of events into lifetimes that can be planned: without a period the whole stream;
 * with one the prefix and a single period, which is planned for all repetitions.
 *
 * The period's timeline is a ring. What is allocated in one repetition and freed in the next keeps
 * its memory from its birth to the period's end and from the period's start to its death: two rows
 * that share memory. A block that lives longer than a period cannot have one address in all
 * repetitions, so it is left unplanned. A block of the prefix that is not freed in the first period
 * is kept to the end. Sizes are as the pool rounds them.
 */
#ifndef BFC_PLAN_FOLD_H
#define BFC_PLAN_FOLD_H

#include "planner/model/lifetimes.h"
#include "planner/period/period.h"

/* Free with lifetimes_free. `path` is what messages call the stream, and must outlive them. */
bool fold(struct lifetimes *lifetimes, const struct events *events, const struct period *period,
          const char *path, uint64_t program_hash, struct plan_error *error);

#endif
