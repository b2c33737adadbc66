/*
 * The outline of rows that share memory: at each time as high as the largest row that is alive.
 * A sweep over births with a heap of sizes; O(k log k) for k rows.
 */
#ifndef BFC_PLAN_STAIRCASE_H
#define BFC_PLAN_STAIRCASE_H

#include <stdbool.h>

#include "planner/problem/piece.h"

/* Room for the sweep; grows as needed. Zero-filled is empty. */
struct staircase {
    struct piece *rows; /* in: one piece a row, any order */
    uint32_t count;
    uint32_t room;
    uint32_t *heap;
};

bool staircase_reserve(struct staircase *staircase, uint32_t rows);
void staircase_free(struct staircase *staircase);

/* Writes at most 2 × count - 1 pieces in time order, none touching another of the same size. */
uint32_t staircase_outline(struct staircase *staircase, struct piece *out);

#endif
