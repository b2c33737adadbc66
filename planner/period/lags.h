/*
 * Finds the distances at which a string of tokens resembles itself, even if much of it differs:
 * short stretches vote for their distances to equal stretches.
 */
#ifndef BFC_PLAN_LAGS_H
#define BFC_PLAN_LAGS_H

#include <stdbool.h>
#include <stdint.h>

#define LAGS_MOST 8
#define LAGS_LEAST 8 /* tokens: the shortest distance that is reported */

struct lags {
    uint32_t list[LAGS_MOST]; /* the distances in tokens, those with the most votes first */
    uint32_t count;
};

/*
 * Finds the distances with the most votes, of neighbouring ones the one that fits the string's
 * beginning best: missing and inserted tokens move some votes by about the square root of the
 * distance. O(n). False: no host memory.
 */
bool lags_find(struct lags *lags, const uint64_t *tokens, uint32_t n);

#endif
