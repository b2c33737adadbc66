/*
 * What bfcplan solve tells while it works: how far it is, when standard error is a terminal, and
 * what ^C does, everywhere.
 *
 * ^C (or SIGTERM) before there is any plan says so and ends the program at once; later it ends the
 * search, and the best plan so far is checked and written; a second one ends the program at once
 * and leaves no unfinished file behind.
 */
#ifndef BFC_PLAN_PROGRESS_H
#define BFC_PLAN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/pack/options.h"

enum stage { STAGE_READ, STAGE_PREPARE, STAGE_PACK, STAGE_CHECK, STAGE_WRITE, STAGES };

/* Takes the signals over; starts a thread that shows the progress, if there is a terminal. */
void progress_start(void);
/* Wipes the line; call it before anything else is printed. */
void progress_stop(void);

/* Begins a stage of so many steps (watch.h); 0: the work itself says how many. */
void progress_stage(enum stage stage, uint64_t steps);

/* For solve: what it found so far. */
void progress_packing(const struct solve_progress *progress);

/* Atomic: set by the first ^C. */
extern bool progress_interrupted;

#endif
