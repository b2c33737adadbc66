/*
 * Canonical depth-first search: packs boxes below a capacity, or shows that it cannot be done.
 *
 * Boxes are placed by rising offset, each as low as it goes (any packing can be pushed down into
 * this form), ties by a fixed order. After MiniMalloc (M. D. Moffitt, ASPLOS 2023, doi
 * 10.1145/3623278.3624752): a node is given up when the floor of some section and what is still to
 * be placed there exceed the capacity; a box is not placed at or above the top that another could
 * have had (dominance); where no unplaced box spans, the rest is solved in independent halves.
 * Beyond it: partial packings that left the same boxes with the same floors are recognised by a
 * hash and not searched twice (a transposition table, as in chess programs; a false match, 1 in
 * 2^64, can only cost completeness, never validity), and the stack is explicit.
 *
 * Exponential at worst; about n words copied a node. Thread-safety: one workspace a thread.
 */
#ifndef BFC_PLAN_SEARCH_H
#define BFC_PLAN_SEARCH_H

#include "planner/problem/packing_arena.h"

#define SEARCH_MOST_BOXES 3000

struct search; /* the working memory of one thread */

enum search_result {
    SEARCH_FOUND,     /* there is a packing, and its offsets are set */
    SEARCH_EXHAUSTED, /* there is no packing below the capacity */
    SEARCH_STOPPED,   /* the search ended early: by the node limit, by the stop flag, or because the
                         capacity is too many units */
    SEARCH_NO_MEMORY,
};

/*
 * At which section a node places a box: the one with the lowest floor or the one with the least
 * slack, and the first or the last of equal ones. No focus is best in general, so all are tried: an
 * instance that is easy with one can be hard with another.
 */
enum search_focus {
    SEARCH_LOWEST,
    SEARCH_TIGHTEST,
    SEARCH_LOWEST_LAST,
    SEARCH_TIGHTEST_LAST,
    SEARCH_FOCUSES
};

/* An effort below this number says how often the floors are raised at each node (floors.h): less is
 * faster, more prunes more. No effort is best in general. */
#define SEARCH_EFFORTS 3

struct search *search_create(void);
void search_destroy(struct search *search);

/* How far the last run got: the largest number of boxes in any of its partial packings. */
uint32_t search_reached(const struct search *search);

/*
 * Counts for each section how often it needed more than the capacity, so that a node was given up,
 * since the last search_forget. NULL: there was no search yet. search_forget must be called before
 * other boxes are searched.
 */
const uint32_t *search_blame(const struct search *search);
void search_forget(struct search *search);

/*
 * Looks for a packing of n boxes (at most SEARCH_MOST_BOXES) with a peak of at most `capacity`
 * bytes, in at most `nodes` nodes, trying low ranks first. The search ends soon after `stop`, which
 * is atomic, is set.
 */
enum search_result search_run(struct search *search, const struct box *boxes, uint32_t n,
                              uint32_t sections, const uint32_t *rank, enum search_focus focus,
                              uint32_t effort, uint64_t capacity, uint64_t nodes, const bool *stop,
                              uint64_t *offsets);

#endif
