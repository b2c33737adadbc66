/*
 * Finds deadlocks among jobs that wait for memory of several devices: each waits for memory of one
 * device that another of these jobs holds, while it holds memory of another device itself.
 *
 * Jobs that do not wait are assumed to free all their memory some time. So every deadlock that is
 * found is real, but one in which a job holds memory for ever without waiting is not found. (The
 * test of the banker's algorithm, as in queue.h.) No state; thread-safe.
 */
#ifndef BFC_SEGMENT_DEADLOCK_H
#define BFC_SEGMENT_DEADLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout/segment.h"

#define BFC_DEVICES_MOST 16u

/* What a process that waits has in use on a device. */
struct bfc_holding {
    uint8_t device_uuid[16];
    uint64_t total; /* bytes of memory that the device has */
    uint64_t in_use;
};

struct bfc_claim {
    uint64_t bytes; /* bytes that the thread waits for; 0: the entry is unused */
    uint64_t since_ns;
    /* index in the process's array `holding` of the device whose memory the thread waits for */
    uint32_t holding;
};

/* A process in which at least one thread waits for memory of a device. */
struct bfc_claimant {
    int32_t pid;
    uint32_t holdings;
    struct bfc_holding holding[BFC_DEVICES_MOST];
    struct bfc_claim claim[BFC_WAITERS]; /* for each waiting thread, what it waits for */
};

/*
 * Whether the process with index `own` must stop waiting to end a deadlock. Of the processes that
 * cannot be served and hold memory that would serve one that has waited longer, it is the one that
 * began to wait last. A process counts as served if one of its waiting threads can be served.
 */
bool bfc_deadlock_is_ours(const struct bfc_claimant *all, size_t count, size_t own);

#endif
