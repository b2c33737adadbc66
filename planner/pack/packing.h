/*
 * The state of a run of the solver: the best offsets so far of each part and arena, and what is
 * still worth trying. It belongs to portfolio.c; a lock guards what several threads change.
 */
#ifndef BFC_PLAN_PACKING_H
#define BFC_PLAN_PACKING_H

#include <pthread.h>

#include "planner/pack/ranks.h"
#include "planner/problem/parts.h"

/* A part under way. */
struct part_state {
    const struct part *part;
    uint64_t best;        /* peak within the part; UINT64_MAX: none yet; by the lock */
    uint64_t proved;      /* no packing has a lower peak; by the lock */
    uint64_t node_limit;  /* of the next round of searches; by the lock */
    uint32_t next_search; /* order of the next search; by the lock */
    uint32_t turns;       /* improvements tried; by the lock */
};

/* An arena under way. */
struct arena_state {
    const struct arena *arena;
    struct parts parts;        /* empty when the arena has pins */
    struct part_state *states; /* by part */
    struct traits *traits;     /* by box of the parts */
    uint64_t *best;            /* by box of the parts: offsets within the part; by the lock */
    struct traits *whole;      /* by item; NULL when exact: nothing is filled */
    uint64_t *fixed;           /* by item: offsets of items that the cutting placed */
    uint64_t fixed_top;        /* end of the highest of these */
    uint64_t *filled;          /* by item: the best by hole filling; by the lock */
    uint64_t filled_peak;      /* UINT64_MAX: none yet; by the lock */
    uint64_t peak;             /* of the better of the two; by the lock */
    uint32_t fills;            /* tried; by the lock */
    bool stale; /* something better was found since `peak` was computed; by the lock */
};

bool arena_state_create(struct arena_state *state, const struct arena *arena);
void arena_state_free(struct arena_state *state);

/* Recomputes the arena's peak if anything has changed; with the lock held. */
void arena_state_update(struct arena_state *state);

/* The part to improve: the highest one that may still become lower; NULL: none is worth it. */
struct part_state *arena_state_worst(struct arena_state *state);

/* Whether it is known that no plan has a lower peak. */
bool arena_state_optimal(const struct arena_state *state);

/* The offsets of the best plan, by item. */
void arena_state_offsets(const struct arena_state *state, uint64_t *offsets);

#endif
