/*
 * The portfolio: packs every arena of a problem with all processors, until no better plan is
 * possible, the capacity is met, the time is over or the user interrupts.
 *
 * First every part gets the valley greedy in all fixed orders. What then stands above the bound is
 * improved: parts of up to SEARCH_MOST_BOXES by canonical search in all orders in turn, with node
 * limits that double, and all by the valley greedy with random weights, where the box that did not
 * fit is preferred in the next try (squeaky wheel; Joslin and Clements, AAAI 1998). Arenas with
 * constraints are packed by hole filling too; with pins, only so.
 */
#ifndef BFC_PLAN_SOLVE_H
#define BFC_PLAN_SOLVE_H

#include "tools/plan/problem/arena.h"

struct solve_progress {
    uint64_t bound; /* bytes, all arenas together */
    uint64_t peak;  /* of the best so far; UINT64_MAX: there is none yet */
    double seconds; /* since the start */
};

struct solve_options {
    double seconds;    /* most time; negative: 2.5 s, or up to 60 s for a capacity */
    uint64_t capacity; /* bytes that are enough, for all arenas together; UINT64_MAX: none given */
    unsigned threads;
    uint64_t seed;
    const bool *interrupted;                                 /* atomic */
    void (*progress)(const struct solve_progress *progress); /* now and then; may be NULL */
};

struct solve_result {
    uint64_t bound;
    uint64_t peak;   /* UINT64_MAX: none is below 2^64 */
    uint64_t *peaks; /* by arena; the caller frees it */
    bool optimal;    /* no plan has a lower peak */
};

/*
 * Writes each row's offset within the arena of its space. False: no host memory, or no plan was
 * found (the error says which). Blocks until it is done; at least one plan is made whatever the
 * time.
 */
bool solve(const struct problem *problem, const struct solve_options *options, uint64_t *offsets,
           struct solve_result *result, struct plan_error *error);

#endif
