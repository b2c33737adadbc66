/*
 * Finds the rows that move together: rows that share memory form a class, classes of one group form
 * an item. Union-find over rows; O(n α(n)).
 */
#ifndef BFC_PLAN_CLASSES_H
#define BFC_PLAN_CLASSES_H

#include "planner/model/lifetimes.h"

struct classes {
    uint32_t *leader; /* by row: the first row of its class */
    /* by the class's leader: bytes of its largest row, rounded up to `align` */
    uint64_t *class_size;
    uint64_t *place; /* by the class's leader: the start of the class within its item, in bytes */
    /* by the class's leader: its item, numbered from 0 in each space in row order */
    uint32_t *item;
    uint32_t *items; /* by space: number of items */
};

/*
 * Refuses contradictions (classes that extend over several spaces, streams or groups) and sizes
 * that are too large.
 */
bool classes_build(struct classes *classes, const struct lifetimes *lifetimes, uint64_t align,
                   struct plan_error *error);
void classes_free(struct classes *classes);

static inline uint32_t lifetimes_spaces(const struct lifetimes *lifetimes) {
    return lifetimes->spaces.count > 0 ? lifetimes->spaces.count : 1;
}

#endif
