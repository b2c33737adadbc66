/*
 * Packs every arena of a problem (packing_arena.h) with several threads. The run ends when no
 * better plan is possible, when the given capacity or time is reached, or when the user interrupts
 * it.
 *
 * First, every part of an arena (parts.h) is packed by the valley greedy (valley.h) in each fixed
 * order of boxes (ranks.h). Then the parts whose packing ends above the lower bound are improved.
 * Parts of up to SEARCH_MOST_BOXES boxes are searched (search.h) in many orders, with node limits
 * that grow. Parts of any size are packed again by the valley greedy with random weights; a box
 * that did not fit is placed earlier in the next try (squeaky wheel; Joslin and Clements, AAAI
 * 1998). An arena that is not `exact` (struct arena) is packed by hole filling (fill.h) too, and an
 * arena with given offsets (pins) only by hole filling.
 */
#ifndef BFC_PLAN_SOLVE_H
#define BFC_PLAN_SOLVE_H

#include "planner/pack/solve_options.h"
#include "planner/problem/packing_arena.h"

/*
 * Writes the offset of each row, counted from the start of the arena that the row is in. Makes at
 * least one plan, however short the given time is. False: the host has no memory, or no plan was
 * found; the error says which.
 */
bool solve(const struct problem *problem, const struct solve_options *options, uint64_t *offsets,
           struct solve_result *result, struct plan_error *error);

#endif
