/*
 * Finds the rows that move together: rows that share memory form a class, classes of one group form
 * an item. Union-find over rows; O(n α(n)).
 */
#ifndef BFC_PLAN_CLASSES_H
#define BFC_PLAN_CLASSES_H

#include "planner/model/lifetimes.h"

struct classes {
    uint32_t *leader;     /* by row: the first row of its class */
    uint64_t *class_size; /* by leader: bytes of the class's largest row, rounded up to `align` */
    uint64_t *place;      /* by leader: the class's start within its item, in bytes */
    uint32_t *item;  /* by leader: the class's item, numbered from 0 in each space in row order */
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
