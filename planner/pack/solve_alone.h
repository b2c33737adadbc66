/*
 * Runs the solver in the calling thread, for planning inside a job. The preloaded library must not
 * refer to pthread_create by name, because before glibc 2.34 that function is in libpthread, which
 * a process may lack.
 */
#ifndef BFC_PLAN_SOLVE_ALONE_H
#define BFC_PLAN_SOLVE_ALONE_H

#include "planner/pack/solve_options.h"
#include "planner/problem/packing_arena.h"

/*
 * Packs every arena of the problem and writes the offset of each row, as solve (solve.h) does, but
 * in the calling thread alone: options->threads is ignored. Once *options->interrupted is set, it
 * starts no further work, and fails if it has no plan yet.
 */
bool solve_alone(const struct problem *problem, const struct solve_options *options,
                 uint64_t *offsets, struct solve_result *result, struct plan_error *error);

#endif
