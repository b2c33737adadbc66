/*
 * Telling other jobs what is waited for: they wake those who wait when they free something, do not
 * grow by what is waited for if they would wait too, and hand over what completes it
 * (hand_over.h).
 */
#ifndef BFC_INTERPOSE_ANNOUNCE_H
#define BFC_INTERPOSE_ANNOUNCE_H

#include "interpose/arena/arena.h"
#include "segment/other_jobs.h"

/* What is waited for on a device. */
struct bfc_demand {
    uint64_t bytes;      /* 0: nothing any more */
    uint64_t turn_ns;    /* when that one's turn came */
    uint64_t free_bytes; /* on the device */
};

/*
 * Tells the `count` jobs, as they were seen on the arena's device, what is waited for there. What a
 * job was told is not told again for a while.
 */
void bfc_announce(const struct bfc_arena *arena, const struct bfc_other_job *jobs, size_t count,
                  struct bfc_demand demand);

/* Tells this process, without asking it for anything. */
void bfc_announce_here(const struct bfc_arena *arena, uint64_t bytes);

/*
 * A pool is new: what is waited for on its device is looked up, since those who wait do not know of
 * it yet. Only where this process would wait too (BFC_WAIT).
 */
void bfc_announce_to_new(const struct bfc_arena *arena);

#endif
