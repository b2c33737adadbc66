/*
 * Raises the floors of unplaced boxes: the lowest offsets at which they can still lie, given the
 * other boxes of their sections. The rule is "not first" of scheduling on one machine (Carlier and
 * Pinson, Management Science 1989). Thread-safety: one thread at a time.
 */
#ifndef BFC_PLAN_FLOORS_H
#define BFC_PLAN_FLOORS_H

#include "planner/problem/packing_arena.h"

#define FLOORS_PLACED (-1) /* stands for the floor of a box that is placed */

struct job;

struct floors {
    int32_t *low; /* by box: its floor, in units, or FLOORS_PLACED; the caller fills it in */
    const struct box *boxes;
    /* by section: how often a box had no place in the section below the capacity */
    uint32_t *blame;
    uint32_t *list; /* the boxes of each section, one section after another */
    /* by section: where its boxes begin in `list`; one more entry says where the last ones end */
    uint32_t *list_at;
    /* by section: whether floors have risen since floors_raise examined the section */
    bool *changed;
    struct job *jobs; /* unplaced boxes of the section that is examined, by falling top */
    int32_t capacity; /* the capacity in units */
};

/* False: no host memory; floors_free must be called all the same. */
bool floors_make(struct floors *floors, const struct box *boxes, uint32_t n, uint32_t sections);
void floors_free(struct floors *floors);

/* To be called once, before floors_raise and the functions that serve it. The boxes are those of
 * floors_make, but may be in another order. */
void floors_begin(struct floors *floors, const struct box *boxes, uint32_t n, int32_t capacity,
                  uint32_t *blame);

/* Notes that the floor of the box has risen, so that floors_raise examines its sections. */
void floors_changed(struct floors *floors, uint32_t box);

/* Notes that the sections [lo, hi) need not be examined. */
void floors_forget(struct floors *floors, uint32_t lo, uint32_t hi);

/* Examines once each of the sections [lo, hi) that has changed, and sets *rose if it raises a
 * floor. False: a box would have to lie above the capacity. */
bool floors_raise(struct floors *floors, uint32_t lo, uint32_t hi, bool *rose);

#endif
