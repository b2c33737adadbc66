/*
 * The state of a run of solve, and what its threads do: one job after another, as long as that may
 * lead to a better plan. The lock guards what several threads change.
 */
#ifndef BFC_PLAN_PORTFOLIO_H
#define BFC_PLAN_PORTFOLIO_H

#include "planner/pack/solve_options.h"
#include "planner/pack/worker.h"

struct portfolio {
    const struct problem *problem;
    const struct solve_options *options;
    struct arena_state *arenas;
    uint32_t made; /* how many of `arenas` are initialized */
    pthread_mutex_t lock;
    bool stop; /* atomic; once it is set, only jobs of a first plan are still done */
    double started;
    bool no_memory;
    /* The next job of the first round: this order for this part of this arena, or for the arena's
     * hole filling if `part` is the number of parts. */
    uint32_t order, arena, part;
    /* its remainder by the number of arenas is the arena that is improved next */
    uint32_t rotation;
};

/* False: no host memory; portfolio_conclude must be called all the same. */
bool portfolio_create(struct portfolio *portfolio, const struct problem *problem,
                      const struct solve_options *options);

/* A worker with room for any job. False: no host memory; free it with worker_free all the same. */
bool portfolio_create_worker(struct portfolio *portfolio, struct worker *worker);

/* Does the next job. False: there is none left, or the worker lacks memory. Thread-safe. */
bool portfolio_work(struct portfolio *portfolio, struct worker *worker);

/* With the lock held: whether the time is over or the best plan is good enough. */
bool portfolio_is_enough(struct portfolio *portfolio, double seconds);

/* With the lock held: the share of the work (0 to 1) that is done after `seconds` seconds, measured
 * by the way to a first plan as long as there is none, then by the time or the orders. */
double portfolio_share(struct portfolio *portfolio, double seconds);

/* With the lock held: the peak of the best plan so far, the sum over all arenas; UINT64_MAX: there
 * is no plan yet. */
uint64_t portfolio_peak(struct portfolio *portfolio);

/* Writes the best plan once all workers have ended, as solve does, and frees the portfolio. With
 * `ran` false the run lacked host memory, and only the error is written. */
bool portfolio_conclude(struct portfolio *portfolio, bool ran, uint64_t *offsets,
                        struct solve_result *result, struct plan_error *error);

#endif
