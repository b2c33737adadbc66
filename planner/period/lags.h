/*
 * At which distances a string of tokens resembles itself, if not all of it does: short stretches
 * that are the same vote for the distances to those before them.
 */
#ifndef BFC_PLAN_LAGS_H
#define BFC_PLAN_LAGS_H

#include <stdbool.h>
#include <stdint.h>

#define LAGS_MOST 8
#define LAGS_LEAST 8 /* tokens: what repeats at less is no loop */

struct lags {
    uint32_t list[LAGS_MOST]; /* tokens; the most votes first */
    uint32_t count;
};

/*
 * The distances with the most votes, each the best of its neighbourhood: what is left out and what
 * comes in between moves some votes by about the root of the distance. They are counted from token
 * 0 on. O(n). False: no host memory.
 */
bool lags_find(struct lags *lags, const uint64_t *tokens, uint32_t n);

#endif
