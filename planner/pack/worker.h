/*
 * One thread of the solver: its working memory and the jobs that it can do. A job reads the state
 * of a part or an arena under the lock, works without the lock, and takes the lock again to publish
 * what it has found.
 */
#ifndef BFC_PLAN_WORKER_H
#define BFC_PLAN_WORKER_H

#include <pthread.h>

#include "planner/pack/fill.h"
#include "planner/pack/packing.h"
#include "planner/pack/search.h"
#include "planner/pack/valley.h"

/* How a worker searches parts: in deep searches (long, in fixed or random orders), in wide ones
 * (many short searches in random orders), or in both in turn. */
enum strategy { STRATEGY_BOTH, STRATEGY_DEEP, STRATEGY_WIDE };

/* How many boxes the short searches of a part placed with one focus (enum search_focus). */
struct reach {
    /* the sum, over the searches, of the largest number of boxes placed at any node
     * (search_reached) */
    uint64_t boxes;
    uint64_t searches;
};

struct worker {
    pthread_mutex_t *lock; /* the lock of the whole run (struct portfolio) */
    const bool *stop;      /* atomic; long jobs end soon after it is set */
    uint64_t seed;
    uint64_t align;
    struct valley *valley;
    enum strategy strategy;
    struct search *search; /* working memory of searches; NULL until a search needs it */
    const struct part_state *searched; /* the part that was searched last */
    /* by focus: how many boxes the short searches of the part `searched` placed */
    struct reach reach[SEARCH_FOCUSES];
    struct fill *fill; /* working memory for hole filling of fill_arena; NULL until it is needed */
    const struct arena *fill_arena;
    uint32_t *rank;
    double *worth;
    struct keyed *spare;
    uint64_t *offsets;
    bool no_memory; /* whether a job failed because the host has no memory */
};

/* Makes working memory for parts of up to `boxes` boxes and `sections` sections, and for arenas of
 * up to `items` items. False: the host has no memory; the caller must call worker_free
 * nevertheless. */
bool worker_create(struct worker *worker, uint32_t boxes, uint32_t sections, uint32_t items);
void worker_free(struct worker *worker);

/* Packs the part once by the valley greedy, in the order of boxes fixed_orders[order]. */
void worker_greedy(struct worker *worker, struct arena_state *arena, struct part_state *part,
                   uint32_t order);

/* Tries for a limited time to find a packing of the part with a lower peak. `goal` is the wanted
 * peak in bytes, counted from the bottom of the part. With `stepwise`, more of the searches aim
 * only at a peak between the best one so far and the goal. */
void worker_improve(struct worker *worker, struct arena_state *arena, struct part_state *part,
                    uint64_t goal, bool stepwise);

/* Packs the arena once by hole filling (fill.h), in the next one of several ways: with each fixed
 * order of the items (ranks.h) twice, once for each value of `tightest` (fill_pack), and then with
 * random orders. */
void worker_fill(struct worker *worker, struct arena_state *arena);

#endif
