/*
 * A table that gives each name a number: 0, 1, 2, … in the order in which the names are added. It
 * is a hash table with linear probing, at most half full. The texts of the names are not copied, so
 * the caller must keep them. Not thread-safe.
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
    struct name *list; /* by number: the name */
    uint32_t count;
    uint32_t room;
    uint32_t *slots;
    uint32_t mask;
};

/* Frees the table's memory and makes it an empty table. A structure that is all zeros is an empty
 * table too. */
void names_free(struct names *names);

/* Returns the name's number; NAMES_NONE: the name is not in the table. */
uint32_t names_find(const struct names *names, struct name name);

/* Returns the name's number, and adds the name if it is not in the table. *fresh becomes true if
 * the name was added. NAMES_NONE: the host has no memory. */
uint32_t names_add(struct names *names, struct name name, bool *fresh);

#endif
