/*
 * By how much the driver rounds up what pools take from it (segment/queue.h: bfc_in_driver_pages).
 * Thread-safe.
 */
#ifndef BFC_INTERPOSE_ROUNDING_H
#define BFC_INTERPOSE_ROUNDING_H

#include <stdint.h>

#include "interpose/arena/arena.h"
#include "segment/other_jobs.h"

/* Bytes, of all that this process's pools have on the device. O(regions). */
uint64_t bfc_rounded_up_on(CUdevice device);

/* What those bytes of the job's are to the driver, at most: it does not tell the sizes of its
 * regions. */
uint64_t bfc_rounded_at_most(uint64_t bytes, const struct bfc_other_job *job);

#endif
