/*
 * Sorts pairs of a 64-bit key and an index by key: a stable radix sort from the lowest byte of the
 * keys to the highest, in O(n). A byte that is the same in all keys takes no pass over the list.
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

/* Sorts the list by rising key. False: the host has no memory for a second list of n elements; the
 * list is then unchanged. */
bool sort_keyed(struct keyed *list, size_t n);

/* Returns a 64-bit key for a floating-point number, such that a larger number has a larger key. The
 * number must not be a NaN. */
uint64_t sort_key_of(double value);

#endif
