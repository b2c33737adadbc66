/*
 * What bfcplan tells while it works: how far it is, when standard error is a terminal, and what ^C
 * does, everywhere.
 *
 * ^C (or SIGTERM) says so and ends the program at once, and leaves no unfinished file behind. But
 * where a plan is kept, once there is one, it ends the search, and the best plan so far is checked
 * and written; a second one ends the program at once.
 */
#ifndef BFC_PLAN_PROGRESS_H
#define BFC_PLAN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/pack/solve_options.h"

enum stage {
    STAGE_READ,
    STAGE_PREPARE,
    STAGE_PACK,
    STAGE_CHECK,
    STAGE_WRITE,
    STAGE_PERIOD,
    STAGE_ORDER,
    STAGES
};

/* A command's way; constant, for as long as it runs. */
struct progress_way {
    const enum stage *stages; /* in order */
    unsigned count;
    bool keeps_plan; /* what ^C finds is written */
};

/* Takes the signals over, and begins the first stage; starts a thread that shows the progress, if
 * there is a terminal. */
void progress_start(const struct progress_way *way);
/* Wipes the line; call it before anything else is printed. */
void progress_stop(void);

/* Begins a stage of so many steps (watch.h); 0: the work itself says how many. progress_timed: one
 * that takes so many seconds at most. */
void progress_stage(enum stage stage, uint64_t steps);
void progress_timed(enum stage stage, double seconds);

/* For solve: what it found so far. */
void progress_packing(const struct solve_progress *progress);

/* Atomic: set by the first ^C. */
extern bool progress_interrupted;

#endif
