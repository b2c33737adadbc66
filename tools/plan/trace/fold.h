/*
 * From a stream of events to lifetimes that can be planned: without a period all of it, as it is;
 * with one the prefix and a single period that stands for all of its repetitions.
 *
 * The period's timeline is a ring. What is allocated in one repetition and freed in the next keeps
 * its memory from its birth to the period's end and from the period's start to its death: two rows
 * that share memory. What would live longer than a whole period cannot have one address in all
 * repetitions: it is left unplanned. What the prefix allocated and nobody freed in the first period
 * is kept to the end.
 */
#ifndef BFC_PLAN_FOLD_H
#define BFC_PLAN_FOLD_H

#include "tools/plan/trace/period.h"

/* Free with lifetimes_free. `trace` gives names and hashes. */
bool fold(struct lifetimes *lifetimes, const struct events *events, const struct period *period,
          const struct trace *trace, struct plan_error *error);

#endif
