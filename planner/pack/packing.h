/*
 * The state of a run of the solver: the best offsets so far of each part and arena, and what is
 * still worth trying. The members that are marked (lock) are guarded by the portfolio's lock.
 */
#ifndef BFC_PLAN_PACKING_H
#define BFC_PLAN_PACKING_H

#include "planner/pack/ranks.h"
#include "planner/problem/parts.h"

struct part_state {
    const struct part *part;
    /* the lowest peak of any packing of the part that was found; UINT64_MAX: none was (lock) */
    uint64_t best;
    uint64_t proved; /* whether it is known that no packing of the part has a lower peak (lock) */
    uint64_t node_limit;   /* the most nodes that each search of the round may visit (lock) */
    uint32_t next_search;  /* number of the next deep search (lock) */
    uint32_t improvements; /* how many improvements were tried (lock) */
};

struct arena_state {
    const struct arena *arena;
    struct parts parts; /* the parts of the arena; empty if the arena has items at given offsets */
    struct part_state *states; /* by part */
    struct traits *traits;     /* by box of the parts: the traits by which it is ranked */
    uint64_t *best;            /* by box of the parts: offsets within the part (lock) */
    struct traits *whole;      /* by item, for hole filling; NULL when the parts are exact */
    uint64_t *fixed;           /* by item: offsets of items that parts_build placed */
    uint64_t fixed_top;        /* end of the highest item that parts_build placed */
    uint64_t *filled;          /* by item: the best offsets by hole filling (lock) */
    uint64_t filled_peak; /* lowest peak by hole filling; UINT64_MAX: it has not placed all items
                             yet (lock) */
    uint64_t peak;  /* the lower of filled_peak and the peak with the best packings of all parts
                       (lock) */
    uint32_t fills; /* how many times hole filling was tried (lock) */
    bool stale; /* whether better offsets were found, so that `peak` must be computed anew (lock) */
};

bool arena_state_create(struct arena_state *state, const struct arena *arena);
void arena_state_free(struct arena_state *state);

/* Recomputes the arena's peak if better offsets were found. The caller holds the lock. */
void arena_state_update(struct arena_state *state);

/* Returns the part to improve, which is the highest one. NULL: the part has no lower packing, or a
 * lower packing would not lower the arena's peak. */
struct part_state *arena_state_worst(struct arena_state *state);

/* Whether it is proved that no plan of the arena has a lower peak. */
bool arena_state_optimal(const struct arena_state *state);

/* Writes the offsets of the best plan, by item. */
void arena_state_offsets(const struct arena_state *state, uint64_t *offsets);

#endif
