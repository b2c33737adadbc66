/* Prepares blocks for use by others than the context of their pool. */
#include "interpose/reuse/sharing.h"

#include "interpose/config/process.h"
#include "interpose/context/peers.h"
#include "interpose/driver/current.h"
#include "interpose/reuse/allocate.h"
#include "interpose/table/counter.h"
#include "interpose/table/feature.h"

/* bfc_pool_share_region need not be told to keep the region (`false`), because the region of a live
 * block is never given back. */
CUresult bfc_share_block(const struct bfc_driver *driver, struct bfc_arena *arena,
                         CUdeviceptr pointer) {
    BFC_TELL_COUNTER(bar());
    bfc_store_relaxed(&arena->shown, true);
    bfc_pool_share_region(arena->pool, pointer, false);
    return bfc_reuse_wait_for_handed_out(driver, arena);
}

/* The peer is recorded first: from then on mode ordered hands out no pending block. So the wait
 * that follows covers all pending blocks that were handed out. */
static CUresult add_peer(const struct bfc_driver *driver, CUcontext accessor, CUcontext owner) {
    CUresult result = bfc_peers_add(accessor, owner);
    BFC_TELL_COUNTER(leave());
    struct bfc_arena *arena = result == CUDA_SUCCESS ? bfc_arena_of_context(owner, 0) : NULL;
    if (arena)
        result = bfc_reuse_wait_for_handed_out(driver, arena);
    bfc_arena_drop(arena);
    return result;
}

/* Tells the features that a peer's access has changed. Returns the first error, after which the
 * peer must get no access. */
static CUresult tell_peers_changed(const struct bfc_driver *driver, struct bfc_arena *arena,
                                   CUdevice device) {
    CUresult result = CUDA_SUCCESS;
    BFC_FOR_EACH_FEATURE(feature)
    if ((*feature)->peers_changed && result == CUDA_SUCCESS)
        result = (*feature)->peers_changed(driver, arena, device);
    return result;
}

/* Turns the access of the current context, `accessor`, to the owner's pages on or off. The driver
 * grants access to pages to a device as a whole, so the features get the accessor's device. */
static CUresult switch_page_access(const struct bfc_driver *driver, CUcontext accessor,
                                   CUcontext owner, bool on) {
    CUdevice device;
    struct bfc_arena *arena = bfc_arena_of_context(owner, 0);
    CUresult result = driver->cuCtxGetDevice(&device);
    if (result == CUDA_SUCCESS)
        bfc_peers_switch_access(accessor, owner, device, on);
    if (result == CUDA_SUCCESS && arena)
        result = tell_peers_changed(driver, arena, device);
    bfc_arena_drop(arena);
    return result;
}

/* If the peer cannot be given access to the pages, the driver's peer access is turned off again. */
static CUresult give_pages(const struct bfc_driver *driver, CUcontext accessor, CUcontext owner) {
    CUresult result = switch_page_access(driver, accessor, owner, true);
    if (result != CUDA_SUCCESS && driver->cuCtxDisablePeerAccess) {
        switch_page_access(driver, accessor, owner, false);
        BFC_TRY_HARD(undone, driver->cuCtxDisablePeerAccess(owner));
        (void)undone;
    }
    return result;
}

CUresult bfc_share_enable_peer(const struct bfc_driver *driver, CUcontext owner, unsigned flags) {
    CUcontext current = NULL;
    bool known = driver->cuCtxGetCurrent(&current) == CUDA_SUCCESS && current && owner;
    if (known) {
        bfc_reuse_context_made(driver, current);
        bfc_reuse_context_made(driver, owner);
    }
    CUresult result = known ? add_peer(driver, current, owner) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS)
        result = driver->cuCtxEnablePeerAccess(owner, flags);
    return known && result == CUDA_SUCCESS ? give_pages(driver, current, owner) : result;
}

CUresult bfc_share_disable_peer(const struct bfc_driver *driver, CUcontext owner) {
    CUcontext current = NULL;
    bool known = driver->cuCtxGetCurrent(&current) == CUDA_SUCCESS && current && owner;
    CUresult result = driver->cuCtxDisablePeerAccess(owner);
    if (known && result == CUDA_SUCCESS && bfc_process_if_made())
        switch_page_access(driver, current, owner, false);
    return result;
}

/* Makes `accessor` a peer of the device's primary context and of the contexts of all arenas on the
 * device, and gives it access to their pages. Since the accessor has mapped memory of that device,
 * it may be able to reach all memory there. */
static CUresult add_peers_on(const struct bfc_driver *driver, CUcontext accessor, CUdevice device) {
    struct bfc_arena *arena = NULL;
    CUcontext primary = bfc_primary_context(driver, device);
    CUresult result = primary ? add_peer(driver, accessor, primary) : CUDA_SUCCESS;
    while (result == CUDA_SUCCESS && (arena = bfc_arena_next_on(device, arena))) {
        if (arena->context != primary)
            result = add_peer(driver, accessor, arena->context);
        if (result == CUDA_SUCCESS)
            result = switch_page_access(driver, accessor, arena->context, true);
    }
    bfc_arena_drop(arena);
    return result;
}

CUresult bfc_share_peer_opened(const struct bfc_driver *driver, CUcontext accessor,
                               CUdeviceptr mapped) {
    CUdevice own, device;
    if (!driver->cuPointerGetAttribute || driver->cuCtxGetDevice(&own) != CUDA_SUCCESS ||
        driver->cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, mapped) !=
            CUDA_SUCCESS ||
        device == own)
        return CUDA_SUCCESS;
    return add_peers_on(driver, accessor, device);
}
