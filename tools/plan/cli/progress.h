/*
 * Shows how far bfcplan is, if standard error is a terminal, and handles ^C.
 *
 * ^C (or SIGTERM) prints a message and ends the program at once, without an unfinished file. If the
 * command keeps plans and has found one, ^C ends the search instead, and the best plan so far is
 * checked and written; a second ^C ends the program at once.
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

/* The stages of a command. */
struct progress_way {
    const enum stage *stages; /* in order */
    unsigned count;
    bool keeps_plan; /* after ^C the best plan so far is written */
};

/* Sets the signals' handlers and begins the first stage; on a terminal, starts a thread that shows
 * the progress. `way` must be valid for as long as the program runs. */
void progress_start(const struct progress_way *way);

/* Ends the thread and wipes its line. Call it before anything else is printed. */
void progress_stop(void);

/* progress_stage begins a stage of `steps` steps (watch.h); 0: the work sets their number itself.
 * progress_timed begins a stage that takes at most `seconds`. */
void progress_stage(enum stage stage, uint64_t steps);
void progress_timed(enum stage stage, double seconds);

/* Shows the state of a packing: the callback for struct solve_options. */
void progress_packing(const struct solve_progress *progress);

/* Whether ^C was pressed at least once. The flag is atomic, because a signal handler sets it. */
extern bool progress_interrupted;

#endif
