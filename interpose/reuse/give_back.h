/*
 * Gives back memory that pools only cache: on request, after idle time, and when a device is full.
 */
#ifndef BFC_INTERPOSE_GIVE_BACK_H
#define BFC_INTERPOSE_GIVE_BACK_H

#include "interpose/arena/state.h"

/* Gives at least `bytes` of cached memory back, if there is so much; returns how many it gave back.
 * Skips a context for whose work the driver's free would have to wait longer than a second.
 * Thread-safe. */
uint64_t bfc_give_back_bytes(uint64_t bytes);

/* Gives at least `bytes` of one device's cached memory back, if there is so much, and returns how
 * many bytes it gave back. To be called for a call of the program that may wait for work as
 * cuMemFree does, and not while anything captures. */
uint64_t bfc_give_back_as_free(CUdevice device, uint64_t bytes);

/* Gives back the regions that were idle for `idle_ns` (BFC_TRIM_IDLE). Skips a context for whose
 * work the driver's free would have to wait longer than `limit_ns`. For the helper thread. */
uint64_t bfc_give_back_idle(uint64_t idle_ns, uint64_t limit_ns);

/* Has the other pools on the arena's device give memory back, until `bytes` have come. Returns how
 * many bytes they gave back, or 1 if only other threads gave memory back. The caller holds no
 * pool's lock, and is not growing a pool. */
uint64_t bfc_give_back_for_sibling(struct bfc_arena *arena, uint64_t bytes);

/* Says from which device a call of the driver takes memory. */
struct bfc_place {
    enum { BFC_PLACE_CURRENT, BFC_PLACE_DEVICE, BFC_PLACE_STREAM, BFC_PLACE_ANY } kind;
    CUdevice device; /* set only where `kind` is BFC_PLACE_DEVICE */
    CUstream stream; /* set only where `kind` is BFC_PLACE_STREAM */
    bool per_thread; /* for BFC_PLACE_STREAM: whether the default stream is the thread's own */
    /* whether the call's work may begin before the preceding work in the stream has ended */
    bool overlaps;
    /* whether the job's memory may be off the device (BFC_SLEEP_IDLE) during the call */
    bool may_sleep;
};
/* Values of struct bfc_place. BFC_HERE: the current context's device, or any device if no context
 * is current. BFC_HERE_ASLEEP: as BFC_HERE, with `may_sleep`. BFC_ON: the device with the given
 * number. BFC_IN: the device of the given stream. BFC_ANYWHERE: any device. */
#define BFC_HERE ((struct bfc_place){.kind = BFC_PLACE_CURRENT})
#define BFC_HERE_ASLEEP ((struct bfc_place){.kind = BFC_PLACE_CURRENT, .may_sleep = true})
#define BFC_ON(ordinal) ((struct bfc_place){.kind = BFC_PLACE_DEVICE, .device = (ordinal)})
#define BFC_IN(handle, thread)                                                                     \
    ((struct bfc_place){.kind = BFC_PLACE_STREAM, .stream = (handle), .per_thread = (thread)})
#define BFC_ANYWHERE ((struct bfc_place){.kind = BFC_PLACE_ANY})

/* Returns the value for a location (CUmemLocation): its device, or BFC_HERE if `location` is NULL
 * or is no device. */
struct bfc_place bfc_place_of(const CUmemLocation *location);

/* To be called when a call of the driver other than for a pool has found the device full. Gives
 * back memory that the device's pools only cache; if none can be given back at once, waits for work
 * that still uses such memory. True: memory was given back, so the caller makes its call again, and
 * if that fails, calls this function again. Gives nothing back for a call into a stream that
 * captures. */
bool bfc_give_back_for_call(const struct bfc_driver *driver, struct bfc_place place);

#endif
