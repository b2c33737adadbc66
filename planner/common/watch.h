/*
 * How far a long piece of work is, for whoever shows it. The work counts steps of its own choice,
 * in many of them at once; one piece of work a process is watched, since the counters are the
 * process's. Thread-safe.
 */
#ifndef BFC_PLAN_WATCH_H
#define BFC_PLAN_WATCH_H

#include <stdint.h>

/* Begins a piece of work of `steps` steps. */
void watch_begin(uint64_t steps);

/* Begins a part of it, of `steps` steps, after which so many percent of the whole are done; after
 * watch_begin(0) the first one. */
void watch_part(uint64_t percent, uint64_t steps);

/* Counts steps as done. */
void watch_add(uint64_t steps);

/* The share that is done, from 0 to 1. */
double watch_share(void);

#endif
