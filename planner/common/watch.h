/*
 * Counts the progress of a long computation, so that a program can show a percentage. The
 * computation says how many steps it has, and then counts steps as done, many at once. The counters
 * are global, so a process can watch only one computation at a time. Thread-safe.
 */
#ifndef BFC_PLAN_WATCH_H
#define BFC_PLAN_WATCH_H

#include <stdint.h>

/* Begins a computation that has `steps` steps. */
void watch_begin(uint64_t steps);

/* Begins the next part of a computation, which has `steps` steps. When they are done, `percent` of
 * the whole computation are done. Before the first part, watch_begin(0) must be called. */
void watch_part(uint64_t percent, uint64_t steps);

/* Counts `steps` more steps as done. */
void watch_add(uint64_t steps);

/* Returns how much of the computation is done, from 0 to 1. */
double watch_share(void);

#endif
