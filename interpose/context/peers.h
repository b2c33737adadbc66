/*
 * Which contexts have, or had, access to another context's memory.
 *
 * A pair is kept until one of the two contexts ends, even if access is disabled: work submitted
 * before may still be under way. Thread-safe.
 */
#ifndef BFC_INTERPOSE_PEERS_H
#define BFC_INTERPOSE_PEERS_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/driver/driver.h"

/* Most contexts that can have access to one context's memory: more than the driver allows. */
#define BFC_PEERS_MOST ((size_t)255)

/* Adds a pair. Returns CUDA_SUCCESS, also if the pair was known; CUDA_ERROR_TOO_MANY_PEERS beyond
 * BFC_PEERS_MOST; or CUDA_ERROR_OUT_OF_MEMORY if the host has no memory. */
CUresult bfc_peers_add(CUcontext accessor, CUcontext owner);

/* How many pairs there are in all; other files use bfc_peers_known. */
extern size_t bfc_peer_pairs HIDDEN;

/* Whether there are any pairs. */
static inline bool bfc_peers_known(void) {
    return UNLIKELY(bfc_load_seq_cst(&bfc_peer_pairs));
}

/* Writes the contexts that have, or had, access to `owner`'s memory; returns how many, at most
 * BFC_PEERS_MOST. */
size_t bfc_peers_of(CUcontext owner, CUcontext accessors[BFC_PEERS_MOST]);

/* The functions below tell which devices may use the owner's memory now. For that each pair also
 * holds the accessor's device, and whether access is on. They are for memory that belongs to the
 * device and not to the context (interpose/features/pages/page_backing.h). */
#define BFC_PEER_DEVICES_MOST ((size_t)64)

/* Notes that access was turned on or off; nothing happens for a pair that is not known. */
void bfc_peers_switch_access(CUcontext accessor, CUcontext owner, CUdevice device, bool on);

/* Writes the devices that may use the owner's memory now, except `own`, each once; returns how
 * many. */
size_t bfc_peers_devices(CUcontext owner, CUdevice own, CUdevice devices[BFC_PEER_DEVICES_MOST]);

/* Whether any context of the device may use the owner's memory now. */
bool bfc_peers_device_may(CUcontext owner, CUdevice device);

/* bfc_peers_forget forgets all pairs of a context that has ended; bfc_peers_forget_pair forgets one
 * pair whose accessor's work is over; NULL stands for any context. */
void bfc_peers_forget(CUcontext context);
void bfc_peers_forget_pair(CUcontext accessor, CUcontext owner);

#endif
