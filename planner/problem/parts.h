/*
 * Divides an arena into smaller parts before it is packed, without losing the best plan. It cuts
 * the arena at times that no box spans. In each of the resulting pieces of time, it places the
 * boxes that live during all of the piece at the bottom, and then tries to cut the rest of the
 * piece, above them, in the same way. It uses an explicit stack. O(n log n): boxes are examined a
 * limited number of times, and what has not been divided by then stays one part.
 */
#ifndef BFC_PLAN_PARTS_H
#define BFC_PLAN_PARTS_H

#include "planner/problem/packing_arena.h"

/* A part of an arena, which is packed alone: the boxes from `from` to before `from + count` of
 * parts.boxes, in the order of their births. Its sections are numbered from 0. */
struct part {
    uint32_t from;
    uint32_t count;
    uint32_t sections;
    /* bytes of the boxes that were placed below this part, so the part's offsets count from here */
    uint64_t base;
    /* the lower bound: the most bytes of the part's boxes that are live at any time */
    uint64_t bound;
};

struct parts {
    struct part *list;
    uint32_t count;
    uint32_t most_boxes;    /* the number of boxes of the part that has the most boxes */
    uint32_t most_sections; /* the number of sections of the part that has the most sections */
    struct box *boxes;      /* the boxes of all parts, one part after another */
    uint32_t *item;         /* by box: the number of its item */
    uint32_t boxes_count;
};

/*
 * Makes the parts. Boxes that it places at the bottom of the arena or of a piece of time get their
 * final offsets in `offsets`, which is by item; other elements do not change. False: the host has
 * no memory.
 */
bool parts_build(struct parts *parts, const struct arena *arena, uint64_t *offsets);
void parts_free(struct parts *parts);

#endif
