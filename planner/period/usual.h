/*
 * Finds a loop whose repetitions differ: some allocations are missing, others are inserted, or
 * sizes change. An exact search (period.h) finds no period in such a stream.
 *
 * The length of a repetition is found by votes (lags.h). Then every repetition is aligned with the
 * last one, to find what many of them have (align.h). This is star alignment: to align several
 * sequences, each is aligned with the same one of them (D. Gusfield, 1993).
 */
#ifndef BFC_PLAN_USUAL_H
#define BFC_PLAN_USUAL_H

#include "planner/common/error.h"
#include "planner/period/event_stream.h"

/*
 * Writes into `usual` a stream of a few equal repetitions of the loop, which have the allocations
 * that many of the last repetitions in `events` had. Each block is freed after its median age,
 * counted in allocations. The stream ends at the same point of the loop as `events`.
 *
 * There must be at least four repetitions in which nine tenths of the allocations are as in the
 * loop, or eight in which seven tenths are; else `usual` is empty. The caller frees it by
 * events_free. False: the host has no memory, and `usual` is unchanged. Two threads must not call
 * it with the same events.
 */
bool usual_find(struct events *usual, const struct events *events, struct plan_error *error);

#endif
