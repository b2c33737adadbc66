/*
 * Checks whether offsets are a valid plan. It uses nothing of the code that finds plans, so that an
 * error in that code is noticed.
 *
 * The rows are added in the order of their births to a tree over addresses. For each range of
 * addresses the tree has the two rows that die last, of different classes (rows that share memory
 * are a class). So it shows whether a new row meets a live row that is not of its class. A second
 * tree does so with streams in place of classes. O(n log n).
 */
#ifndef BFC_PLAN_VALIDATE_H
#define BFC_PLAN_VALIDATE_H

#include "planner/model/lifetimes.h"

/* How many steps of progress validate counts for each row (planner/common/watch.h). */
#define VALIDATE_STEPS 12u

/*
 * Returns whether each row has a valid offset: a multiple of `align`, ending within 2^64 bytes,
 * equal to its pin if it has one, equal to the offset of its alias, right behind the row before it
 * in its group, and such that the row overlaps no row that is alive at the same time. If not, the
 * error names the rows. On success, `peaks` gets the peak of each space; it has one element if
 * there are no spaces.
 */
bool validate(const struct lifetimes *lifetimes, const uint64_t *offsets, uint64_t align,
              uint64_t gap, uint64_t *peaks, struct plan_error *error);

/* Returns whether the pins agree with each other: no two rows that have pins overlap while both are
 * alive. */
bool validate_pins(const struct lifetimes *lifetimes, uint64_t align, uint64_t gap,
                   struct plan_error *error);

#endif
