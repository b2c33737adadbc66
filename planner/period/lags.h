/*
 * Finds the distances at which a stream of events repeats itself, even if many events differ. Each
 * event is given as a number, its token. The stream is divided into overlapping stretches of a few
 * events; each stretch votes for its distances to the next equal stretches.
 */
#ifndef BFC_PLAN_LAGS_H
#define BFC_PLAN_LAGS_H

#include <stdbool.h>
#include <stdint.h>

#define LAGS_MOST 8
#define LAGS_LEAST 8 /* the shortest distance that is reported, in events */

struct lags {
    uint32_t list[LAGS_MOST]; /* the distances, in events, those with the most votes first */
    uint32_t count;
};

/*
 * Finds the distances with the most votes. Where events are missing or inserted, the votes for one
 * distance are spread over others near it, up to about its square root away. Of these distances,
 * the one is reported at which the beginning of the stream is repeated best. O(n). False: the host
 * has no memory.
 */
bool lags_find(struct lags *lags, const uint64_t *tokens, uint32_t n);

#endif
