/* The gate between stream captures and the library's driver calls, and the list of captures under
 * way. */
#include "interpose/context/capture.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "interpose/config/process.h"
#include "interpose/host/thread_exit.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct capture {
    uint64_t number; /* how many captures were noted before this one */
    CUstream stream;
    CUcontext context; /* the context of the stream */
    uintptr_t thread;  /* the thread that began the capture */
    CUstreamCaptureMode mode;
    /* whether `stream` is a thread's own default stream: only that thread can name it, and only
     * while the stream's context is current */
    bool default_stream;
    struct capture *next;
};

/* Stands for all captures whose stream and mode the library does not know. It never sees them end,
 * so this entry stays in the list for ever. */
static struct capture unknown_capture = {
    .stream = (CUstream)&unknown_capture, /* an address that is no stream's handle */
    .context = (CUcontext)&unknown_capture,
    .mode = BFC_CAPTURE_MODE_UNKNOWN,
};

#define CLOSED 0x80000000u

/* Guards the lists of captures and of parts of the gate. No driver call is made under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Held while a capture begins, and so across a driver call, in which a tool's callback may call us:
 * its own thread waits for it nowhere. */
static pthread_mutex_t beginning = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static uintptr_t beginner; /* atomic: the thread that holds `beginning`; 0: none */
static unsigned begins;    /* how many captures that thread is beginning */
static struct capture *captures;
unsigned bfc_captures_under_way; /* the length of the list of captures; changed under `lock` */
/* the number of threads that hold the gate; the bit CLOSED is set while a thread begins a
 * capture */
static unsigned gate;
/* the parts of the gate that have locks of their own; the list is guarded by `lock` */
static struct bfc_gate_part *gate_parts;
bool bfc_capture_seen;
struct bfc_waits bfc_waits[BFC_WAITS + 1];

static unsigned count_under_way(void) {
    return bfc_load_relaxed(&bfc_captures_under_way);
}

/* Enters the gate if no thread begins a capture and nothing captures. A thread that begins a
 * capture sets CLOSED, increments the count of captures and clears CLOSED. So a thread that finds
 * CLOSED clear after that also sees the new count, when it checks the count once more. */
bool bfc_gate_enter(void) {
    while (count_under_way() == 0) {
        if (!(bfc_fetch_add_seq_cst(&gate, 1) & CLOSED)) {
            if (count_under_way() == 0)
                return true;
            bfc_gate_leave();
            return false;
        }
        bfc_gate_leave();
        if (!bfc_gate_part_await())
            return false;
    }
    return false;
}

/* The thread that is beginning a capture passes the closed gate: it begins none meanwhile. */
void bfc_gate_hold(void) {
    while (bfc_fetch_add_seq_cst(&gate, 1) & CLOSED &&
           bfc_load_relaxed(&beginner) != bfc_thread_identity()) {
        bfc_gate_leave();
        bfc_gate_part_await();
    }
}

void bfc_gate_leave(void) {
    bfc_fetch_sub_seq_cst(&gate, 1);
}

static bool no_wait_is_under_way(void *unused) {
    (void)unused;
    unsigned under_way = 0;
    for (int i = 0; i <= BFC_WAITS; i++)
        under_way += bfc_load_seq_cst(&bfc_waits[i].under_way);
    return under_way == 0;
}

/* Waits, a second at most, until no thread is in a host wait (bfc_capture_enter_wait). None begins
 * meanwhile, because bfc_capture_seen is set. */
static void outlast_waits(void) {
    bfc_await(no_wait_is_under_way, NULL, BFC_NS_PER_SECOND);
}

void bfc_gate_part_add(struct bfc_gate_part *gate_part,
                       bool (*is_empty)(struct bfc_gate_part *gate_part)) {
    pthread_mutex_lock(&lock);
    *gate_part = (struct bfc_gate_part){
        .is_empty = is_empty, .shut = bfc_load_seq_cst(&gate) & CLOSED, .next = gate_parts};
    gate_parts = gate_part;
    pthread_mutex_unlock(&lock);
}

void bfc_gate_part_remove(struct bfc_gate_part *gate_part) {
    pthread_mutex_lock(&lock);
    struct bfc_gate_part **link = &gate_parts;
    while (*link != gate_part)
        link = &(*link)->next;
    *link = gate_part->next;
    pthread_mutex_unlock(&lock);
}

bool bfc_gate_part_await(void) {
    if (bfc_load_relaxed(&beginner) == bfc_thread_identity())
        return false;
    pthread_mutex_lock(&beginning);
    pthread_mutex_unlock(&beginning);
    return true;
}

static bool shut_part(struct bfc_gate_part *gate_part) {
    pool_lock(&gate_part->lock);
    gate_part->shut = true;
    bool empty = gate_part->is_empty(gate_part);
    pool_unlock(&gate_part->lock);
    return empty;
}

/* Shuts all parts of the gate; returns whether all are empty. */
static bool shut_gate_parts(void) {
    bool empty = true;
    pthread_mutex_lock(&lock);
    for (struct bfc_gate_part *gate_part = gate_parts; gate_part; gate_part = gate_part->next)
        empty &= shut_part(gate_part);
    pthread_mutex_unlock(&lock);
    return empty;
}

static void open_gate_parts(void) {
    for (struct bfc_gate_part *gate_part = gate_parts; gate_part; gate_part = gate_part->next) {
        pool_lock(&gate_part->lock);
        gate_part->shut = false;
        pool_unlock(&gate_part->lock);
    }
}

void bfc_capture_begin(void) {
    if (bfc_process_is_forked())
        return;
    bfc_store_seq_cst(&bfc_capture_seen, true);
    outlast_waits();
    pthread_mutex_lock(&beginning);
    bfc_store_relaxed(&beginner, bfc_thread_identity());
    begins++;
    bfc_fetch_or_seq_cst(&gate, CLOSED);
    unsigned tries = 0;
    /* threads leave the gate soon, since their calls inside it do not block */
    while (bfc_load_seq_cst(&gate) != CLOSED || !shut_gate_parts())
        bfc_back_off(&tries);
}

static CUcontext current_context(void) {
    CUcontext context = NULL;
    const struct bfc_driver *driver = bfc_driver();
    return driver && driver->cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : NULL;
}

/* Returns the context of a stream: for a default stream it is the current context. For another
 * stream the driver is asked, since the context of that stream need not be current. */
static CUcontext context_of_stream(CUstream stream, bool default_stream) {
    CUcontext context = NULL;
    const struct bfc_driver *driver = bfc_driver();
    return !default_stream && driver && driver->cuStreamGetCtx &&
                   driver->cuStreamGetCtx(stream, &context) == CUDA_SUCCESS
               ? context
               : current_context();
}

/* Whether `stream` means the calling thread's own default stream. With `per_thread`, the program
 * has called a per-thread variant, for which handle 0 means that default stream. */
static bool is_default(CUstream stream, bool per_thread) {
    return stream == CU_STREAM_PER_THREAD || (per_thread && !stream);
}

static void end_thread(void *unused);

/* Makes this thread call end_thread when it ends, because its default stream ends with it, and so
 * does a capture of that stream. */
static void watch_thread(void) {
    static __thread bool watched INITIAL_EXEC;
    bfc_at_thread_exit(&watched, end_thread);
}

static void list_capture(struct capture *capture) {
    static uint64_t numbers;
    pthread_mutex_lock(&lock);
    capture->number = numbers++;
    capture->next = captures;
    captures = capture;
    bfc_fetch_add_seq_cst(&bfc_captures_under_way, 1);
    pthread_mutex_unlock(&lock);
}

/* Lists unknown_capture. False: it is listed already. The caller holds the lock `beginning`. */
static bool add_unknown(void) {
    static bool added;
    if (added)
        return false;
    added = true;
    list_capture(&unknown_capture);
    return true;
}

/* Adds a capture to the list. If the host has no memory for its entry, adds unknown_capture. */
static void add_capture(CUstream stream, bool default_stream, CUstreamCaptureMode mode) {
    struct capture *capture = malloc(sizeof *capture);
    if (!capture) {
        add_unknown();
        return;
    }
    *capture = (struct capture){
        .stream = stream,
        .context = context_of_stream(stream, default_stream),
        .thread = bfc_thread_identity(),
        .mode = mode,
        .default_stream = default_stream,
    };
    if (default_stream)
        watch_thread();
    list_capture(capture);
}

static void open_gate(void) {
    if (--begins == 0) {
        pthread_mutex_lock(&lock);
        open_gate_parts();
        bfc_fetch_and_seq_cst(&gate, ~CLOSED);
        pthread_mutex_unlock(&lock);
        bfc_store_relaxed(&beginner, 0);
    }
    pthread_mutex_unlock(&beginning);
}

void bfc_capture_began(CUstream stream, bool per_thread, CUstreamCaptureMode mode,
                       CUresult result) {
    if (bfc_process_is_forked())
        return;
    if (result == CUDA_SUCCESS)
        add_capture(stream, is_default(stream, per_thread), mode);
    open_gate();
}

bool bfc_capture_began_unknown(CUresult result) {
    if (bfc_process_is_forked())
        return false;
    bool first = result == CUDA_SUCCESS && add_unknown();
    open_gate();
    return first;
}

/* Exchanges the thread's capture mode with `*mode`, and tries again if that fails. In another mode
 * than relaxed, the library's own calls could break captures. If the thread stayed in relaxed mode,
 * later calls of the program could. */
static void exchange_mode(const struct bfc_driver *driver, CUstreamCaptureMode *mode) {
    BFC_TRY_HARD(result, driver->cuThreadExchangeStreamCaptureMode(mode));
    (void)result;
}

CUstreamCaptureMode bfc_capture_relax_now(const struct bfc_driver *driver) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (driver->cuThreadExchangeStreamCaptureMode)
        exchange_mode(driver, &mode);
    return mode;
}

/* `mode` is what bfc_capture_relax returned. If `mode` is relaxed, nothing was changed. */
void bfc_capture_restore_now(const struct bfc_driver *driver, CUstreamCaptureMode mode) {
    if (mode != CU_STREAM_CAPTURE_MODE_RELAXED)
        exchange_mode(driver, &mode);
}

/* Whether the driver would refuse a call of this thread because of the capture. A thread in relaxed
 * mode is never refused; the caller has ruled that out. Any other thread is refused during a
 * capture that it has begun itself, unless that is a relaxed one. A thread in global mode is also
 * refused during a global capture of another thread. */
static bool bars_calls(const struct capture *capture, CUstreamCaptureMode mode) {
    if (capture->mode == BFC_CAPTURE_MODE_UNKNOWN)
        /* a capture of unknown mode may forbid anything, so the call is left to the driver */
        return true;
    if (capture->thread == bfc_thread_identity())
        return capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    return mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

enum bfc_capture_state bfc_capture_ask(const struct bfc_driver *driver) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (!driver->cuThreadExchangeStreamCaptureMode ||
        driver->cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS)
        /* the thread's mode is unknown, so the call is left to the driver */
        return BFC_CAPTURE_BARRED;
    bfc_capture_restore(driver, mode);
    if (mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return BFC_CAPTURE_ALLOWED;
    enum bfc_capture_state state = BFC_CAPTURE_NONE;
    pthread_mutex_lock(&lock);
    for (const struct capture *capture = captures; capture; capture = capture->next)
        state = bars_calls(capture, mode) || state == BFC_CAPTURE_BARRED ? BFC_CAPTURE_BARRED
                                                                         : BFC_CAPTURE_ALLOWED;
    pthread_mutex_unlock(&lock);
    return state;
}

static bool forget_captures(bool (*ended)(const struct capture *capture, const void *context),
                            const void *context) {
    if (count_under_way() == 0 || bfc_process_is_forked())
        return false;
    pthread_mutex_lock(&lock);
    unsigned before = count_under_way();
    for (struct capture **link = &captures; *link;) {
        struct capture *capture = *link;
        if (!ended(capture, context)) {
            link = &capture->next;
            continue;
        }
        *link = capture->next;
        free(capture);
        bfc_fetch_sub_seq_cst(&bfc_captures_under_way, 1);
    }
    bool last = before && count_under_way() == 0;
    pthread_mutex_unlock(&lock);
    return last;
}

/* Whether the calling thread can pass the capture's stream to the driver while the context
 * `current` is current. Only its own thread can name a default stream, and only in its context. */
static bool is_nameable(const struct capture *capture, CUcontext current) {
    return !capture->default_stream ||
           (capture->thread == bfc_thread_identity() && capture->context == current);
}

/* Whether the driver says that the capture is over. An invalidated capture is not over: until the
 * program ends it, the driver still refuses the same calls. */
static bool is_capture_over(const struct capture *capture, const struct bfc_driver *driver) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (capture->mode == BFC_CAPTURE_MODE_UNKNOWN || !is_nameable(capture, current_context()))
        return false;
    CUstream stream = capture->default_stream ? CU_STREAM_PER_THREAD : capture->stream;
    return driver->cuStreamIsCapturing &&
           driver->cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
           status == CU_STREAM_CAPTURE_STATUS_NONE;
}

struct named_stream {
    CUstream stream;
    bool default_stream; /* the calling thread's own default stream; then `stream` is unused */
    CUcontext current;
};

static bool is_of_stream(const struct capture *capture, const void *context) {
    const struct named_stream *named = context;
    if (named->default_stream)
        return capture->default_stream && is_nameable(capture, named->current);
    return !capture->default_stream && capture->stream == named->stream;
}

static bool is_itself(const struct capture *capture, const void *other) {
    return capture->number == ((const struct capture *)other)->number;
}

static bool is_of_thread(const struct capture *capture, const void *unused) {
    (void)unused;
    return capture->default_stream && capture->thread == bfc_thread_identity();
}

static bool is_of_context(const struct capture *capture, const void *context) {
    return capture->context == *(const CUcontext *)context;
}

/* Forgets the captures of a thread that is ending. The driver is not asked, since it may have
 * forgotten the thread already. If no capture is left, blocks that were freed during captures get a
 * fence when a thread next looks for completed fences. */
static void end_thread(void *unused) {
    (void)unused;
    forget_captures(is_of_thread, NULL);
}

/* Replaces the copy of a capture by one of the next older capture. False: there is none. */
static bool copy_older(struct capture *copy) {
    pthread_mutex_lock(&lock);
    const struct capture *capture = captures;
    while (capture && capture->number >= copy->number)
        capture = capture->next;
    if (capture)
        *copy = *capture;
    pthread_mutex_unlock(&lock);
    return capture;
}

bool bfc_capture_review(const struct bfc_driver *driver) {
    struct capture copy = {.number = UINT64_MAX};
    bool last = false;
    while (copy_older(&copy))
        last |= is_capture_over(&copy, driver) && forget_captures(is_itself, &copy);
    return last;
}

bool bfc_capture_ended(CUstream stream, bool per_thread) {
    struct named_stream named = {stream, is_default(stream, per_thread), NULL};
    named.current = named.default_stream ? current_context() : NULL;
    return forget_captures(is_of_stream, &named);
}

bool bfc_capture_context_ended(CUcontext context) {
    return forget_captures(is_of_context, &context);
}
