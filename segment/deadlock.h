/*
 * Deadlock among jobs that wait for memory of several devices: each of some processes waits for
 * what the others hold, one on this device, another one on that.
 *
 * All that does not wait is taken to give up all it has, whatever the driver counts besides: so who
 * is told of a deadlock is in one, but one that only becomes one by what others hold for ever is
 * not seen. (The banker's test, as in queue.h.) No state; thread-safe.
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
    uint64_t total; /* bytes of the device */
    uint64_t in_use;
};

struct bfc_claim {
    uint64_t bytes; /* that it waits for; 0: nothing */
    uint64_t since_ns;
    uint32_t holding; /* on which device: index of that holding */
};

/* A process in which somebody waits. */
struct bfc_claimant {
    int32_t pid;
    uint32_t holdings;
    struct bfc_holding holding[BFC_DEVICES_MOST];
    struct bfc_claim claim[BFC_WAITERS]; /* by slot */
};

/*
 * Whether the process with index `own` is to be told: of those that wait in vain, and that hold
 * what would serve an older one, it is the youngest. A process counts as served if one of its
 * claims can be.
 */
bool bfc_deadlock_is_ours(const struct bfc_claimant *all, size_t count, size_t own);

#endif
