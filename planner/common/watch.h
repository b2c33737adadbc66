/*
 * Counts how far a long piece of work has come, so that a program can show it. The work chooses its
 * steps, and counts many of them at once. The counters are global, so only one piece of work in a
 * process can be watched at a time. Thread-safe.
 */
#ifndef BFC_PLAN_WATCH_H
#define BFC_PLAN_WATCH_H

#include <stdint.h>

/* Begins a piece of work of `steps` steps. */
void watch_begin(uint64_t steps);

/* Begins a part of the work, of `steps` steps, at whose end `percent` of the whole is done. The
 * first part comes after watch_begin(0). */
void watch_part(uint64_t percent, uint64_t steps);

/* Counts steps as done. */
void watch_add(uint64_t steps);

/* Returns the share of the work that is done, from 0 to 1. */
double watch_share(void);

#endif
