/*
 * Other jobs of this user that publish a segment: which of them cache memory on a device.
 *
 * Segments are read with pread, never mapped, so that truncation does no harm; nothing in them is
 * trusted. Only those of this user and pid namespace are read. The number of directory entries is
 * bounded. Thread-safe.
 */
#ifndef BFC_SEGMENT_OTHER_JOBS_H
#define BFC_SEGMENT_OTHER_JOBS_H

#include <stddef.h>
#include <stdint.h>

#include "layout/segment.h"
#include "segment/deadlock.h"

/* So many jobs on one device are looked at: more than have room for their contexts there. */
#define BFC_JOBS_MOST 256u

struct bfc_other_job {
    int32_t pid;
    uint64_t in_use, cached; /* on the device, in bytes */
    uint64_t regions;        /* a count */
    char command[64];
    struct bfc_waiter waiters[BFC_WAITERS]; /* on the device; as they stand, see segment/queue.h */
    bool waits_elsewhere;                   /* somebody waits in it for another device's */
    struct bfc_awaited awaited;             /* on the device, as it was told last */
};

/* Lists living jobs with memory on the device of this UUID, at most `most`; returns how many. */
size_t bfc_other_jobs_on(const uint8_t uuid[16], struct bfc_other_job *found, size_t most);

/*
 * Maps another job's segment, BFC_SEGMENT_SIZE bytes, for its request words, after checking its
 * header; NULL on failure. Unmap it with munmap.
 */
struct bfc_segment_header *bfc_other_job_map(int32_t pid);

/* Lists the living jobs of the user in which somebody waits, this one too, at most `most`. */
size_t bfc_claimants_find(struct bfc_claimant *found, size_t most);

/* Has all who wait in other jobs look again (segment/queue.h). */
void bfc_other_jobs_wake(void);

#endif
