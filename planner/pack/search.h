/*
 * Searches for a packing of boxes below a capacity, or proves that there is none. It is a
 * depth-first search; each node of its tree places one box.
 *
 * Boxes are placed by rising offset, each as low as it can lie. No packing is missed by this, since
 * in any packing the boxes can be moved down until each lies that low. As in MiniMalloc (M. D.
 * Moffitt, ASPLOS 2023, doi 10.1145/3623278.3624752), the search turns back from a node when the
 * unplaced boxes of some section of time (packing_arena.h) do not fit below the capacity. A box is
 * not placed where another box would fit below it. Where no unplaced box is alive on both sides of
 * some time, the boxes before and after that time are packed independently.
 *
 * Each set of boxes that could not be packed is remembered by a hash of the boxes and their lowest
 * possible offsets, and is not searched again (a transposition table, as in chess programs). Two
 * sets have the same hash with a chance of 1 in 2^64; the search may then miss a packing, but it
 * never returns a wrong one.
 *
 * The search keeps a stack of its own in place of recursion, which could be as deep as there are
 * boxes. The time is exponential at worst; a node copies a list of at most n boxes. Thread-safety:
 * each thread needs its own struct search.
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
     * capacity is more than 2^29 times the greatest common divisor of the sizes. */
    SEARCH_STOPPED,
    SEARCH_NO_MEMORY,
};

/*
 * The rule by which a search chooses the section of time in which it places the next box: the
 * section with the lowest possible offset (LOWEST) or the one with the least room to spare
 * (TIGHTEST); of equal sections the first, or with LAST the last one. Callers try all four rules,
 * because a problem that is hard with one of them can be easy with another.
 */
enum search_focus {
    SEARCH_LOWEST,
    SEARCH_TIGHTEST,
    SEARCH_LOWEST_LAST,
    SEARCH_TIGHTEST_LAST,
    SEARCH_FOCUSES
};

/* The effort of a search: how often it tries at each node to raise the least possible offsets of
 * the unplaced boxes (floors.h), from 0 to SEARCH_EFFORTS - 1. A low effort makes nodes faster; a
 * high effort makes them fewer, because nodes that lead to no packing are left earlier. */
#define SEARCH_EFFORTS 3

struct search *search_create(void);
void search_destroy(struct search *search);

/* Returns the largest number of boxes that the last search had placed at any of its nodes. */
uint32_t search_reached(const struct search *search);

/*
 * Returns for each section of time how often its boxes did not fit below the capacity in the
 * searches since the last search_forget; NULL: there was no such search. The counts are meant for
 * one set of boxes, so search_forget must be called before a search for another set.
 */
const uint32_t *search_blame(const struct search *search);
void search_forget(struct search *search);

/*
 * Searches for a packing of n boxes (at most SEARCH_MOST_BOXES) with a peak of at most `capacity`
 * bytes. It visits at most `nodes` nodes and tries boxes of low rank first. It ends soon after the
 * atomic flag `stop` is set. With SEARCH_FOUND, element i of `offsets` is the offset of boxes[i].
 */
enum search_result search_run(struct search *search, const struct box *boxes, uint32_t n,
                              uint32_t sections, const uint32_t *rank, enum search_focus focus,
                              uint32_t effort, uint64_t capacity, uint64_t nodes, const bool *stop,
                              uint64_t *offsets);

#endif
