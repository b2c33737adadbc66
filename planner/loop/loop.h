/*
 * Plans the loop of a running program: takes the calls seen so far and the loop found in them, and
 * makes the bytes of a plan. It works in the calling thread and for a limited time.
 */
#ifndef BFC_PLAN_LOOP_H
#define BFC_PLAN_LOOP_H

#include "planner/common/text.h"
#include "planner/period/period.h"

/* A loop is planned only if a repetition has at most this many allocations, which limits the time
 * and memory for planning. */
#define LOOP_MOST_ROWS ((uint32_t)1 << 19)

struct loop_limits {
    /* about how many seconds planning may take; the first complete plan is made even if that takes
     * longer */
    double seconds;
    /* a loop is planned only if at some time at least this many bytes are live */
    uint64_t least_bytes;
    bool same_sizes;         /* if true, a loop is not planned if its sizes vary */
    const bool *interrupted; /* atomic; when another thread sets it, loop_plan soon returns false */
};

struct loop_result {
    struct file_text plan; /* the bytes of the plan's file, to be freed by file_free */
    /* the lower bound of all plans and the peak of this plan, both in bytes */
    uint64_t bound, peak;
};

/*
 * Plans one repetition of the loop, validates the plan and makes its bytes (layout/plan.h). False:
 * the planning was interrupted, the loop has too many allocations, too few bytes or varying sizes,
 * or the host has no memory; the error says which. Two threads must not call it with the same
 * events.
 */
bool loop_plan(struct loop_result *result, const struct events *events, const struct period *period,
               const struct loop_limits *limits, struct plan_error *error);

#endif
