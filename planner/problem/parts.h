/*
 * Makes an arena smaller before it is solved, without losing the best plan: cuts it where no box
 * spans, and lays boxes that live as long as their piece of time at its bottom, again and again. An
 * explicit stack; O(n log n) by a bound on the work, after which larger parts are left as they are.
 */
#ifndef BFC_PLAN_PARTS_H
#define BFC_PLAN_PARTS_H

#include "planner/problem/packing_arena.h"

/* A part of an arena: the boxes [from, from + count) of parts.boxes, in order of birth. Their
 * sections are numbered from 0 to below `sections`. */
struct part {
    uint32_t from;
    uint32_t count;
    uint32_t sections;
    uint64_t base;  /* bytes of the boxes that lie below the part */
    uint64_t bound; /* the most bytes of the part's own boxes that live at any time */
};

struct parts {
    struct part *list;
    uint32_t count;
    uint32_t most_boxes;    /* how many boxes the largest part has */
    uint32_t most_sections; /* how many sections the part with the most sections has */
    struct box *boxes;      /* boxes of all parts, one part after another */
    uint32_t *item;         /* by box: its item */
    uint32_t boxes_count;
};

/*
 * Makes the parts, and writes the offsets of the boxes that it places at the bottom of the arena
 * into `offsets`, whose other elements do not change. False: no host memory.
 */
bool parts_build(struct parts *parts, const struct arena *arena, uint64_t *offsets);
void parts_free(struct parts *parts);

#endif
