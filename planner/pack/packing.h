/*
 * What a run of the solver knows at a time: the best offsets found so far for each part and each
 * arena, and which parts may still become better. Fields marked (lock) are guarded by the
 * portfolio's lock.
 */
#ifndef BFC_PLAN_PACKING_H
#define BFC_PLAN_PACKING_H

#include "planner/pack/ranks.h"
#include "planner/problem/parts.h"

struct part_state {
    const struct part *part;
    /* the lowest peak found so far of the part's packings; UINT64_MAX: no packing was found yet
     * (lock) */
    uint64_t best;
    uint64_t proved; /* it is proved that no packing of the part has a peak below this (lock) */
    /* how many nodes a long search (STRATEGY_DEEP) of the part may visit at most, at present
     * (lock) */
    uint64_t node_limit;
    uint32_t next_search; /* how many long searches (STRATEGY_DEEP) of the part were begun (lock) */
    uint32_t improvements; /* how many times improving the part was tried (lock) */
};

struct arena_state {
    const struct arena *arena;
    struct parts parts; /* the parts of the arena; none if the arena has pinned items */
    /* by part: its best packing so far, and the limits of its searches */
    struct part_state *states;
    struct traits *traits; /* by box of `parts`: what its rank is computed from */
    /* by box of `parts`: its offset within its part in the part's best packing (lock) */
    uint64_t *best;
    /* by item: what its rank for hole filling is computed from; NULL: hole filling is not used,
     * because the arena is exact */
    struct traits *whole;
    uint64_t *fixed;    /* by item: its offset if parts_build has placed it, else UINT64_MAX */
    uint64_t fixed_top; /* the end of the highest item that parts_build has placed */
    uint64_t *filled;   /* by item: its offset in the best packing by hole filling (lock) */
    /* the lowest peak found by hole filling; UINT64_MAX: none was found yet (lock) */
    uint64_t filled_peak;
    /* the arena's best peak: filled_peak or the peak of the best packings of all parts, whichever
     * is lower (lock) */
    uint64_t peak;
    uint32_t fills; /* how many times hole filling was tried (lock) */
    /* whether `peak` must be computed anew because better offsets were found (lock) */
    bool stale;
};

bool arena_state_create(struct arena_state *state, const struct arena *arena);
void arena_state_free(struct arena_state *state);

/* Computes the arena's `peak` anew if better offsets were found. The caller holds the portfolio's
 * lock. */
void arena_state_update(struct arena_state *state);

/* Returns the part that ends highest, as only a lower packing of that part lowers the arena's peak.
 * NULL: that part cannot become lower, or the arena's peak is the lower bound already. */
struct part_state *arena_state_worst(struct arena_state *state);

/* Returns whether it is proved that no plan of the arena has a lower peak. */
bool arena_state_optimal(const struct arena_state *state);

/* Writes the offsets of the arena's best plan; `offsets` is by item. */
void arena_state_offsets(const struct arena_state *state, uint64_t *offsets);

#endif
