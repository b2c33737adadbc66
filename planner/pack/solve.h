/*
 * The portfolio: packs every arena of a problem with all processors, until no better plan is
 * possible, the capacity is met, the time is over or the user interrupts.
 *
 * First every part gets the valley greedy in all fixed orders. What then stands above the bound is
 * improved: parts of up to SEARCH_MOST_BOXES by canonical search in all orders in turn, with node
 * limits that double, and all by the valley greedy with random weights, where the box that did not
 * fit is preferred in the next try (squeaky wheel; Joslin and Clements, AAAI 1998). Arenas with
 * constraints are packed by hole filling too; with pins, only so.
 */
#ifndef BFC_PLAN_SOLVE_H
#define BFC_PLAN_SOLVE_H

#include "planner/pack/solve_options.h"
#include "planner/problem/packing_arena.h"

/*
 * Writes each row's offset within the arena of its space. False: no host memory, or no plan was
 * found (the error says which). Blocks until it is done; at least one plan is made whatever the
 * time.
 */
bool solve(const struct problem *problem, const struct solve_options *options, uint64_t *offsets,
           struct solve_result *result, struct plan_error *error);

#endif
