/*
 * The usual course of a loop whose repetitions differ: allocations are missing, others come in
 * between, sizes change. An exact search (period.h) sees no period in it.
 *
 * The period's length is found by a vote (lags.h), what most repetitions have by aligning them with
 * the last one (align.h), as sequences are aligned to the centre of a star (D. Gusfield, 1993).
 */
#ifndef BFC_PLAN_USUAL_H
#define BFC_PLAN_USUAL_H

#include "planner/common/error.h"
#include "planner/period/event_stream.h"

/*
 * What the stream would have been had nothing changed in its last repetitions: a few of them that
 * are the same, up to where the stream stands, each with what most of them had, and freed when most
 * of those were. Needs at least four of which nine tenths are alike, or eight of which seven tenths
 * are. Empty: it has none. False: no host memory; `usual` is untouched. Free with events_free. Not
 * thread-safe on the same events.
 */
bool usual_find(struct events *usual, const struct events *events, struct plan_error *error);

#endif
