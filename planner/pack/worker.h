/*
 * One thread of the portfolio: its workspaces, and the jobs it knows. A job reads the state of a
 * part or an arena under the lock, works without it, and publishes what it found under it.
 */
#ifndef BFC_PLAN_WORKER_H
#define BFC_PLAN_WORKER_H

#include "planner/pack/fill.h"
#include "planner/pack/packing.h"
#include "planner/pack/search.h"
#include "planner/pack/valley.h"

/* How parts are searched: deep in fixed orders, wide in random ones, or both in turn. */
enum strategy { STRATEGY_BOTH, STRATEGY_DEEP, STRATEGY_WIDE };

/* How far the short searches of a part came with a focus. */
struct reach {
    uint64_t boxes; /* sum over the searches */
    uint64_t searches;
};

struct worker {
    pthread_mutex_t *lock; /* of all states */
    const bool *stop;      /* atomic: long jobs end soon after it is set */
    uint64_t seed;
    uint64_t align;
    struct valley *valley;
    enum strategy strategy;
    struct search *search;              /* made when it is first needed */
    const struct part_state *searched;  /* the last part that it was used for */
    struct reach reach[SEARCH_FOCUSES]; /* of that part */
    struct fill *fill;                  /* likewise; of fill_arena */
    const struct arena *fill_arena;
    uint32_t *rank;
    double *worth;
    struct keyed *spare;
    uint64_t *offsets;
    bool no_memory; /* a job could not be done */
};

/* Room for parts of up to `boxes` and `sections` and arenas of up to `items`. */
bool worker_create(struct worker *worker, uint32_t boxes, uint32_t sections, uint32_t items);
void worker_free(struct worker *worker);

/* The valley greedy in one fixed order. */
void worker_greedy(struct worker *worker, struct arena_state *arena, struct part_state *part,
                   uint32_t order);

/*
 * A slice of work on a part: `goal` is the wanted peak within the part; with `stepwise` any
 * improvement towards it counts too.
 */
void worker_improve(struct worker *worker, struct arena_state *arena, struct part_state *part,
                    uint64_t goal, bool stepwise);

/* Hole filling once, in the arena's next order. */
void worker_fill(struct worker *worker, struct arena_state *arena);

#endif
