/* The hooks: exported wrappers without logic, and the tables that lead programs to them. */
#include "interpose/entry/hooks.h"

#include <stdio.h>
#include <string.h>

#include "interpose/api/context_end.h"
#include "interpose/api/memory.h"
#include "interpose/config/routes.h"
#include "interpose/context/capture.h"
#include "interpose/context/contexts.h"
#include "interpose/context/green.h"
#include "interpose/driver/current.h"
#include "interpose/driver/memory_needs.h"
#include "interpose/entry/unknown.h"
#include "interpose/pointers/export_handle.h"
#include "interpose/pointers/pointer_attributes.h"
#include "interpose/pointers/sync_memops.h"
#include "interpose/reuse/allocate.h"
#include "interpose/reuse/free_fence.h"
#include "interpose/reuse/free_while_capturing.h"
#include "interpose/reuse/give_back.h"
#include "interpose/reuse/sharing.h"
#include "interpose/stats/published_segment.h"

/* ---- what hooks do besides their call ---- */

static void add_primary(const struct bfc_driver *driver, CUcontext context, CUdevice device) {
    bfc_reuse_context_made(driver, context);
    bfc_contexts_add_primary(context, device);
    bfc_contexts_retained(device);
}

/* A green context is a part of its device's primary context, which is registered in its place. */
static void add_green(const struct bfc_driver *driver, CUdevice device) {
    CUcontext primary = bfc_primary_context(driver, device);
    if (primary)
        bfc_reuse_context_made(driver, primary);
}

static CUresult note_green_context(const struct bfc_driver *driver, const CUcontext *context,
                                   CUresult result) {
    if (result == CUDA_SUCCESS)
        bfc_green_made(driver, *context);
    return result;
}

/* Registers a context that became current, since it may have been created unseen by any hook. */
static CUresult enter_context(const struct bfc_driver *driver, CUcontext context, CUresult result) {
    if (result == CUDA_SUCCESS && context && !bfc_contexts_has(driver, context))
        bfc_reuse_context_made(driver, bfc_green_owner(driver, context));
    return result;
}

static CUresult end_capture(const struct bfc_driver *driver, CUstream stream, bool per_thread,
                            CUresult result) {
    bool last = result == CUDA_SUCCESS && bfc_capture_ended(stream, per_thread);
    if (bfc_capture_review(driver) || last)
        bfc_reuse_after_captures(driver);
    return result;
}

/*
 * Whether a stream that the driver refused to destroy still captures. The mode of its capture is no
 * longer known, so the caller assumes the mode that bars the most.
 */
static bool still_captures(const struct bfc_driver *driver, CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return driver->cuStreamIsCapturing &&
           driver->cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static CUresult destroy_stream(const struct bfc_driver *driver, CUstream stream,
                               CUresult (*real)(CUstream)) {
    bool last = bfc_capture_ended(stream, false);
    CUresult result = real(stream);
    if (result != CUDA_SUCCESS && still_captures(driver, stream)) {
        bfc_capture_begin();
        bfc_capture_began(stream, false, CU_STREAM_CAPTURE_MODE_GLOBAL, CUDA_SUCCESS);
    } else if (last) {
        bfc_reuse_after_captures(driver);
    }
    return result;
}

static CUresult replace_entry(const char *name, void **entry, int version, bfc_cuda_flags flags,
                              CUresult result) {
    if (result == CUDA_SUCCESS && name && entry)
        *entry = bfc_hook_for_entry(*entry, name, version, flags);
    return result;
}

/* ---- the hooks ---- */

/*
 * A hook is a local function, which programs reach through the tables below. It is also exported by
 * the driver's name, with the hidden version that symbols.map explains, only so that dladdr can
 * name it.
 */
#define HOOK(name, parameters)                                                                     \
    CUresult bfc_export_##name parameters                                                          \
        __attribute__((visibility("default"), alias("hook_" #name)));                              \
    __asm__(".symver bfc_export_" #name ", " #name "@BFC_BOUND");                                  \
    __attribute__((visibility("hidden"))) CUresult hook_##name parameters __asm__("hook_" #name);  \
    CUresult hook_##name parameters

#define POOLED(name, parameters, answer)                                                           \
    HOOK(name, parameters) {                                                                       \
        return answer;                                                                             \
    }
BFC_POOLED_CALLS(POOLED)

#define ANSWERED(name, parameters, answer)                                                         \
    HOOK(name, parameters) {                                                                       \
        BFC_FIND_DRIVER(driver, name);                                                             \
        return answer;                                                                             \
    }
BFC_ANSWERED_CALLS(ANSWERED)

/* Begins a capture. Meanwhile the gate of capture.h keeps our own calls out. */
#define CAPTURE(name, parameters, arguments, mode, per_thread)                                     \
    HOOK(name, parameters) {                                                                       \
        BFC_FIND_DRIVER(driver, name);                                                             \
        bfc_capture_begin();                                                                       \
        CUresult result = driver->name arguments;                                                  \
        bfc_capture_began(stream, per_thread, mode, result);                                       \
        return result;                                                                             \
    }
BFC_CAPTURE_CALLS(CAPTURE)

/* Makes a call again while it returns out of memory and the pools can give memory back at `place`;
 * `then` follows its success. */
#define RETRIED(name, parameters, call, then, place)                                               \
    HOOK(name, parameters) {                                                                       \
        BFC_FIND_DRIVER(driver, name);                                                             \
        CUresult result = call;                                                                    \
        while (result == CUDA_ERROR_OUT_OF_MEMORY && bfc_give_back_for_call(driver, place))        \
            result = call;                                                                         \
        if (result == CUDA_SUCCESS)                                                                \
            then;                                                                                  \
        bfc_reuse_note_failure(result);                                                            \
        return result;                                                                             \
    }
#define ASSERT_RETRIED(name)                                                                       \
    _Static_assert(BFC_NEED_RETRIED(need_of_##name), #name " is not to be retried");
#define BYPASS(name, parameters, arguments, kind, bytes, place)                                    \
    ASSERT_RETRIED(name)                                                                           \
    RETRIED(name, parameters, driver->name arguments,                                              \
            bfc_count_past_pool(BFC_BYPASS_##kind, (uintptr_t)*out, bytes), place)
#define INCIDENTAL(name, parameters, arguments, place)                                             \
    ASSERT_RETRIED(name)                                                                           \
    RETRIED(name, parameters, driver->name arguments, (void)0, place)

/* The assertions check that a call is in these two tables exactly if calls.inc says that it is
 * retried. */
enum {
#define BFC_CALL(symbol, version, need) need_of_##symbol = BFC_NEED_##need,
#include "interpose/driver/calls.inc"
#undef BFC_CALL
    calls_to_retry = 0
#define BFC_CALL(symbol, version, need) +BFC_NEED_RETRIED(BFC_NEED_##need)
#include "interpose/driver/calls.inc"
    ,
#undef BFC_CALL
#define ONE(name, ...) +1
    calls_retried = 0 BFC_BYPASS_CALLS(ONE) BFC_INCIDENTAL_CALLS(ONE)
#undef ONE
};
_Static_assert(calls_retried == calls_to_retry, "a call that may need memory has no hook");
BFC_MAKING_CALLS(RETRIED)
BFC_BYPASS_CALLS(BYPASS)
BFC_INCIDENTAL_CALLS(INCIDENTAL)

/* Waits if SYNC_MEMOPS is set for a block that the call reads or writes. */
#define SYNCHRONOUS(name, parameters, arguments, to, from, per_thread)                             \
    HOOK(name, parameters) {                                                                       \
        BFC_FIND_DRIVER(driver, name);                                                             \
        CUresult result = driver->name arguments;                                                  \
        bfc_reuse_note_failure(result);                                                            \
        if (result == CUDA_SUCCESS && bfc_sync_memops_is_used())                                   \
            result = bfc_sync_memops_wait(driver, to, from, per_thread);                           \
        return result;                                                                             \
    }
BFC_SYNCHRONOUS_CALLS(SYNCHRONOUS)

#define NOTED(name, parameters, arguments)                                                         \
    HOOK(name, parameters) {                                                                       \
        BFC_FIND_DRIVER(driver, name);                                                             \
        CUresult result = driver->name arguments;                                                  \
        bfc_reuse_note_failure(result);                                                            \
        return result;                                                                             \
    }
BFC_FAILURE_CALLS(NOTED)

/* ---- how a program is given a hook ---- */

static const struct bfc_hook hooks[] = {
#define ROW(name, ...)                                                                             \
    {#name, __extension__(void *) hook_##name, offsetof(struct bfc_driver, name)},
    BFC_HOOKED_CALLS(ROW)
#undef ROW
};
enum { HOOKS = sizeof hooks / sizeof hooks[0] };

void *bfc_hook_real(const struct bfc_driver *driver, const struct bfc_hook *hook) {
    return *(void *const *)((const char *)driver + hook->real);
}

const struct bfc_hook *bfc_hook_of_symbol(const char *name) {
    if (name[0] != 'c' || name[1] != 'u') /* excludes nearly all names that a process looks up */
        return NULL;
    for (size_t i = 0; i < HOOKS; i++)
        if (strcmp(hooks[i].symbol, name) == 0)
            return &hooks[i];
    return NULL;
}

/*
 * Every call of the driver with the version from which cuGetProcAddress knows it. A hook is found
 * by this table where cuGetProcAddress returns another pointer than dlsym.
 */
static const struct {
    char symbol[56];
    int version; /* the first in which the name without its ending means this variant */
} calls[] = {
#define BFC_CALL(symbol, version, need) {#symbol, version},
#include "interpose/driver/calls.inc"
#undef BFC_CALL
};

/* Whether `symbol` is `name`, alone or with an ending such as _v2. */
static bool is_variant(const char *symbol, const char *name) {
    size_t length = strlen(name);
    if (strncmp(symbol, name, length) != 0)
        return false;
    const char *ending = symbol + length;
    return !*ending ||
           (strncmp(ending, "_v", 2) == 0 && !ending[2 + strspn(ending + 2, "0123456789")]);
}

/* For programs with per-thread default streams: the hook of a _ptsz or _ptds twin, if any. */
static const struct bfc_hook *find_variant(const char *symbol, bfc_cuda_flags flags) {
    char twin[64];
    const struct bfc_hook *hook = NULL;
    if (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) {
        snprintf(twin, sizeof twin, "%.56s_ptsz", symbol);
        hook = bfc_hook_of_symbol(twin);
        if (!hook) {
            snprintf(twin, sizeof twin, "%.56s_ptds", symbol);
            hook = bfc_hook_of_symbol(twin);
        }
    }
    return hook ? hook : bfc_hook_of_symbol(symbol);
}

static const struct bfc_hook *find_by_request(const char *name, int version, bfc_cuda_flags flags) {
    const char *symbol = NULL;
    int newest = 0;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (calls[i].version <= version && calls[i].version > newest &&
            is_variant(calls[i].symbol, name)) {
            symbol = calls[i].symbol;
            newest = calls[i].version;
        }
    return symbol ? find_variant(symbol, flags) : NULL;
}

static void *give_hook(const struct bfc_hook *hook) {
    bfc_routes_note(hook->symbol, BFC_ROUTE_PROC_ADDRESS);
    return hook->replacement;
}

void *bfc_hook_for_entry(void *real, const char *name, int version, bfc_cuda_flags flags) {
    const struct bfc_driver *driver = bfc_driver();
    if (!real || !driver)
        return real;
    for (size_t i = 0; i < HOOKS; i++)
        if (real == bfc_hook_real(driver, &hooks[i]))
            return give_hook(&hooks[i]);
    const struct bfc_hook *hook = find_by_request(name, version, flags);
    if (hook && bfc_hook_real(driver, hook))
        return give_hook(hook);
    if (strncmp(name, "cuMemAlloc", strlen("cuMemAlloc")) == 0)
        bfc_segment_count_bypassed(BFC_BYPASS_UNKNOWN_ENTRY, 0);
    return bfc_unknown_entry(name, real);
}
