/*
 * Numbers as the planner's files write them: sizes and times up to 2^63, without overflow.
 *
 * A time is kept as a tick: the time plus 2^63 - 1, so that every time from -(2^63 - 1) to 2^63
 * fits into 64 unsigned bits, comparisons are plain, and no difference of two ticks overflows.
 */
#ifndef BFC_PLAN_NUMBER_H
#define BFC_PLAN_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_MOST_BYTES ((uint64_t)1 << 63)
#define PLAN_TICK_OF_ZERO (PLAN_MOST_BYTES - 1)
#define PLAN_TICK_TEXT 24 /* bytes that plan_tick_print needs at most */

/* Parse the first `length` characters of the text, which must be decimal digits, for a tick
 * perhaps after a minus sign. False: they are anything else, or the number is too large. */
bool plan_parse_u64(const char *text, size_t length, uint64_t most, uint64_t *value);
bool plan_parse_tick(const char *text, size_t length, uint64_t *tick);

/* Parses a decimal number of seconds from 0 to 10^9. */
bool plan_parse_seconds(const char *text, double *seconds);

/* Writes the time of a tick into `text` as a decimal number; returns `text`. */
const char *plan_tick_print(uint64_t tick, char text[PLAN_TICK_TEXT]);

/* Sets *rounded to the least multiple of `align` that is not below `bytes`; false: it is above
 * 2^63. */
bool plan_round_up(uint64_t bytes, uint64_t align, uint64_t *rounded);

#endif
