/*
 * Which arena an address belongs to: a map of all regions that pools hold.
 *
 * A sorted array, searched without a lock under a sequence number; changed under a lock, which
 * happens only when a pool grows, shrinks or ends. O(log regions) to look up.
 */
#ifndef BFC_INTERPOSE_REGION_MAP_H
#define BFC_INTERPOSE_REGION_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

extern uint64_t bfc_region_sequence
    HIDDEN; /* odd while the map changes; never 0 once a region was added */

/* A thread's last results, by the upper bits of the address; valid until the map changes. */
struct bfc_region_seen {
    uint64_t sequence, start, bytes;
    void *owner;
};
enum { BFC_REGIONS_SEEN = 16, BFC_REGION_SEEN_BITS = 21 };
extern __thread struct bfc_region_seen bfc_regions_seen[BFC_REGIONS_SEEN] INITIAL_EXEC HIDDEN;

void *bfc_region_find(uint64_t address);

/* The owner of the region that holds `address`, or NULL. Thread-safe, never blocks for long. */
static inline void *bfc_region_owner(uint64_t address) {
    const struct bfc_region_seen *seen =
        &bfc_regions_seen[(address >> BFC_REGION_SEEN_BITS) % BFC_REGIONS_SEEN];
    if (LIKELY(address - seen->start < seen->bytes) &&
        LIKELY(bfc_load_acquire(&bfc_region_sequence) == seen->sequence))
        return seen->owner;
    return bfc_region_find(address);
}

/* Adds the region [start, start + bytes). The driver has just allocated that range, so that an
 * entry that overlaps it is of a context that has ended unseen, and is dropped. False: the host has
 * no memory. */
bool bfc_region_add(uint64_t start, uint64_t bytes, void *owner);

/* The owner of the first region that overlaps the range; NULL: none does. */
void *bfc_region_overlapping(uint64_t start, uint64_t bytes);

/* Removes the region that starts at `start` and has this owner, if it is there. */
void bfc_region_remove(uint64_t start, const void *owner);

/* The owner's first region that ends above `address`. False: there is none. Blocks writers for as
 * long as the search takes. */
bool bfc_region_next(uint64_t address, const void *owner, uint64_t *start, uint64_t *bytes);

/* Removes all regions of an owner. */
void bfc_region_remove_owner(const void *owner);

/* A region that is being freed in the driver has left the map, since the driver may hand its
 * addresses out before the call returns. But the call may wait for all work of the device, and
 * until it returns the driver answers questions about a pointer into the region as if the memory
 * were live. This list lets the library answer them instead. An entry is in the caller's memory
 * from bfc_leaving_begin to bfc_leaving_end. */
struct bfc_leaving {
    uint64_t start, bytes;
    /* the record of the region's device, which is compared but not dereferenced */
    const void *device;
    const bool *ended; /* atomic: the context has ended, and the region with it */
    struct bfc_leaving *next;
};

/* bfc_leaving_begin must be called before the region leaves the region map, and bfc_leaving_end
 * after the driver's call has returned. */
void bfc_leaving_begin(struct bfc_leaving *region);
void bfc_leaving_end(const struct bfc_leaving *region);

/* Finds the region in the list that holds `address`; false: none does. */
bool bfc_leaving_find(uint64_t address, uint64_t *start, uint64_t *bytes);

/* Returns how many bytes the regions in the list have that are of this device and whose contexts
 * have not ended. */
uint64_t bfc_leaving_bytes(const void *device);

#endif
