/* Giving back what pools only cache: on request, when it was idle, and when a device is full. */
#ifndef BFC_INTERPOSE_GIVE_BACK_H
#define BFC_INTERPOSE_GIVE_BACK_H

#include "interpose/arena/state.h"

/*
 * Gives at least `bytes` of cached memory back, if there is so much; returns how many bytes went.
 * Not that of a context whose work would hold up the driver's free for longer than a second.
 * Thread-safe.
 */
uint64_t bfc_give_back_bytes(uint64_t bytes);

/* The same, of one device's memory, in a call of the program's that may wait for work as a native
 * free does; not while anything captures. */
uint64_t bfc_give_back_as_free(CUdevice device, uint64_t bytes);

/*
 * BFC_TRIM_IDLE: gives back the regions that were idle for so long, unless a context's work would
 * hold up the driver's free of them for longer than `limit_ns`. For the helper thread.
 */
uint64_t bfc_give_back_idle(uint64_t idle_ns, uint64_t limit_ns);

/*
 * From the pools of the process's other contexts on the arena's device; stops when so much came.
 * Returns how many bytes came. No pool's lock is held, nor its turn to grow.
 */
uint64_t bfc_give_back_for_sibling(struct bfc_arena *arena, uint64_t bytes);

/* The device of whose memory a call takes. */
struct bfc_place {
    enum { BFC_PLACE_CURRENT, BFC_PLACE_DEVICE, BFC_PLACE_STREAM, BFC_PLACE_ANY } kind;
    CUdevice device; /* of PLACE_DEVICE */
    CUstream stream; /* of PLACE_STREAM, with what its default means */
    bool per_thread;
};
/* The current context's device, or any where there is none; one that is named; a stream's; any. */
#define BFC_HERE ((struct bfc_place){.kind = BFC_PLACE_CURRENT})
#define BFC_ON(ordinal) ((struct bfc_place){.kind = BFC_PLACE_DEVICE, .device = (ordinal)})
#define BFC_IN(handle, thread)                                                                     \
    ((struct bfc_place){.kind = BFC_PLACE_STREAM, .stream = (handle), .per_thread = (thread)})
#define BFC_ANYWHERE ((struct bfc_place){.kind = BFC_PLACE_ANY})

/* What a location means: its device, or as BFC_HERE. NULL is such a one. */
struct bfc_place bfc_place_of(const CUmemLocation *location);

/*
 * A call past the pools found the device full: gives back what its pools only cache, and only if
 * nothing is there at once waits for work that still uses it. True: something went back; so the
 * call may be made again, and this one too, until it has nothing more. Never for a call into a
 * stream that captures.
 */
bool bfc_give_back_for_call(const struct bfc_driver *driver, struct bfc_place place);

#endif
