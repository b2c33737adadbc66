/*
 * Which domain an address belongs to: a map of all regions that pools hold.
 *
 * A sorted array, searched without a lock under a sequence number; changed under a lock, which
 * happens only when a pool grows, shrinks or ends. O(log regions) to look up.
 */
#ifndef BFC_INTERPOSE_REGION_MAP_H
#define BFC_INTERPOSE_REGION_MAP_H

#include <stdbool.h>
#include <stdint.h>

/* The owner of the region that holds `address`, or NULL. Thread-safe, never blocks for long. */
void *bfc_region_owner(uint64_t address);

/*
 * Adds [start, start + bytes). Whatever overlaps it belonged to a context that has ended unseen,
 * since the driver has just given the range out: it is dropped. False: the host has no memory.
 */
bool bfc_region_add(uint64_t start, uint64_t bytes, void *owner);

/* Removes the region that starts at `start` and has this owner, if it is there. */
void bfc_region_remove(uint64_t start, const void *owner);

/*
 * The owner's first region that ends above `address`. False: there is none. Blocks writers for as
 * long as the search takes.
 */
bool bfc_region_next(uint64_t address, const void *owner, uint64_t *start, uint64_t *bytes);

/* Removes all regions of an owner. */
void bfc_region_remove_owner(const void *owner);

#endif
