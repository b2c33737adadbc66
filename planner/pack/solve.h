/*
 * Packs every arena of a problem with several threads. It ends when no better plan is possible, the
 * given capacity or time is reached, or the user interrupts.
 *
 * First, every part of an arena is packed by the valley greedy (valley.h) in each fixed order of
 * boxes (ranks.h). Then parts that end above the lower bound are improved. Those of up to
 * SEARCH_MOST_BOXES boxes are searched (search.h) in many orders, with node limits that grow. All
 * are packed again by the valley greedy with random weights, where a box that did not fit is placed
 * earlier in the next try (squeaky wheel; Joslin and Clements, AAAI 1998). Arenas with constraints
 * are packed by hole filling (fill.h) too, and those with pins only by hole filling.
 */
#ifndef BFC_PLAN_SOLVE_H
#define BFC_PLAN_SOLVE_H

#include "planner/pack/solve_options.h"
#include "planner/problem/packing_arena.h"

/*
 * Writes the offset of each row within the arena of its space. At least one plan is made, however
 * short the given time is. False: the host has no memory, or no plan was found; the error says
 * which.
 */
bool solve(const struct problem *problem, const struct solve_options *options, uint64_t *offsets,
           struct solve_result *result, struct plan_error *error);

#endif
