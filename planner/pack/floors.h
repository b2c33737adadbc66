/*
 * Raising floors: the lowest offsets of unplaced boxes, by what the boxes of each section leave
 * each other. The rule "not first" of scheduling on one machine (Carlier and Pinson, Management
 * Science 1989). Thread-safety: one thread at a time.
 */
#ifndef BFC_PLAN_FLOORS_H
#define BFC_PLAN_FLOORS_H

#include "planner/problem/packing_arena.h"

#define FLOORS_PLACED (-1) /* in the place of a floor */

struct job;

struct floors {
    int32_t *low; /* by box: its floor, in units, or FLOORS_PLACED; written by the user */
    const struct box *boxes;
    uint32_t *blame;   /* by section: how often a box had no place in it */
    uint32_t *list;    /* the boxes of each section, one section after another */
    uint32_t *list_at; /* by section, and the end: where its boxes begin there */
    bool *changed;     /* by section: floors have risen since it was looked at */
    struct job *jobs;  /* of a section, by falling top */
    int32_t capacity;  /* units */
};

/* False: no host memory. Free it all the same. */
bool floors_make(struct floors *floors, const struct box *boxes, uint32_t n, uint32_t sections);
void floors_free(struct floors *floors);

/* Once, before all below: the boxes, whose lives may be in another order than when it was made. */
void floors_begin(struct floors *floors, const struct box *boxes, uint32_t n, int32_t capacity,
                  uint32_t *blame);

/* The floor of the box rises, so that its sections are to be looked at. */
void floors_changed(struct floors *floors, uint32_t box);

/* The sections from lo to before hi need not be looked at. */
void floors_forget(struct floors *floors, uint32_t lo, uint32_t hi);

/* Looks at those of them that have changed, once; *rose: a floor was raised. False: a box would
 * have to lie above the capacity. */
bool floors_raise(struct floors *floors, uint32_t lo, uint32_t hi, bool *rose);

#endif
