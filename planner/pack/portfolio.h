/*
 * The state of a run of solve, and what its threads do: one job after another, as long as that may
 * lead to a better plan. A lock guards what several threads change.
 */
#ifndef BFC_PLAN_PORTFOLIO_H
#define BFC_PLAN_PORTFOLIO_H

#include "planner/pack/solve_options.h"
#include "planner/pack/worker.h"

struct portfolio {
    const struct problem *problem;
    const struct solve_options *options;
    struct arena_state *arenas;
    uint32_t made; /* of the arenas' states */
    pthread_mutex_t lock;
    bool stop; /* atomic: no more jobs but those of a first plan */
    double started;
    bool no_memory; /* by the lock */
    /* The next job of the first round: an order of a part, or of the arena's filling (part =
     * count). */
    uint32_t order, arena, part;
    uint32_t turns; /* improvements handed out */
};

/* False: no host memory. Free it all the same. */
bool portfolio_create(struct portfolio *portfolio, const struct problem *problem,
                      const struct solve_options *options);
void portfolio_free(struct portfolio *portfolio);

/* A worker with room for any job. False: no host memory; free it with worker_free all the same. */
bool portfolio_create_worker(struct portfolio *portfolio, struct worker *worker);

/* Does the next job. False: there is none left, or the worker lacks memory. Thread-safe. */
bool portfolio_work(struct portfolio *portfolio, struct worker *worker);

/* With the lock held: whether the time is over or the best plan is good enough. */
bool portfolio_is_enough(struct portfolio *portfolio, double seconds);

/*
 * With the lock held: how much is over after so many seconds, of the way to a first plan as long as
 * there is none, then of the time or the orders. */
double portfolio_share(struct portfolio *portfolio, double seconds);

/* Bytes, all arenas together; the peak of the best so far, with the lock held. */
uint64_t portfolio_bound(const struct portfolio *portfolio);
uint64_t portfolio_peak(struct portfolio *portfolio);

/* Once all workers have ended: as solve. */
bool portfolio_conclude(struct portfolio *portfolio, uint64_t *offsets, struct solve_result *result,
                        struct plan_error *error);

#endif
