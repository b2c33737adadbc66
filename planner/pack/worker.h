/*
 * One thread of the portfolio: its workspaces and its jobs. A job reads the state of a part or an
 * arena under the lock, works without the lock, and takes it again to publish what it found.
 */
#ifndef BFC_PLAN_WORKER_H
#define BFC_PLAN_WORKER_H

#include <pthread.h>

#include "planner/pack/fill.h"
#include "planner/pack/packing.h"
#include "planner/pack/search.h"
#include "planner/pack/valley.h"

/* How parts are searched: deep in fixed orders, wide in random ones, or both in turn. */
enum strategy { STRATEGY_BOTH, STRATEGY_DEEP, STRATEGY_WIDE };

/* How far the short searches of a part came with one focus. */
struct reach {
    uint64_t boxes; /* sum of search_reached over the searches */
    uint64_t searches;
};

struct worker {
    pthread_mutex_t *lock; /* the lock of the portfolio */
    const bool *stop;      /* atomic: long jobs end soon after it is set */
    uint64_t seed;
    uint64_t align;
    struct valley *valley;
    enum strategy strategy;
    struct search *search; /* the searches' workspace, which is made when it is first needed */
    const struct part_state *searched;  /* the part that `search` was last used for */
    struct reach reach[SEARCH_FOCUSES]; /* results of the short searches of that part */
    struct fill *fill; /* the workspace of hole filling, which is made when it is first needed for
                          fill_arena */
    const struct arena *fill_arena;
    uint32_t *rank;
    double *worth;
    struct keyed *spare;
    uint64_t *offsets;
    bool no_memory; /* whether a job could not be done for want of memory */
};

/* Makes room for parts of up to `boxes` and `sections` and arenas of up to `items`. False: no host
 * memory; worker_free must be called all the same. */
bool worker_create(struct worker *worker, uint32_t boxes, uint32_t sections, uint32_t items);
void worker_free(struct worker *worker);

/* Runs the valley greedy in one fixed order. */
void worker_greedy(struct worker *worker, struct arena_state *arena, struct part_state *part,
                   uint32_t order);

/* Tries for a limited time to improve a part. `goal` is the wanted peak within the part; with
 * `stepwise`, more of the searches aim at a peak between the goal and the best so far. */
void worker_improve(struct worker *worker, struct arena_state *arena, struct part_state *part,
                    uint64_t goal, bool stepwise);

/* Runs hole filling once, in the arena's next order. */
void worker_fill(struct worker *worker, struct arena_state *arena);

#endif
