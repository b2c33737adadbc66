/*
 * The portfolio in the calling thread: what a running job can bear, which must not start the C
 * library's threads by name.
 */
#ifndef BFC_PLAN_SOLVE_ALONE_H
#define BFC_PLAN_SOLVE_ALONE_H

#include "planner/pack/solve_options.h"
#include "planner/problem/packing_arena.h"

/*
 * As solve (solve.h), whatever the number of threads. Once interrupted it makes no plan any more,
 * and may fail for want of one.
 */
bool solve_alone(const struct problem *problem, const struct solve_options *options,
                 uint64_t *offsets, struct solve_result *result, struct plan_error *error);

#endif
