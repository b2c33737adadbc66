/*
 * Turns rows into the rectangles that are packed: one arena for each space (a memory that is
 * planned alone), with items in it.
 *
 * An item is what moves as one: a row, or all rows that share memory (alias), or a group of these.
 * It consists of pieces: rectangles of time and address at fixed places within the item. Rows that
 * share memory become a staircase of pieces, at each time as high as the largest live row. The box
 * of an item is one rectangle around all its pieces; if there are several streams, it is longer by
 * the gap that must lie between streams. So offsets that are valid for the boxes are valid for the
 * rows. If the arena is `exact`, each item is one piece and there are neither streams nor pins, so
 * no plan is better than the best packing of the boxes.
 *
 * The times of boxes are numbers of sections. A new section starts at each birth that follows a
 * death, so two boxes have a section in common if and only if they are alive at the same time (in
 * an interval graph, sections are the maximal cliques). O(n log n).
 */
#ifndef BFC_PLAN_ARENA_H
#define BFC_PLAN_ARENA_H

#include "planner/model/lifetimes.h"
#include "planner/problem/piece.h"

struct box {
    uint32_t birth; /* the box is alive from section `birth` to before section `death` */
    uint32_t death;
    uint64_t size; /* bytes, a multiple of the alignment */
};

struct arena {
    uint32_t count;    /* number of items */
    uint32_t sections; /* number of sections */
    struct box *boxes; /* by item: the rectangle of time and address around all its pieces */
    uint64_t *spans;   /* by item: ticks from its first birth to its last death */
    struct piece *pieces;
    /* by item: the index of its first piece; a further element has the number of pieces */
    uint32_t *first;
    /* by item: the offset in bytes at which it must lie, or NOT_PINNED; NULL: no item has one */
    uint64_t *pins;
    uint64_t bound; /* the lower bound: bytes that every plan of the arena needs at least */
    /* rows of different streams may share memory only if more than `gap` ticks lie between them */
    uint64_t gap;
    bool streams; /* whether the rows have several different streams */
    bool exact;
};

struct problem {
    const struct lifetimes *lifetimes;
    uint64_t align;
    struct arena *arenas;
    uint32_t count;
    uint32_t *item;  /* by row: the number of the row's item in the arena of the row's space */
    uint64_t *place; /* by row: where the row begins within its item, in bytes */
};

/* How many steps of progress problem_build counts for each row (planner/common/watch.h). */
#define PROBLEM_STEPS 4u

/* Makes the arenas. False: rows contradict each other, and the error names them, or the host has no
 * memory. `gap` is the number of ticks that must lie between rows of different streams. */
bool problem_build(struct problem *problem, const struct lifetimes *lifetimes, uint64_t align,
                   uint64_t gap, struct plan_error *error);
void problem_free(struct problem *problem);

/* Returns the sum of the lower bounds of all arenas, or UINT64_MAX if the sum is larger. */
uint64_t problem_bound(const struct problem *problem);

#endif
