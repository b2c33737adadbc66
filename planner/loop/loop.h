/*
 * Plans a loop while it runs: from a stream of calls and its period to the bytes of a plan, in the
 * calling thread, within a given time.
 */
#ifndef BFC_PLAN_LOOP_H
#define BFC_PLAN_LOOP_H

#include "planner/common/text.h"
#include "planner/period/period.h"

/* Loops with more allocations in a repetition are not planned, which bounds time and memory. */
#define LOOP_MOST_ROWS ((uint32_t)1 << 19)

struct loop_limits {
    double seconds;          /* how long planning may take, about; one plan is made in any case */
    uint64_t least_bytes;    /* a loop is planned only if at some time it has at least this many
                              * live bytes */
    bool same_sizes;         /* a loop whose sizes vary is not planned */
    const bool *interrupted; /* atomic; once it is set, loop_plan fails */
};

struct loop_result {
    struct file_text plan; /* the bytes of a plan file; free with file_free */
    uint64_t bound, peak;  /* the lower bound and the plan's peak, in bytes */
};

/*
 * Plans one repetition, validates the plan and makes its bytes (layout/plan.h). False: interrupted,
 * too many rows, too few bytes, sizes that vary or no host memory; the error says which. Not
 * thread-safe on the same events.
 */
bool loop_plan(struct loop_result *result, const struct events *events, const struct period *period,
               const struct loop_limits *limits, struct plan_error *error);

#endif
