/*
 * The independent validator: checks whether offsets are a valid plan. It shares only the rows with
 * the solvers. O(n log n): rows are swept in order of birth over a tree of addresses that holds,
 * for each stretch, the two latest deaths among rows that do not share memory with each other; a
 * second such tree does the same by streams.
 */
#ifndef BFC_PLAN_VALIDATE_H
#define BFC_PLAN_VALIDATE_H

#include "planner/model/lifetimes.h"

/* Steps that validate counts for each row (planner/common/watch.h). */
#define VALIDATE_STEPS 12u

/*
 * Returns whether every row is aligned, within 2^64 bytes, at its pin, at the offset of its alias,
 * right after its group's previous row, and apart from every row that is alive with it. The error
 * names the rows. `peaks` (by space, one entry where there are none) is set on success.
 */
bool validate(const struct lifetimes *lifetimes, const uint64_t *offsets, uint64_t align,
              uint64_t gap, uint64_t *peaks, struct plan_error *error);

/* Checks only whether the rows that have pins are apart from each other. */
bool validate_pins(const struct lifetimes *lifetimes, uint64_t align, uint64_t gap,
                   struct plan_error *error);

#endif
