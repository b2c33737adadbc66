/*
 * Regions that the driver is about to have back. They are in the region map no longer, since the
 * driver may hand their addresses out before its call returns; until then it takes them for live
 * memory, and would say so of a pointer that the program has freed, while the pool counts it no
 * longer. Its call may wait for all work of the device.
 *
 * Thread-safe.
 */
#ifndef BFC_INTERPOSE_LEAVING_H
#define BFC_INTERPOSE_LEAVING_H

#include <stdbool.h>
#include <stdint.h>

/* The caller's, from begin to end. */
struct bfc_leaving {
    uint64_t start, bytes;
    const void *device; /* any word that tells devices apart */
    const bool *ended;  /* atomic: it has gone with its context, and leaves no more */
    struct bfc_leaving *next;
};

/* Before the region leaves the map; and after the driver's call. */
void bfc_leaving_begin(struct bfc_leaving *region);
void bfc_leaving_end(const struct bfc_leaving *region);

/* The region that holds `address`; false: none does. */
bool bfc_leaving_find(uint64_t address, uint64_t *start, uint64_t *bytes);

/* The bytes of all such regions of a device that have yet to go. */
uint64_t bfc_leaving_bytes(const void *device);

#endif
