/*
 * Finds the rows that must be placed together. Rows that share memory form a class. The classes of
 * one group together form an item; a class that is in no group is an item by itself. Union-find
 * over rows, O(n α(n)).
 */
#ifndef BFC_PLAN_CLASSES_H
#define BFC_PLAN_CLASSES_H

#include "planner/model/lifetimes.h"

struct classes {
    uint32_t *leader; /* by row: the first row of its class, called the class's leader */
    /* by leader (first row) of a class: the bytes of the class's largest row, rounded up to
     * `align` */
    uint64_t *class_size;
    /* by leader (first row) of a class: where the class begins within its item, in bytes */
    uint64_t *place;
    /* by leader (first row) of a class: the number of the class's item; items are numbered from 0
     * in each space, by their first rows */
    uint32_t *item;
    uint32_t *items; /* by space: how many items it has */
};

/*
 * Finds the classes and items. False: a class has rows of several spaces, streams or groups, a size
 * is too large, or the host has no memory; the error says which.
 */
bool classes_build(struct classes *classes, const struct lifetimes *lifetimes, uint64_t align,
                   struct plan_error *error);
void classes_free(struct classes *classes);

static inline uint32_t lifetimes_spaces(const struct lifetimes *lifetimes) {
    return lifetimes->spaces.count > 0 ? lifetimes->spaces.count : 1;
}

#endif
