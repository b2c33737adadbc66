/*
 * What a run of the solver has found so far: the best offsets for each part (parts.h) and for each
 * arena, and which parts may still get a lower peak. Some fields are used only under the lock of
 * struct portfolio.
 */
#ifndef BFC_PLAN_PACKING_H
#define BFC_PLAN_PACKING_H

#include "planner/pack/ranks.h"
#include "planner/problem/parts.h"

struct part_state {
    const struct part *part;
    /* the lowest peak found so far of the part's packings; UINT64_MAX: no packing was found yet
     * (under the portfolio's lock) */
    uint64_t best;
    uint64_t proved; /* it is proved that no packing of the part has a peak below this (under the
                        portfolio's lock) */
    /* how many nodes a long search (STRATEGY_DEEP) of the part may visit at most, at present
     * (under the portfolio's lock) */
    uint64_t node_limit;
    uint32_t next_search;  /* how many long searches (STRATEGY_DEEP) of the part were begun (under
                              the portfolio's lock) */
    uint32_t improvements; /* how many attempts to lower the part's peak were begun (under the
                              portfolio's lock) */
};

struct arena_state {
    const struct arena *arena;
    struct parts parts; /* the parts of the arena; none if the arena has pinned items */
    /* by part: its best packing so far, and the limits of its searches */
    struct part_state *states;
    /* by box of `parts`: its size, lifetime and so on, from which its place in the order of packing
     * is computed */
    struct traits *traits;
    /* by box of `parts`: its offset within its part in the part's best packing (under the
     * portfolio's lock) */
    uint64_t *best;
    /* by item: its size, lifetime and so on, from which its place in the order of hole filling is
     * computed; NULL: hole filling is not used, since in an `exact` arena packing boxes can reach
     * every plan that it can */
    struct traits *whole;
    /* by item: its offset if it was placed when the arena was divided into parts, else
     * UINT64_MAX */
    uint64_t *fixed;
    /* the highest end of the items that were placed when the arena was divided into parts */
    uint64_t fixed_top;
    uint64_t *filled; /* by item: its offset in the best packing by hole filling (under the
                         portfolio's lock) */
    /* the lowest peak found by hole filling; UINT64_MAX: none was found yet (under the portfolio's
     * lock) */
    uint64_t filled_peak;
    /* the peak of the arena's best plan: either `filled_peak`, or the peak that the best packings
     * of all parts make together, whichever is lower (under the portfolio's lock) */
    uint64_t peak;
    uint32_t fills; /* how many times hole filling was tried (under the portfolio's lock) */
    /* whether `peak` must be computed anew because better offsets were found (under the portfolio's
     * lock) */
    bool stale;
};

bool arena_state_create(struct arena_state *state, const struct arena *arena);
void arena_state_free(struct arena_state *state);

/* Computes the arena's `peak` anew if better offsets were found. The caller holds the portfolio's
 * lock. */
void arena_state_update(struct arena_state *state);

/* Returns the part that ends highest: only a lower packing of that part lowers the arena's peak.
 * NULL: there are no parts, it is proved that this part has no lower packing, or the part ends at
 * or below the lower bound. */
struct part_state *arena_state_worst(struct arena_state *state);

/* Returns whether it is proved that no plan of the arena has a lower peak. */
bool arena_state_optimal(const struct arena_state *state);

/* Writes the offsets of the arena's best plan; `offsets` has one element for each item. */
void arena_state_offsets(const struct arena_state *state, uint64_t *offsets);

#endif
