/*
 * Reads and writes the sizes and times in the planner's files, which are numbers up to 2^63.
 *
 * A time is kept as a tick: the time plus 2^63 - 1. Times from -(2^63 - 1) to 2^63 thus become
 * unsigned 64-bit numbers in the same order, and the difference of two ticks cannot overflow.
 */
#ifndef BFC_PLAN_NUMBER_H
#define BFC_PLAN_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_MOST_BYTES ((uint64_t)1 << 63)
#define PLAN_TICK_OF_ZERO (PLAN_MOST_BYTES - 1)
/* bytes that the text of plan_tick_print needs at most, its zero byte included */
#define PLAN_TICK_TEXT 24

/* plan_parse_u64 reads a number of at most `most` from the first `length` characters of the text,
 * which must be decimal digits. plan_parse_tick reads a time, which may have a minus sign, and
 * returns its tick. False: the text is no such number, or the number is too large. */
bool plan_parse_u64(const char *text, size_t length, uint64_t most, uint64_t *value);
bool plan_parse_tick(const char *text, size_t length, uint64_t *tick);

/* Reads a decimal number of seconds from 0 to 10^9. False: the text is no such number. */
bool plan_parse_seconds(const char *text, double *seconds);

/* Writes the time of the tick into `text` as a decimal number, and returns `text`. */
const char *plan_tick_print(uint64_t tick, char text[PLAN_TICK_TEXT]);

/* Sets *rounded to the least multiple of `align` that is at least `bytes`. False: this multiple is
 * above 2^63. */
bool plan_round_up(uint64_t bytes, uint64_t align, uint64_t *rounded);

#endif
