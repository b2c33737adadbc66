/*
 * Pairs of contexts: the accessor has, or had, access to the memory of the owner.
 *
 * A pair is kept until one of the two contexts ends, even if access is disabled, since work that
 * the accessor submitted before may still be under way. Thread-safe.
 */
#ifndef BFC_INTERPOSE_PEERS_H
#define BFC_INTERPOSE_PEERS_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/driver/driver.h"

/* Most contexts that can have access to one context's memory: more than the driver allows. */
#define BFC_PEERS_MOST ((size_t)255)

/* Adds a pair. Returns CUDA_SUCCESS, also if it is there already; CUDA_ERROR_TOO_MANY_PEERS if the
 * owner has BFC_PEERS_MOST pairs; or CUDA_ERROR_OUT_OF_MEMORY if the host has no memory. */
CUresult bfc_peers_add(CUcontext accessor, CUcontext owner);

/* The number of pairs; other files use bfc_peers_known. */
extern size_t bfc_peer_pairs HIDDEN;

/* Whether any context has, or had, access to the memory of another. */
static inline bool bfc_peers_known(void) {
    return UNLIKELY(bfc_load_seq_cst(&bfc_peer_pairs));
}

/* Writes the contexts that have, or had, access to `owner`'s memory; returns how many, at most
 * BFC_PEERS_MOST. */
size_t bfc_peers_of(CUcontext owner, CUcontext accessors[BFC_PEERS_MOST]);

/* The functions below tell which devices may access the owner's memory now. Pages need that, since
 * access to them is given to devices, not to contexts (interpose/features/pages/page_backing.h). So
 * each pair also holds the accessor's device, and whether its access is enabled. */
#define BFC_PEER_DEVICES_MOST ((size_t)64)

/* Records that access was enabled or disabled (`on`), if the two contexts are a pair. */
void bfc_peers_switch_access(CUcontext accessor, CUcontext owner, CUdevice device, bool on);

/* Writes the devices that may access the owner's memory now, except `own`, each once. Returns how
 * many. */
size_t bfc_peers_devices(CUcontext owner, CUdevice own, CUdevice devices[BFC_PEER_DEVICES_MOST]);

/* Whether any context of the device may access the owner's memory now. */
bool bfc_peers_device_may(CUcontext owner, CUdevice device);

/* bfc_peers_forget removes all pairs of a context that has ended. bfc_peers_forget_pair removes the
 * pair, once all work of the accessor is complete; an argument NULL stands for any context. */
void bfc_peers_forget(CUcontext context);
void bfc_peers_forget_pair(CUcontext accessor, CUcontext owner);

#endif
