/* The ends of contexts. */
#include "interpose/api/context_end.h"

#include "interpose/arena/arena.h"
#include "interpose/arena/device.h"
#include "interpose/arena/host_left.h"
#include "interpose/arena/region_map.h"
#include "interpose/arena/stream_frees.h"
#include "interpose/config/process.h"
#include "interpose/context/capture.h"
#include "interpose/context/contexts.h"
#include "interpose/context/peers.h"
#include "interpose/driver/current.h"
#include "interpose/features/pages/page_calls.h"
#include "interpose/features/share/imports.h"
#include "interpose/fences/fences.h"
#include "interpose/pointers/export_handle.h"
#include "interpose/reuse/free_while_capturing.h"
#include "interpose/stats/events.h"

/* What pools of other contexts know of it: its share in their fences, and frees in its streams. */
static void suspend_context(CUcontext context) {
    struct bfc_arena *arena = NULL;
    while ((arena = bfc_arena_next(arena))) {
        if (arena->fences)
            bfc_fences_suspend_context(arena->fences, context);
        bfc_stream_frees_suspend_context(arena->stream_frees, context);
    }
}

static void resume_context(CUcontext context) {
    struct bfc_arena *arena = NULL;
    while ((arena = bfc_arena_next(arena))) {
        if (arena->fences)
            bfc_fences_resume_context(arena->fences, context);
        bfc_stream_frees_resume_context(arena->stream_frees, context);
    }
}

static void forget_events(CUcontext context) {
    struct bfc_arena *arena = NULL;
    while ((arena = bfc_arena_next(arena))) {
        if (arena->fences)
            bfc_fences_forget_context(arena->fences, context);
        bfc_stream_frees_forget_context(arena->stream_frees, context);
    }
}

/* One that has left the table; the caller gives its reference. */
static void end_arena(const struct bfc_driver *driver, struct bfc_arena *arena) {
    bfc_exports_arena_ended(arena);
    bfc_events_add_landmark(&arena->stats, BFC_EVENT_END, 0, 0);
    bfc_log(BFC_LOG_DEBUG, "device %d, context %llu: the pool ends with its context",
            (int)arena->device, arena->id);
    bfc_pages_end(driver, arena);
    bfc_region_remove_owner(arena);
    bfc_device_refund(arena, UINT64_MAX);
    bfc_arena_drop(arena);
}

/* The context's own one, and that of host memory. */
static void end_arenas(const struct bfc_driver *driver, CUcontext context, unsigned long long id,
                       bool other) {
    struct bfc_arena *arena;
    while ((arena = bfc_arena_unlink(context, id, other)))
        end_arena(driver, arena);
}

void bfc_context_ended_unseen(const struct bfc_driver *driver, CUcontext context,
                              unsigned long long id) {
    end_arenas(driver, context, id, true);
}

/*
 * Its own fences go before its arena: until that has ended, somebody may still ask for them. Fences
 * over it are no longer asked for then.
 */
static void forget_context(const struct bfc_driver *driver, CUcontext context,
                           unsigned long long id) {
    bfc_peers_forget(context);
    forget_events(context);
    end_arenas(driver, context, id, false);
    bfc_imports_context_ended(context);
    bfc_contexts_forget(context);
    if (bfc_capture_context_ended(context))
        bfc_reuse_after_captures(driver);
}

/* A context that is about to end: nobody of ours is in it from now on (interpose/arena/arena.h). */
struct ending {
    CUcontext context;
    struct bfc_arena *arena; /* NULL: it has none */
    struct bfc_arena *host;  /* the same */
    struct bfc_host_left *left;
};

static struct ending close_context(const struct bfc_driver *driver, CUcontext context) {
    struct ending ending = {.context = context};
    if (!context)
        return ending;
    if ((ending.arena = bfc_arena_of_context(context, 0)))
        bfc_arena_close(ending.arena);
    if ((ending.host = bfc_arena_host_of_context(context, 0)))
        bfc_arena_close(ending.host);
    ending.left = bfc_host_left_note(driver, ending.host);
    suspend_context(context);
    return ending;
}

/* Before the arena ends, which counts what it has as gone. */
static void conclude_left(const struct ending *ending, bool ended) {
    if (ended && ending->left)
        bfc_host_left_add(ending->host, ending->left);
    else
        bfc_host_left_forget(ending->left);
}

static void conclude_end(const struct bfc_driver *driver, const struct ending *ending, bool ended) {
    conclude_left(ending, ended);
    if (ended && ending->context)
        forget_context(driver, ending->context, ending->arena ? ending->arena->id : 0);
    else if (ending->context)
        resume_context(ending->context);
    if (!ended && ending->arena)
        bfc_arena_reopen(ending->arena);
    if (!ended && ending->host)
        bfc_arena_reopen(ending->host);
    bfc_arena_drop(ending->arena);
    bfc_arena_drop(ending->host);
    bfc_host_left_collect(driver);
}

CUresult bfc_context_destroy(const struct bfc_driver *driver, CUcontext context,
                             CUresult (*real)(CUcontext)) {
    bool serves = bfc_process_if_made();
    struct ending ending = serves ? close_context(driver, context) : (struct ending){0};
    CUresult result = real(context);
    if (serves)
        conclude_end(driver, &ending, result == CUDA_SUCCESS);
    else if (result == CUDA_SUCCESS)
        bfc_contexts_forget(context);
    return result;
}

static bool has_ended(const struct bfc_driver *driver, const struct bfc_arena *arena) {
    unsigned long long id;
    return driver->cuCtxGetId &&
           (driver->cuCtxGetId(arena->context, &id) != CUDA_SUCCESS || id != arena->id);
}

/*
 * The device's primary context may have ended, but which one it was could not be found out: looks
 * at all that are known of the device.
 */
static void review_captures(const struct bfc_driver *driver, CUdevice device) {
    struct bfc_arena *arena = NULL;
    while ((arena = bfc_arena_next_on(device, arena)))
        if (has_ended(driver, arena))
            forget_context(driver, arena->context, arena->id);
}

static bool primary_is_active(const struct bfc_driver *driver, CUdevice device) {
    unsigned flags;
    int active = 1;
    return !driver->cuDevicePrimaryCtxGetState ||
           driver->cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || active;
}

/* Only the last release ends the context; a reset always does, though the context may be back. */
static CUresult end_primary(const struct bfc_driver *driver, CUdevice device, bool always,
                            CUresult (*real)(CUdevice)) {
    bool serves = bfc_process_if_made();
    struct ending ending = {0};
    if (serves)
        ending = close_context(driver, bfc_primary_context(driver, device));
    CUresult result = real(device);
    bool ended = result == CUDA_SUCCESS && (always || !primary_is_active(driver, device));
    if (serves && !ending.context)
        review_captures(driver, device);
    if (serves)
        conclude_end(driver, &ending, ended);
    if (ended)
        bfc_contexts_forget_primary(device);
    return result;
}

CUresult bfc_primary_reset(const struct bfc_driver *driver, CUdevice device,
                           CUresult (*real)(CUdevice)) {
    return end_primary(driver, device, true, real);
}

CUresult bfc_primary_release(const struct bfc_driver *driver, CUdevice device,
                             CUresult (*real)(CUdevice)) {
    return end_primary(driver, device, false, real);
}
