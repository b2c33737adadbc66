/*
 * Finds the usual course of a loop whose repetitions differ (some allocations are missing, others
 * are inserted, sizes change), so that an exact search (period.h) finds no period.
 *
 * The period's length is found by a vote (lags.h), and what many repetitions have by aligning them
 * with the last one (align.h), as sequences are aligned to the centre of a star (D. Gusfield,
 * 1993).
 */
#ifndef BFC_PLAN_USUAL_H
#define BFC_PLAN_USUAL_H

#include "planner/common/error.h"
#include "planner/period/event_stream.h"

/*
 * Writes a stream of a few equal repetitions that ends at the same point of the loop as `events`:
 * with the allocations that many of its last repetitions had, each freed after its median age.
 * There must be at least four repetitions of which nine tenths are alike, or eight of which seven
 * tenths are; else `usual` is empty. False: no host memory; `usual` is untouched. Free with
 * events_free. Not thread-safe on the same events.
 */
bool usual_find(struct events *usual, const struct events *events, struct plan_error *error);

#endif
