/*
 * Runs the portfolio in the calling thread, for use inside a job: the library that is preloaded
 * there must not refer to pthread_create by name.
 */
#ifndef BFC_PLAN_SOLVE_ALONE_H
#define BFC_PLAN_SOLVE_ALONE_H

#include "planner/pack/solve_options.h"
#include "planner/problem/packing_arena.h"

/*
 * As solve (solve.h), but ignores options->threads. Once interrupted it starts no further job, and
 * fails if there is no plan yet.
 */
bool solve_alone(const struct problem *problem, const struct solve_options *options,
                 uint64_t *offsets, struct solve_result *result, struct plan_error *error);

#endif
