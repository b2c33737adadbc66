/*
 * Sorts numbers that are tagged with an index: least-significant-digit radix sort, stable, O(n)
 * with at most eight passes; bytes that are equal in all keys cost no pass.
 */
#ifndef BFC_PLAN_SORT_H
#define BFC_PLAN_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct keyed {
    uint64_t key;
    uint32_t index;
};

/* Sorts the list by key. False: the host has no memory for n more entries, and the list is
 * unchanged. */
bool sort_keyed(struct keyed *list, size_t n);

/* Returns a key for a number, so that keys are in the order of their numbers. The number must
 * not be a NaN. */
uint64_t sort_key_of(double value);

#endif
