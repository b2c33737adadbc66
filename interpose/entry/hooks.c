/* The hooks, and the tables by which programs are given them. A hook's logic is in other files. */
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
#include "interpose/table/counter.h"

static void add_primary(const struct bfc_driver *driver, CUcontext context, CUdevice device) {
    bfc_reuse_context_made(driver, context);
    bfc_contexts_add_primary(context, device);
    bfc_contexts_retained(device);
}

/* Registers the primary context of the device, of which the new green context is a part. */
static void add_green(const struct bfc_driver *driver, CUdevice device) {
    CUcontext primary = bfc_primary_context(driver, device);
    if (primary)
        bfc_reuse_context_made(driver, primary);
}

/* While a context that was made from a green one is current, stream 0 is the green context's
 * default stream. So from now on handle 0 may mean several streams, and does not tell to which
 * stream a submission goes. */
static CUresult note_green_context(const struct bfc_driver *driver, const CUcontext *context,
                                   CUresult result) {
    if (result == CUDA_SUCCESS) {
        BFC_TELL_COUNTER(bar());
        bfc_green_made(driver, *context);
    }
    return result;
}

/* Registers a context that became current, since it may have been created by a call without a
 * hook. */
static CUresult enter_context(const struct bfc_driver *driver, CUcontext context, CUresult result) {
    if (!context)
        bfc_thread_arena.has_context = false;
    if (result == CUDA_SUCCESS && context && !bfc_contexts_has(driver, context))
        bfc_reuse_context_made(driver, bfc_green_owner(driver, context));
    return result;
}

/* To be called after driver calls by which the thread's current context may have changed. */
static CUresult leave_context(CUresult result) {
    bfc_thread_arena.has_context = false;
    return result;
}

static CUresult end_capture(const struct bfc_driver *driver, CUstream stream, bool per_thread,
                            CUresult result) {
    bool last = result == CUDA_SUCCESS && bfc_capture_ended(stream, per_thread);
    if (bfc_capture_review(driver) || last)
        bfc_reuse_after_captures(driver);
    return result;
}

/* Whether a stream that the driver refused to destroy still captures. If so, destroy_stream records
 * the capture again. Its mode was forgotten, so the mode that forbids the most calls is assumed. */
static bool still_captures(const struct bfc_driver *driver, CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return driver->cuStreamIsCapturing &&
           driver->cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static CUresult destroy_stream(const struct bfc_driver *driver, CUstream stream,
                               CUresult (*real)(CUstream)) {
    bool last = bfc_capture_ended(stream, false);
    BFC_TELL_COUNTER(stream_ending(stream));
    CUresult result = real(stream);
    if (result != CUDA_SUCCESS && still_captures(driver, stream)) {
        bfc_capture_begin();
        bfc_capture_began(stream, false, CU_STREAM_CAPTURE_MODE_GLOBAL, CUDA_SUCCESS);
    } else if (last) {
        bfc_reuse_after_captures(driver);
    }
    return result;
}

static CUresult note_export_table(const void **table, const CUuuid *id, CUresult result) {
    if (result == CUDA_SUCCESS && table && *table && id)
        BFC_TELL_COUNTER(note_table(table, id));
    return result;
}

/* If `place` is a stream, counts the call as a submission to it (BFC_GATE). Otherwise only keeps
 * the job's memory from being moved off the device during the call (BFC_SLEEP_IDLE). If `place` has
 * `may_sleep`, does neither. */
static ALWAYS_INLINE CUresult begin_in_place(struct bfc_place place, uint64_t *counted) {
    *counted = 0;
    if (place.may_sleep)
        return CUDA_SUCCESS;
    if (place.kind != BFC_PLACE_STREAM)
        return bfc_stay_awake(counted);
    CUstream stream = place.overlaps ? (CUstream)BFC_STREAMS_UNKNOWN : place.stream;
    return bfc_submission_begin(stream, place.per_thread, counted);
}

static ALWAYS_INLINE struct bfc_place place_of_launch(const CUlaunchConfig *how, bool per_thread) {
    struct bfc_place place = BFC_IN(how ? how->hStream : NULL, per_thread);
    place.overlaps = bfc_counter && how && how->numAttrs && bfc_counter->may_overlap(how);
    return place;
}

static struct bfc_program_wait begin_wait(const struct bfc_driver *driver, CUcontext context) {
    return bfc_counter ? bfc_counter->wait_begin(driver, context) : (struct bfc_program_wait){0};
}

static CUresult replace_entry(const char *name, void **entry, int version, bfc_cuda_flags flags,
                              CUresult result) {
    if (result == CUDA_SUCCESS && name && entry)
        *entry = bfc_hook_for_entry(*entry, name, version, flags);
    return result;
}

/* Defines a hook: a local function, which programs get through the tables below. It is also
 * exported by the driver's name, only so that dladdr can name it; the symbol version is hidden
 * (symbols.map), so that the loader binds no reference to it. */
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
        __typeof__(driver->name) real __attribute__((unused)) = driver->name;                      \
        return answer;                                                                             \
    }
BFC_ANSWERED_CALLS(ANSWERED)

#define ASKED(name, parameters, answer)                                                            \
    HOOK(name, parameters) {                                                                       \
        BFC_FIND_DRIVER(driver, name);                                                             \
        uint64_t counted;                                                                          \
        CUresult result = bfc_stay_awake(&counted);                                                \
        if (result == CUDA_SUCCESS)                                                                \
            result = answer;                                                                       \
        bfc_submission_end(counted);                                                               \
        return result;                                                                             \
    }
BFC_ASKED_CALLS(ASKED)

/* A hook for a call that begins a stream capture. The gate (interpose/context/capture.h) keeps the
 * library from recording or awaiting CUDA events meanwhile. */
#define CAPTURE(name, parameters, arguments, mode, per_thread)                                     \
    HOOK(name, parameters) {                                                                       \
        BFC_FIND_DRIVER(driver, name);                                                             \
        uint64_t counted;                                                                          \
        CUresult result = bfc_stay_awake(&counted);                                                \
        if (result == CUDA_SUCCESS) {                                                              \
            BFC_TELL_COUNTER(bar());                                                               \
            bfc_capture_begin();                                                                   \
            result = driver->name arguments;                                                       \
            bfc_capture_began(stream, per_thread, mode, result);                                   \
            BFC_TELL_COUNTER(unbar());                                                             \
        }                                                                                          \
        bfc_submission_end(counted);                                                               \
        return result;                                                                             \
    }
BFC_CAPTURE_CALLS(CAPTURE)

/* A hook that makes the call again while it returns out of memory and the pools can give memory
 * back at `place`; `then` is done after a success. If the job's memory was moved off the device
 * (BFC_SLEEP_IDLE) and cannot be brought back, the hook returns that error at once, because the
 * attempt has already made the pools give memory back. */
#define RETRIED(name, parameters, call, then, place)                                               \
    HOOK(name, parameters) {                                                                       \
        BFC_FIND_DRIVER(driver, name);                                                             \
        __typeof__(driver->name) real __attribute__((unused)) = driver->name;                      \
        for (;;) {                                                                                 \
            uint64_t counted;                                                                      \
            CUresult result = begin_in_place(place, &counted);                                     \
            bool awake = result == CUDA_SUCCESS;                                                   \
            if (LIKELY(awake))                                                                     \
                result = call;                                                                     \
            bfc_submission_end(counted);                                                           \
            if (LIKELY(result == CUDA_SUCCESS))                                                    \
                then;                                                                              \
            else if (awake && result == CUDA_ERROR_OUT_OF_MEMORY &&                                \
                     bfc_give_back_for_call(driver, place))                                        \
                continue;                                                                          \
            else                                                                                   \
                bfc_reuse_note_failure(result);                                                    \
            return result;                                                                         \
        }                                                                                          \
    }
#define ASSERT_RETRIED(name)                                                                       \
    _Static_assert(BFC_NEED_RETRIED(need_of_##name), #name " is not to be retried");
#define BYPASS(name, parameters, arguments, kind, bytes, place)                                    \
    ASSERT_RETRIED(name)                                                                           \
    RETRIED(name, parameters, real arguments,                                                      \
            bfc_count_past_pool(BFC_BYPASS_##kind, (uintptr_t)*out, bytes), place)
#define INCIDENTAL(name, parameters, arguments, place)                                             \
    ASSERT_RETRIED(name)                                                                           \
    RETRIED(name, parameters, real arguments, (void)0, place)

/* Checks that BFC_BYPASS_CALLS and BFC_INCIDENTAL_CALLS have exactly those driver calls that are to
 * be made again after out of memory according to calls.inc. */
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
};
_Static_assert(calls_retried == calls_to_retry, "a call that may need memory has no hook");
BFC_MAKING_CALLS(RETRIED)
BFC_BYPASS_CALLS(BYPASS)
BFC_INCIDENTAL_CALLS(INCIDENTAL)

/* A hook that, after the call, waits for the call's stream if SYNC_MEMOPS is set for a block that
 * the call reads or writes. */
#define SYNCHRONOUS(name, parameters, arguments, to, from, per_thread)                             \
    HOOK(name, parameters) {                                                                       \
        BFC_FIND_DRIVER(driver, name);                                                             \
        uint64_t counted;                                                                          \
        CUresult result = bfc_submission_begin(NULL, per_thread, &counted);                        \
        if (LIKELY(result == CUDA_SUCCESS))                                                        \
            result = driver->name arguments;                                                       \
        bfc_submission_end(counted);                                                               \
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

#define SUBMITTED(name, parameters, arguments, stream, per_thread)                                 \
    HOOK(name, parameters) {                                                                       \
        BFC_FIND_DRIVER(driver, name);                                                             \
        uint64_t counted;                                                                          \
        CUresult result = bfc_submission_begin((CUstream)(stream), per_thread, &counted);          \
        if (LIKELY(result == CUDA_SUCCESS))                                                        \
            result = driver->name arguments;                                                       \
        bfc_submission_end(counted);                                                               \
        bfc_reuse_note_failure(result);                                                            \
        return result;                                                                             \
    }
#define SUBMITTED_WORDS(name, words, stream, per_thread)                                           \
    SUBMITTED(name, BFC_WORDS_##words, BFC_PASSED_##words, stream, per_thread)
BFC_STREAM_CALLS(SUBMITTED)
BFC_SUBMISSION_CALLS(SUBMITTED_WORDS)

#define AWAKE(name, words, what)                                                                   \
    HOOK(name, BFC_WORDS_##words) {                                                                \
        BFC_FIND_DRIVER(driver, name);                                                             \
        uint64_t counted;                                                                          \
        CUresult result = bfc_stay_awake(&counted);                                                \
        if (LIKELY(result == CUDA_SUCCESS))                                                        \
            result = driver->name BFC_PASSED_##words;                                              \
        bfc_submission_end(counted);                                                               \
        return result;                                                                             \
    }
BFC_AWAKE_CALLS(AWAKE)

#define WAITED(name, parameters, arguments, context)                                               \
    HOOK(name, parameters) {                                                                       \
        BFC_FIND_DRIVER(driver, name);                                                             \
        struct bfc_program_wait wait = begin_wait(driver, context);                                \
        CUresult result = driver->name arguments;                                                  \
        BFC_TELL_COUNTER(wait_end(&wait, result));                                                 \
        bfc_reuse_note_failure(result);                                                            \
        return result;                                                                             \
    }
BFC_WAIT_CALLS(WAITED)

#define STREAM_WAITED(name, parameters, arguments, per_thread)                                     \
    HOOK(name, parameters) {                                                                       \
        BFC_FIND_DRIVER(driver, name);                                                             \
        uint64_t freed = bfc_counter ? bfc_counter->frees_so_far() : 0;                            \
        CUresult result = driver->name arguments;                                                  \
        if (result == CUDA_SUCCESS)                                                                \
            BFC_TELL_COUNTER(stream_waited(bfc_stream_of_handle(stream, per_thread), freed));      \
        bfc_reuse_note_failure(result);                                                            \
        return result;                                                                             \
    }
BFC_STREAM_WAIT_CALLS(STREAM_WAITED)

enum {
#define ROW(name, ...) row_of_##name,
    BFC_HOOKED_CALLS(ROW) BFC_SUBMISSION_CALLS(ROW) BFC_AWAKE_CALLS(ROW)
#undef ROW
};

static const struct bfc_hook hooks[] = {
#define ROW(name, ...) {#name, row_of_##name, offsetof(struct bfc_driver, name)},
    BFC_HOOKED_CALLS(ROW) BFC_SUBMISSION_CALLS(ROW) BFC_AWAKE_CALLS(ROW)
#undef ROW
};

/* A switch, since a table of pointers would have to be relocated at the start of every process. */
void *bfc_hook_replacement(const struct bfc_hook *hook) {
    switch (hook->row) {
#define ROW(name, ...)                                                                             \
    case row_of_##name:                                                                            \
        return __extension__(void *) hook_##name;
        BFC_HOOKED_CALLS(ROW)
        BFC_SUBMISSION_CALLS(ROW)
        BFC_AWAKE_CALLS(ROW)
#undef ROW
    }
    return NULL;
}

/* Returns how many rows of `hooks` are in use. The last rows are in use only if submissions are
 * counted (BFC_GATE). */
static size_t count_hooks(void) {
    enum { ONLY_COUNTED = 0 BFC_SUBMISSION_CALLS(ONE) BFC_AWAKE_CALLS(ONE) };
    return sizeof hooks / sizeof hooks[0] - (bfc_counter ? 0 : ONLY_COUNTED);
}

void *bfc_hook_real(const struct bfc_driver *driver, const struct bfc_hook *hook) {
    return *(void *const *)((const char *)driver + hook->real);
}

const struct bfc_hook *bfc_hook_of_symbol(const char *name) {
    /* most names that a process looks up are not the driver's, so two letters are compared first */
    if (name[0] != 'c' || name[1] != 'u')
        return NULL;
    for (size_t i = 0; i < count_hooks(); i++)
        if (strcmp(hooks[i].symbol, name) == 0)
            return &hooks[i];
    return NULL;
}

/* Every call of the driver, with the version from which cuGetProcAddress knows it. The name and the
 * version of a request tell which hook belongs to it, if cuGetProcAddress returns a pointer that is
 * not in the driver's symbol table. */
static const struct {
    char symbol[56];
    /* first version of CUDA for which cuGetProcAddress returns `symbol` when it is asked for the
     * name without a suffix such as _v2 */
    int version;
} calls[] = {
#define BFC_CALL(symbol, version, need) {#symbol, version},
#include "interpose/driver/calls.inc"
#undef BFC_CALL
};

/* Whether `symbol` is `name`, alone or with a suffix such as _v2. */
static bool is_variant(const char *symbol, const char *name) {
    size_t length = strlen(name);
    if (strncmp(symbol, name, length) != 0)
        return false;
    const char *ending = symbol + length;
    return !*ending ||
           (strncmp(ending, "_v", 2) == 0 && !ending[2 + strspn(ending + 2, "0123456789")]);
}

/* Returns the hook of a symbol. If `flags` ask for per-thread default streams, returns the hook of
 * its variant with the suffix _ptsz or _ptds, if there is one. */
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

/* Whether the call is for graphics or profilers and declared in another header than cuda.h. Such
 * calls submit no work that uses pooled memory, so they need no hook. */
static bool is_of_other_header(const char *name) {
    static const char beginnings[][32] = {
        "cuGL",  "cuGraphics", "cuEGL",      "cuEventCreateFromEGLSync", "cuVDPAU",
        "cuD3D", "cuWGL",      "cuProfiler", "cuEventCreateFromNVNSync"};
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

bool bfc_hook_may_lack(const char *name, int version) {
    enum { NEWEST = 13050 }; /* `calls` has all driver calls of CUDA up to this version */
    if (is_of_other_header(name))
        return false;
    size_t length = strcspn(name, "_");
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (strncmp(calls[i].symbol, name, length) == 0 &&
            (!calls[i].symbol[length] || calls[i].symbol[length] == '_'))
            return version > NEWEST;
    return true;
}

static void *give_hook(const struct bfc_hook *hook) {
    bfc_routes_note(hook->symbol, BFC_ROUTE_PROC_ADDRESS);
    return bfc_hook_replacement(hook);
}

void *bfc_hook_for_entry(void *real, const char *name, int version, bfc_cuda_flags flags) {
    const struct bfc_driver *driver = bfc_driver();
    if (!real || !driver)
        return real;
    for (size_t i = 0; i < count_hooks(); i++)
        if (real == bfc_hook_real(driver, &hooks[i]))
            return give_hook(&hooks[i]);
    const struct bfc_hook *hook = find_by_request(name, version, flags);
    if (hook && bfc_hook_real(driver, hook))
        return give_hook(hook);
    if (bfc_hook_may_lack(name, version))
        BFC_TELL_COUNTER(hide(name));
    if (strncmp(name, "cuMemAlloc", strlen("cuMemAlloc")) == 0)
        bfc_segment_count_bypassed(BFC_BYPASS_UNKNOWN_ENTRY, 0);
    return bfc_unknown_entry(name, real);
}
