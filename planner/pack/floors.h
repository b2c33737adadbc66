/*
 * Raises the floors of boxes that are not placed yet. A floor is a lower limit of the offset that a
 * box can still have. Boxes that are alive in the same section of time cannot overlap, so each
 * section limits the floors of its boxes, by the rule "not first" of scheduling on one machine
 * (Carlier and Pinson, Management Science 1989). Not thread-safe.
 */
#ifndef BFC_PLAN_FLOORS_H
#define BFC_PLAN_FLOORS_H

#include "planner/problem/packing_arena.h"

#define FLOORS_PLACED (-1) /* the value of `low` for a box that is placed */

struct job;

struct floors {
    /* by box: its floor, the least offset that it can still have, or FLOORS_PLACED; filled in by
     * the caller */
    int32_t *low;
    const struct box *boxes;
    /* by section of time: how often a search failed because a box of the section did not fit below
     * the capacity */
    uint32_t *blame;
    /* the boxes that are alive in section 0, then those that are alive in section 1, and so on */
    uint32_t *list;
    /* by section of time: the index in `list` of the section's first box; one further element has
     * the length of `list` */
    uint32_t *list_at;
    /* by section of time: whether the floor of a box in the section has risen since floors_raise
     * last examined the section */
    bool *changed;
    /* the unplaced boxes of the section that is being examined, ordered by the lowest end that each
     * can have, the highest first */
    struct job *jobs;
    int32_t capacity; /* the highest end that a box may have, in the unit of the boxes' sizes */
};

/* Allocates the memory for n boxes. False: the host has no memory; the caller must call floors_free
 * nevertheless. */
bool floors_make(struct floors *floors, const struct box *boxes, uint32_t n, uint32_t sections);
void floors_free(struct floors *floors);

/* To be called once, after floors_make and before the functions below. The boxes must be those of
 * floors_make, but may be in another order. */
void floors_begin(struct floors *floors, const struct box *boxes, uint32_t n, int32_t capacity,
                  uint32_t *blame);

/* To be called when the floor of the box, its least possible offset, has risen, so that
 * floors_raise examines the sections in which the box is alive. */
void floors_changed(struct floors *floors, uint32_t box);

/* Makes floors_raise skip each section from `lo` to before `hi`, until the floor of a box that is
 * alive in the section rises. */
void floors_forget(struct floors *floors, uint32_t lo, uint32_t hi);

/* Examines each section from `lo` to before `hi` in which the floor of a box has risen, and raises
 * the floors of other boxes in it that must lie higher because of that. *rose becomes true if a
 * floor was raised. False: a box would have to end above the capacity. */
bool floors_raise(struct floors *floors, uint32_t lo, uint32_t hi, bool *rose);

#endif
