#include "planner/loop/loop.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/numbers.h"
#include "planner/image/image.h"
#include "planner/model/validate.h"
#include "planner/pack/solve_alone.h"
#include "planner/period/fold.h"

#define ALIGN 512
#define ENOUGH 1.002

struct loop {
    struct lifetimes lifetimes;
    struct problem problem;
    uint64_t *offsets; /* by row: its offset in bytes in the plan */
    uint64_t *peaks, *bounds;
    struct solve_result result;
};

static void free_loop(struct loop *loop) {
    problem_free(&loop->problem);
    lifetimes_free(&loop->lifetimes);
    free(loop->offsets);
    free(loop->peaks);
    free(loop->bounds);
    free(loop->result.peaks);
}

static uint64_t largest_size(const struct lifetimes *lifetimes) {
    uint64_t largest = 0;
    for (uint32_t i = 0; i < lifetimes->count; i++)
        largest = bfc_max(largest, lifetimes->rows[i].size);
    return largest;
}

/* Returns whether a plan is worth making. A loop of which only one block lives at a time needs
 * none: the pool alone reserves no more than the largest block. */
static bool is_worth_it(const struct loop *loop, uint64_t least_bytes, struct plan_error *error) {
    const uint64_t bound = problem_bound(&loop->problem);
    if (bound == 0 || bound < least_bytes)
        return plan_fail(error, "it never has more than %" PRIu64 " bytes", bound);
    return bound > largest_size(&loop->lifetimes) ||
           plan_fail(error, "its blocks live one at a time");
}

static bool fold_loop(struct loop *loop, const struct events *events, const struct period *period,
                      const struct loop_limits *limits, struct plan_error *error) {
    struct period alone = *period;
    alone.alone = true;
    if (limits->same_sizes && period->jitter)
        return plan_fail(error, "its sizes vary");
    if (period->length > LOOP_MOST_ROWS)
        return plan_fail(error, "a repetition has %u allocations, at most %u are planned",
                         period->length, LOOP_MOST_ROWS);
    if (!fold(&loop->lifetimes, events, &alone, "loop", 0, error) ||
        !problem_build(&loop->problem, &loop->lifetimes, ALIGN, 0, error) ||
        !is_worth_it(loop, limits->least_bytes, error))
        return false;
    loop->offsets = calloc((size_t)loop->lifetimes.count + 1, sizeof *loop->offsets);
    loop->peaks = calloc((size_t)loop->problem.count + 1, sizeof *loop->peaks);
    loop->bounds = calloc((size_t)loop->problem.count + 1, sizeof *loop->bounds);
    return (loop->offsets && loop->peaks && loop->bounds) || plan_fail_memory(error);
}

static bool pack_loop(struct loop *loop, const struct loop_limits *limits,
                      struct plan_error *error) {
    const struct solve_options options = {.seconds = limits->seconds,
                                          .enough = ENOUGH,
                                          .capacity = UINT64_MAX,
                                          .seed = 1,
                                          .interrupted = limits->interrupted};
    const bool good = solve_alone(&loop->problem, &options, loop->offsets, &loop->result, error);
    if (bfc_load_seq_cst(limits->interrupted))
        return plan_fail(error, "interrupted");
    return good && validate(&loop->lifetimes, loop->offsets, ALIGN, 0, loop->peaks, error);
}

static bool make_bytes(struct loop *loop, struct loop_result *result, struct plan_error *error) {
    const struct plan_content content = {.lifetimes = &loop->lifetimes,
                                         .offsets = loop->offsets,
                                         .bounds = loop->bounds,
                                         .peaks = loop->peaks,
                                         .align = ALIGN};
    *result = (struct loop_result){.bound = loop->result.bound};
    for (uint32_t a = 0; a < loop->problem.count; a++) {
        loop->bounds[a] = loop->problem.arenas[a].bound;
        result->peak += loop->peaks[a];
    }
    return plan_image(&content, &result->plan, error);
}

bool loop_plan(struct loop_result *result, const struct events *events, const struct period *period,
               const struct loop_limits *limits, struct plan_error *error) {
    struct loop loop = {.offsets = NULL};
    const bool good = fold_loop(&loop, events, period, limits, error) &&
                      pack_loop(&loop, limits, error) && make_bytes(&loop, result, error);
    free_loop(&loop);
    return good;
}
