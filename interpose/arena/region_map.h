/*
 * A map of all regions that the pools hold, which tells the arena (the owner) of an address.
 *
 * The map is a sorted array. Lookups search it without a lock, in O(log regions), and detect
 * changes by a sequence number. Changes take a lock; they happen only when a pool grows, shrinks or
 * ends.
 */
#ifndef BFC_INTERPOSE_REGION_MAP_H
#define BFC_INTERPOSE_REGION_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

extern uint64_t bfc_region_sequence
    HIDDEN; /* the map's sequence number: odd while the map changes; 0 until a region is added */

/* The regions that a thread looked up last: a direct-mapped cache indexed by upper bits of the
 * address. An entry is valid while its `sequence` is the map's sequence number. */
struct bfc_region_seen {
    uint64_t sequence, start, bytes;
    void *owner;
};
enum { BFC_REGIONS_SEEN = 16, BFC_REGION_SEEN_BITS = 21 };
extern __thread struct bfc_region_seen bfc_regions_seen[BFC_REGIONS_SEEN] INITIAL_EXEC HIDDEN;

void *bfc_region_find(uint64_t address);

/* The owner of the region that holds `address`, or NULL. Thread-safe. A lookup that is disturbed by
 * changes of the map many times in a row takes the lock that changes take. */
static inline void *bfc_region_owner(uint64_t address) {
    const struct bfc_region_seen *seen =
        &bfc_regions_seen[(address >> BFC_REGION_SEEN_BITS) % BFC_REGIONS_SEEN];
    if (LIKELY(address - seen->start < seen->bytes) &&
        LIKELY(bfc_load_acquire(&bfc_region_sequence) == seen->sequence))
        return seen->owner;
    return bfc_region_find(address);
}

/* Adds the region [start, start + bytes), which the driver has just allocated. A region in the map
 * that overlaps it is removed: its context has ended by a call that no hook saw. False: the host
 * has no memory. */
bool bfc_region_add(uint64_t start, uint64_t bytes, void *owner);

/* The owner of the first region that overlaps the range; NULL: none does. */
void *bfc_region_overlapping(uint64_t start, uint64_t bytes);

/* Removes the region that starts at `start` and has this owner, if it is there. */
void bfc_region_remove(uint64_t start, const void *owner);

/* Finds the owner's first region that ends above `address`. False: there is none. Takes the lock
 * that changes of the map take. */
bool bfc_region_next(uint64_t address, const void *owner, uint64_t *start, uint64_t *bytes);

void bfc_region_remove_owner(const void *owner);

/* A region that the driver is freeing. It has left the region map before the driver's call, since
 * the driver may reuse its addresses before that call returns. But the call may wait for all work
 * of the device, and until it returns the driver describes a pointer into the region as if its
 * memory were live. So the library answers questions about such pointers itself, from the list of
 * these regions. An entry of the list is the caller's variable, from bfc_leaving_begin to
 * bfc_leaving_end. */
struct bfc_leaving {
    uint64_t start, bytes;
    /* the struct bfc_device of the region's device; compared, not dereferenced */
    const void *device;
    const bool *ended; /* atomic: whether the region's context has ended, and the region with it */
    struct bfc_leaving *next;
};

/* bfc_leaving_begin must be called before the region leaves the region map, and bfc_leaving_end
 * after the driver's call has returned. */
void bfc_leaving_begin(struct bfc_leaving *region);
void bfc_leaving_end(const struct bfc_leaving *region);

/* Finds the region that holds `address` among those that are being freed; false: there is none. */
bool bfc_leaving_find(uint64_t address, uint64_t *start, uint64_t *bytes);

/* Returns how many bytes are being freed in regions of this device whose contexts have not
 * ended. */
uint64_t bfc_leaving_bytes(const void *device);

#endif
