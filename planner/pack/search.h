/*
 * Searches for a packing of boxes below a capacity, or proves that there is none. It is a
 * depth-first search, each node of which places one box.
 *
 * Boxes are placed by rising offset, each as low as it can lie; every packing can be pushed down
 * into this form. As in MiniMalloc (M. D. Moffitt, ASPLOS 2023, doi 10.1145/3623278.3624752), the
 * search turns back from a node when the boxes still to be placed in some section of time cannot
 * fit there below the capacity. A box is not placed where another box would fit below it. At times
 * that no unplaced box spans, the problem is divided into independent ones.
 *
 * In addition, each set of boxes that could not be packed is remembered by a hash of the boxes and
 * their lowest possible offsets, and not searched again (a transposition table, as in chess
 * programs). A false match, with a chance of 1 in 2^64, can make the search miss a packing, but
 * never return a wrong one. The stack is explicit.
 *
 * The time is exponential at worst; each node copies about n words. Thread-safety: each thread
 * needs its own struct search.
 */
#ifndef BFC_PLAN_SEARCH_H
#define BFC_PLAN_SEARCH_H

#include "planner/problem/packing_arena.h"

#define SEARCH_MOST_BOXES 3000

struct search; /* the working memory of one thread */

enum search_result {
    SEARCH_FOUND,     /* there is a packing, and its offsets were written */
    SEARCH_EXHAUSTED, /* there is no packing with a peak of at most the capacity */
    /* The search ended without a result: the node limit was reached, `stop` was set, or the
     * capacity is too large when counted in units. */
    SEARCH_STOPPED,
    SEARCH_NO_MEMORY,
};

/*
 * In which section of time the next box is placed: the one with the lowest possible offset (LOWEST)
 * or the one with the least room to spare (TIGHTEST), and of equal sections the first or the last.
 * All are tried, because a problem that is hard with one of them can be easy with another.
 */
enum search_focus {
    SEARCH_LOWEST,
    SEARCH_TIGHTEST,
    SEARCH_LOWEST_LAST,
    SEARCH_TIGHTEST_LAST,
    SEARCH_FOCUSES
};

/* The effort of a search is how often it raises the least possible offsets of boxes (floors.h) at
 * each node: 0 to SEARCH_EFFORTS - 1. A low effort makes nodes faster; a high effort makes them
 * fewer. */
#define SEARCH_EFFORTS 3

struct search *search_create(void);
void search_destroy(struct search *search);

/* Returns the most boxes that the last search had placed at the same time. */
uint32_t search_reached(const struct search *search);

/*
 * Returns for each section of time how often its boxes did not fit below the capacity, since the
 * last search_forget; NULL: there was no search since. search_forget must be called before other
 * boxes are searched.
 */
const uint32_t *search_blame(const struct search *search);
void search_forget(struct search *search);

/*
 * Searches for a packing of n boxes (at most SEARCH_MOST_BOXES) with a peak of at most `capacity`
 * bytes. It visits at most `nodes` nodes and tries boxes of low rank first. It ends soon after the
 * atomic flag `stop` is set. `offsets` is by box.
 */
enum search_result search_run(struct search *search, const struct box *boxes, uint32_t n,
                              uint32_t sections, const uint32_t *rank, enum search_focus focus,
                              uint32_t effort, uint64_t capacity, uint64_t nodes, const bool *stop,
                              uint64_t *offsets);

#endif
