/*
 * A table that gives each name a number: 0, 1, 2, … in the order of first occurrence. Open
 * addressing with linear probing, at most half full; O(1) expected. The table refers to the
 * caller's texts and does not copy them. Not thread-safe.
 */
#ifndef BFC_PLAN_NAMES_H
#define BFC_PLAN_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAMES_NONE UINT32_MAX

struct name {
    const char *text;
    size_t length;
};

struct names {
    struct name *list; /* the names by their numbers */
    uint32_t count;
    uint32_t room;
    uint32_t *slots;
    uint32_t mask;
};

/* Frees the table's memory and leaves an empty table, which is all zeros. */
void names_free(struct names *names);

/* Returns the number of a name; NAMES_NONE: the name is not in the table. */
uint32_t names_find(const struct names *names, struct name name);

/* Returns the number of a name, and adds the name if it is not in the table; *fresh says whether
 * it was added. NAMES_NONE: the host has no memory. */
uint32_t names_add(struct names *names, struct name name, bool *fresh);

#endif
