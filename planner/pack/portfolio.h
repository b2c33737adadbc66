/*
 * A run of the solver: what its threads share, and how they choose what to do. Each thread does one
 * job after another, as long as a better plan is possible. The lock guards what several threads
 * change.
 */
#ifndef BFC_PLAN_PORTFOLIO_H
#define BFC_PLAN_PORTFOLIO_H

#include "planner/pack/solve_options.h"
#include "planner/pack/worker.h"

struct portfolio {
    const struct problem *problem;
    const struct solve_options *options;
    struct arena_state *arenas;
    uint32_t made; /* how many elements of `arenas` are initialized, from the first on */
    pthread_mutex_t lock;
    /* atomic; once it is true, no further job is begun, except those that the first plan needs */
    bool stop;
    double started;
    bool no_memory;
    /* The next job of the first round, in which every part is packed in every fixed order of boxes:
     * to pack part number `part` of arena number `arena` in order number `order`. If `part` is the
     * number of parts, the job is hole filling of the arena. */
    uint32_t order, arena, part;
    /* how many times an arena was chosen for a job after the first round; the remainder of its
     * division by the number of arenas is the number of the next arena */
    uint32_t rotation;
};

/* Prepares a run. False: the host has no memory; the caller must call portfolio_conclude
 * nevertheless. */
bool portfolio_create(struct portfolio *portfolio, const struct problem *problem,
                      const struct solve_options *options);

/* Makes a worker whose memory suffices for any job of the run. False: the host has no memory; the
 * caller must call worker_free nevertheless. */
bool portfolio_create_worker(struct portfolio *portfolio, struct worker *worker);

/* Does the next job. False: no job is left, or the host has no memory for the worker.
 * Thread-safe. */
bool portfolio_work(struct portfolio *portfolio, struct worker *worker);

/* Returns whether the run may end after `seconds` seconds: its time is over, it was interrupted, or
 * its best plan is good enough. The caller holds the lock. */
bool portfolio_is_enough(struct portfolio *portfolio, double seconds);

/* Returns which share of the run is done after `seconds` seconds, from 0 to 1, for a display of
 * progress. Until there is a plan, this is about the share of the jobs that the first plan needs.
 * Later it is the share of the time limit. If the user gave neither a time limit nor a capacity, it
 * is not more than the share of the first round's jobs that are done. The caller holds the lock. */
double portfolio_share(struct portfolio *portfolio, double seconds);

/* Returns the peak of the best plan so far, summed over all arenas; UINT64_MAX: there is no plan
 * yet. The caller holds the lock. */
uint64_t portfolio_peak(struct portfolio *portfolio);

/* Writes the offset of each row in the best plan, and the result, and frees the portfolio. To be
 * called when all workers have ended. If `ran` is false, the run failed for want of host memory,
 * and only the error is written. */
bool portfolio_conclude(struct portfolio *portfolio, bool ran, uint64_t *offsets,
                        struct solve_result *result, struct plan_error *error);

#endif
