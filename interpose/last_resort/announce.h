/*
 * Telling other jobs what is waited for: they wake those who wait when they free something, do not
 * grow by what is waited for if they would wait too, and hand over what completes it
 * (hand_over.h).
 */
#ifndef BFC_INTERPOSE_ANNOUNCE_H
#define BFC_INTERPOSE_ANNOUNCE_H

#include "interpose/arena/arena.h"
#include "segment/other_jobs.h"

/*
 * Tells the `count` jobs, as they were seen on the arena's device, that `bytes` are waited for
 * there; 0: nothing any more. What a job was told is not told again for a while. `free_bytes`: free
 * on the device.
 */
void bfc_announce(const struct bfc_arena *arena, const struct bfc_other_job *jobs, size_t count,
                  uint64_t bytes, uint64_t free_bytes);

/* The same to this process, where `jobs` are all others. */
void bfc_announce_here(const struct bfc_arena *arena, const struct bfc_other_job *jobs,
                       size_t count, uint64_t bytes, uint64_t free_bytes);

/*
 * A pool is new: what is waited for on its device is looked up, since those who wait do not know of
 * it yet. Only where this process would wait too (BFC_WAIT).
 */
void bfc_announce_to_new(const struct bfc_arena *arena);

#endif
