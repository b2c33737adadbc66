/*
 * Turns rows into what the solvers pack: one arena for each space, with items that move as one.
 *
 * An item is a row, or all rows that share memory (alias), or a group of such. It consists of
 * pieces, rectangles of time and address at fixed places within it: rows that share memory give a
 * staircase, the outline of the largest of them alive at each time. Its box is a plain rectangle
 * that holds all pieces, with the stream gap added to its end: a packing of the boxes is always
 * valid, and when the arena is `exact` no better one exists.
 *
 * Times of boxes are sections: a section starts at each birth that follows a death, so two boxes
 * share a section if and only if they are alive together (interval graphs: the sections are the
 * maximal cliques). O(n log n).
 */
#ifndef BFC_PLAN_ARENA_H
#define BFC_PLAN_ARENA_H

#include "planner/model/lifetimes.h"
#include "planner/problem/piece.h"

struct box {
    uint32_t birth; /* the section in which the box begins; the box ends before section `death` */
    uint32_t death;
    uint64_t size; /* bytes, a multiple of the alignment */
};

struct arena {
    uint32_t count;    /* number of items */
    uint32_t sections; /* number of sections */
    struct box *boxes; /* by item */
    uint64_t *spans;   /* by item: ticks from first birth to last death */
    struct piece *pieces;
    uint32_t *first; /* by item, with one entry more for the end: its first piece */
    uint64_t *pins;  /* by item: its given offset or NOT_PINNED; NULL: nothing is pinned */
    uint64_t bound;  /* no plan can have a lower peak */
    uint64_t gap; /* rows of different streams share memory only if they are more than `gap` ticks
                     apart */
    bool streams; /* rows of the problem have different streams */
    bool exact;
};

struct problem {
    const struct lifetimes *lifetimes;
    uint64_t align;
    struct arena *arenas;
    uint32_t count;
    uint32_t *item;  /* by row: its item in the arena of its space */
    uint64_t *place; /* by row: its place within the item */
};

/* Steps that problem_build counts for each row (planner/common/watch.h). */
#define PROBLEM_STEPS 4u

/* Makes the arenas. Contradictory rows are refused with an error that names them. `gap` is that
 * of struct arena. */
bool problem_build(struct problem *problem, const struct lifetimes *lifetimes, uint64_t align,
                   uint64_t gap, struct plan_error *error);
void problem_free(struct problem *problem);

/* The sum of all arenas' bounds; UINT64_MAX if it is larger. */
uint64_t problem_bound(const struct problem *problem);

#endif
