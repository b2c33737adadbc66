/* Makes the library forget contexts that end, by a call that has a hook or in another way. */
#include "interpose/api/context_end.h"

#include <pthread.h>

#include "interpose/arena/arena.h"
#include "interpose/arena/device.h"
#include "interpose/arena/region_map.h"
#include "interpose/arena/stream_frees.h"
#include "interpose/config/process.h"
#include "interpose/context/capture.h"
#include "interpose/context/contexts.h"
#include "interpose/context/peers.h"
#include "interpose/driver/current.h"
#include "interpose/fences/fences.h"
#include "interpose/pointers/export_handle.h"
#include "interpose/reuse/allocate.h"
#include "interpose/reuse/free_while_capturing.h"
#include "interpose/stats/events.h"
#include "interpose/table/counter.h"
#include "interpose/table/feature.h"

/* Before a context ends: keeps all arenas from using the context's CUDA events, those of fences and
 * those of frees in its streams. */
static void suspend_context(CUcontext context) {
    struct bfc_arena *arena = NULL;
    while ((arena = bfc_arena_next(arena))) {
        if (arena->fences)
            bfc_fences_suspend_context(arena->fences, context);
        bfc_stream_frees_suspend_context(arena->stream_frees, context);
    }
}

/* If the context has `ended`, its CUDA events count as complete, because its work has ended with
 * it. Otherwise undoes suspend_context: arenas use the events again. */
static void conclude_context(CUcontext context, bool ended) {
    struct bfc_arena *arena = NULL;
    while ((arena = bfc_arena_next(arena))) {
        if (arena->fences)
            bfc_fences_conclude_context(arena->fences, context, ended);
        bfc_stream_frees_conclude_context(arena->stream_frees, context, ended);
    }
}

/* Held while a context is forgotten. Records of a context are found by its handle, which the driver
 * may give to a new context after the old one has ended. So the old one must be forgotten before
 * anything is recorded of the new one. Whatever else is due is done later, without this lock: no
 * driver call may be made under it, nor a lock taken under which one is made, since in that call a
 * tool's callback may make a context, and so wait for this lock. */
static pthread_mutex_t forgetting = PTHREAD_MUTEX_INITIALIZER;

/* What is still to be done for contexts that were forgotten. */
struct remains {
    struct bfc_arena *arenas; /* a list of their arenas, with the references of the table */
    bool last_capture;        /* whether the last capture under way has ended with them */
};

/* Forgets an ended context; `number` as for bfc_contexts_forget. Its CUDA events go first, while
 * its arenas are still in the table of arenas: another thread may use such an arena, and must not
 * query an event of an ended context. The caller holds the lock. */
static void forget_context(CUcontext context, uint64_t number, unsigned long long id,
                           struct remains *remains) {
    if (!bfc_contexts_forget(context, number) || !bfc_process_if_made())
        return;
    BFC_TELL_FEATURES(context_ended, context);
    bfc_peers_forget(context);
    conclude_context(context, true);
    bfc_arena_unlink(context, id, &remains->arenas);
    remains->last_capture |= bfc_capture_context_ended(context);
}

static void end_arena(const struct bfc_driver *driver, struct bfc_arena *arena) {
    bfc_exports_arena_ended(arena);
    bfc_events_add_landmark(&arena->stats, BFC_EVENT_END, 0, 0);
    bfc_log(BFC_LOG_DEBUG, "device %d, context %llu: the pool ends with its context",
            (int)arena->device, arena->id);
    BFC_TELL_FEATURES(arena_ended, driver, arena);
    bfc_region_remove_owner(arena);
    bfc_device_refund(arena, UINT64_MAX);
    bfc_arena_drop(arena);
}

/* Forgets the context, unless another thread has done so or it is NULL, and the contexts of lost
 * arenas (bfc_arena_lose), which have ended without a hook; ends the arenas of all. If there is
 * nothing to forget, waits for a thread that is forgetting. The contexts' streams are forgotten
 * first, since their handles may come to mean other streams. */
static void forget_ended(const struct bfc_driver *driver, CUcontext context, uint64_t number,
                         unsigned long long id) {
    struct remains remains = {0};
    struct bfc_arena *arena;
    if (context || bfc_arena_some_lost())
        BFC_TELL_COUNTER(leave());
    pthread_mutex_lock(&forgetting);
    while ((arena = bfc_arena_take_lost())) {
        forget_context(arena->context, 0, arena->id, &remains);
        arena->next = remains.arenas;
        remains.arenas = arena;
    }
    if (context)
        forget_context(context, number, id, &remains);
    pthread_mutex_unlock(&forgetting);
    while ((arena = remains.arenas)) {
        remains.arenas = arena->next;
        end_arena(driver, arena);
    }
    BFC_TELL_FEATURES(contexts_forgotten, driver);
    if (remains.last_capture)
        bfc_reuse_after_captures(driver);
}

static void end_unseen_arenas(const struct bfc_driver *driver) {
    struct bfc_arena *arena = NULL;
    CUcontext ended;
    uint64_t number;
    if (bfc_process_is_forked())
        return;
    while ((arena = bfc_arena_next(arena)))
        if (!bfc_arena_is_itself(driver, arena))
            bfc_arena_lose(arena);
    forget_ended(driver, NULL, 0, 0);
    while ((ended = bfc_contexts_find_ended(driver, &number)))
        forget_ended(driver, ended, number, 0);
}

void bfc_context_serve_ends(void) {
    bfc_contexts_set_reviewer(end_unseen_arenas);
}

/* Where the driver has no ids of contexts, only the handle of a new context shows that the context
 * which had the same handle has ended. */
void bfc_context_created(const struct bfc_driver *driver, CUcontext context) {
    struct bfc_arena *arena;
    if (!driver->cuCtxGetId && bfc_process_if_made()) {
        while ((arena = bfc_arena_of_context(context, 0))) {
            bfc_arena_lose(arena);
            bfc_arena_drop(arena);
        }
        forget_ended(driver, context, 0, 0);
    }
    bfc_reuse_context_made(driver, context);
}

/* A context that a call of the program is about to end. By then the library has stopped making
 * calls of its own in this context (bfc_arena_close). */
struct ending {
    CUcontext context;
    uint64_t number;         /* the context's number, from bfc_contexts_close */
    struct bfc_arena *arena; /* the context's arena of device memory; NULL: it has none */
    struct bfc_arena *host;  /* the context's arena of host memory; NULL: it has none */
};

static struct ending close_context(const struct bfc_driver *driver, CUcontext context) {
    struct ending ending = {.context = context};
    if (!context)
        return ending;
    BFC_TELL_COUNTER(leave());
    ending.number = bfc_contexts_close(context);
    if ((ending.arena = bfc_arena_of_context(context, 0)))
        bfc_arena_close(ending.arena);
    if ((ending.host = bfc_arena_host_of_context(context, 0)))
        bfc_arena_close(ending.host);
    BFC_TELL_FEATURES(context_ending, driver, context);
    suspend_context(context);
    return ending;
}

static void resume_living(const struct bfc_driver *driver, const struct ending *ending) {
    if (ending->number)
        bfc_contexts_open(ending->context, ending->number);
    BFC_TELL_FEATURES(context_kept, driver, ending->context);
    conclude_context(ending->context, false);
    if (ending->arena)
        bfc_arena_reopen(ending->arena);
    if (ending->host)
        bfc_arena_reopen(ending->host);
}

static void conclude_end(const struct bfc_driver *driver, const struct ending *ending, bool ended) {
    if (ended && ending->context)
        forget_ended(driver, ending->context, ending->number,
                     ending->arena ? ending->arena->id : 0);
    else if (ending->context)
        resume_living(driver, ending);
    bfc_arena_drop(ending->arena);
    bfc_arena_drop(ending->host);
}

/* cuCtxDetach ends the context only if no other attachment (cuCtxAttach) is left. */
CUresult bfc_context_destroy(const struct bfc_driver *driver, CUcontext context,
                             CUresult (*real)(CUcontext)) {
    bool serves = bfc_process_if_made();
    unsigned long long id = bfc_context_id(driver, context);
    struct ending ending = serves ? close_context(driver, context) : (struct ending){0};
    CUresult result = real(context);
    bfc_thread_arena.has_context = false; /* `context` may have been the thread's current one */
    bool ended = result == CUDA_SUCCESS && (real != driver->cuCtxDetach ||
                                            bfc_handle_of(driver, context, id) != BFC_HANDLE_SAME);
    if (serves)
        conclude_end(driver, &ending, ended);
    else if (ended)
        bfc_contexts_forget(context, 0);
    return result;
}

static bool primary_is_active(const struct bfc_driver *driver, CUdevice device) {
    unsigned flags;
    int active = 1;
    return !driver->cuDevicePrimaryCtxGetState ||
           driver->cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || active;
}

/* A release ends the primary context only if it is the last one, so before any other release
 * nothing is closed. A reset always ends it: a primary context that is active afterwards is a new
 * one. */
CUresult bfc_primary_end(const struct bfc_driver *driver, CUdevice device, bool is_reset,
                         CUresult (*real)(CUdevice)) {
    bool closes = bfc_process_if_made() && (is_reset || !bfc_contexts_is_kept(device));
    struct ending ending = {0};
    if (closes)
        ending = close_context(driver, bfc_primary_context(driver, device));
    CUresult result = real(device);
    bool ended = result == CUDA_SUCCESS && (is_reset || !primary_is_active(driver, device));
    if (result == CUDA_SUCCESS && !is_reset)
        bfc_contexts_let_go(device);
    if (closes)
        conclude_end(driver, &ending, ended);
    if (ended) /* close_context may not have known the context, so every arena is checked */
        end_unseen_arenas(driver);
    return result;
}
