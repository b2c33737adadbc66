/*
 * The outline of rows that share memory: at each time as high as the largest row that is alive.
 * A sweep over births with a heap of sizes; O(k log k) for k rows.
 */
#ifndef BFC_PLAN_STAIRCASE_H
#define BFC_PLAN_STAIRCASE_H

#include <stdbool.h>

#include "planner/problem/piece.h"

/* The memory of the sweep, which grows as needed. A structure that is all zeros is valid and
 * empty. */
struct staircase {
    struct piece *rows; /* input: one piece for each row, in any order */
    uint32_t count;
    uint32_t room;
    uint32_t *heap;
};

bool staircase_reserve(struct staircase *staircase, uint32_t rows);
void staircase_free(struct staircase *staircase);

/* Writes the outline as at most 2 × count - 1 pieces in order of time. Pieces of the same size
 * never touch. */
uint32_t staircase_outline(struct staircase *staircase, struct piece *out);

#endif
