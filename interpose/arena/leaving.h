/*
 * Regions that are being freed in the driver. Such a region has left the region map, since the
 * driver may hand its addresses out before the call returns. But the call may wait for all work of
 * the device, and until it returns the driver answers questions about a pointer into the region as
 * if the memory were live. This list lets the library answer them instead. Thread-safe.
 */
#ifndef BFC_INTERPOSE_LEAVING_H
#define BFC_INTERPOSE_LEAVING_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The list's entry of a region, in the caller's memory from bfc_leaving_begin to bfc_leaving_end.
 */
struct bfc_leaving {
    uint64_t start, bytes;
    const void *device; /* tells devices apart; not dereferenced */
    const bool *ended;  /* atomic: the context has ended, and the region with it */
    struct bfc_leaving *next;
};

/* Call the first before the region leaves the region map, the second after the driver's call. */
void bfc_leaving_begin(struct bfc_leaving *region);
void bfc_leaving_end(const struct bfc_leaving *region);

/* The region that holds `address`; false: none does. */
bool bfc_leaving_find(uint64_t address, uint64_t *start, uint64_t *bytes);

/* Bytes of the regions in the list that are of this device and whose contexts have not ended. */
uint64_t bfc_leaving_bytes(const void *device);

#endif
