/*
 * Computes the outline of rows that share memory: at each time it is as high as the largest live
 * row. Goes through the rows in the order of births, with the live rows in a heap by size. O(k log
 * k) for k rows.
 */
#ifndef BFC_PLAN_STAIRCASE_H
#define BFC_PLAN_STAIRCASE_H

#include <stdbool.h>

#include "planner/problem/piece.h"

/* The input and the working memory of staircase_outline, which staircase_reserve enlarges. A
 * structure that is all zeros is valid and empty. */
struct staircase {
    struct piece *rows; /* the input, written by the caller: one piece for each row, in any order */
    uint32_t count;
    uint32_t room;
    uint32_t *heap;
};

bool staircase_reserve(struct staircase *staircase, uint32_t rows);
void staircase_free(struct staircase *staircase);

/* Writes the outline to `out` as at most 2 × count - 1 pieces, in the order of time, and returns
 * their number. Where two pieces touch, their sizes differ. */
uint32_t staircase_outline(struct staircase *staircase, struct piece *out);

#endif
