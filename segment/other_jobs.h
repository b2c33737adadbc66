/*
 * Finds other jobs of this user and pid namespace by their segments.
 *
 * Segments are read with pread, not mapped, so that truncation does no harm; nothing in them is
 * trusted. The number of directory entries that are read is bounded. Thread-safe.
 */
#ifndef BFC_SEGMENT_OTHER_JOBS_H
#define BFC_SEGMENT_OTHER_JOBS_H

#include <stddef.h>
#include <stdint.h>

#include "layout/segment.h"
#include "segment/deadlock.h"

/* The most jobs on one device that are considered. A device has no room for the contexts of more
 * jobs. */
#define BFC_JOBS_MOST 256u

struct bfc_other_job {
    int32_t pid;
    uint64_t in_use, cached; /* bytes that the job has in use and cached on the device */
    uint64_t asleep;  /* bytes of the job that are not on the device while it sleeps; it takes them
                         again when it wakes */
    uint64_t regions; /* how many regions the job's pools have on the device */
    char command[64];
    /* the threads that wait for the device's memory; an entry with 0 bytes is unused */
    struct bfc_waiter waiters[BFC_WAITERS];
    bool waits_elsewhere; /* whether a thread of the job waits for memory of another device */
    /* what yet another job waits for on the device, as announced to the job (bfc_waiters_announce)
     */
    struct bfc_awaited awaited;
};

/*
 * Lists at most `most` other living jobs with a pool on the device of this UUID; returns how many.
 */
size_t bfc_other_jobs_on(const uint8_t uuid[16], struct bfc_other_job *found, size_t most);

/* Maps another job's segment (BFC_SEGMENT_SIZE bytes) so that its request words can be written, and
 * checks its header; NULL on failure. Unmap it with munmap. */
struct bfc_segment_header *bfc_other_job_map(int32_t pid);

/* Lists at most `most` living jobs of the user that wait for memory, this one included; returns how
 * many. */
size_t bfc_claimants_find(struct bfc_claimant *found, size_t most);

/* Wakes all threads of other jobs that wait for memory (segment/queue.h). */
void bfc_other_jobs_wake(void);

#endif
