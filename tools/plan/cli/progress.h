/*
 * Shows how much of its work bfcplan has done, if standard error is a terminal, and handles ^C.
 *
 * ^C (or SIGTERM) prints a message and ends the program at once, without leaving an unfinished
 * file. If the command searches for a plan and has found one, ^C ends the search instead, and the
 * best plan so far is checked and written; a second ^C ends the program at once.
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

/* The stages that a sub-command goes through. */
struct progress_way {
    const enum stage *stages; /* in the order in which they come */
    unsigned count;
    bool keeps_plan; /* whether the best plan found so far is written after ^C */
};

/* Begins the first stage and sets the handlers of SIGINT and SIGTERM. If standard error is a
 * terminal, starts a thread that shows the progress. `way` must be valid for as long as the program
 * runs. */
void progress_start(const struct progress_way *way);

/* Ends the thread that shows the progress, and wipes its line. Must be called before anything else
 * is printed. */
void progress_stop(void);

/* progress_stage begins a stage of `steps` steps, which are counted by watch_add (watch.h). If
 * `steps` is 0, the functions that do the stage's work say how many there are. progress_timed
 * begins a stage that takes at most `seconds`. */
void progress_stage(enum stage stage, uint64_t steps);
void progress_timed(enum stage stage, double seconds);

/* Stores how far the search for a plan is, so that it can be shown. The solver calls it
 * (solve_options.progress). */
void progress_packing(const struct solve_progress *progress);

/* Whether ^C was pressed at least once. The flag is atomic, because a signal handler sets it. */
extern bool progress_interrupted;

#endif
