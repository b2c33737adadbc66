/* The gate, and the record of captures under way. */
#include "interpose/capture.h"
#include "interpose/clock.h"
#include "interpose/process.h"
#include "interpose/unsafe.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

struct capture {
    CUstream stream;
    CUcontext context;
    const void *thread; /* that began it */
    CUstreamCaptureMode mode;
    bool default_stream; /* a thread's default stream: only that thread can name it */
    struct capture *next;
};

#define CLOSED 0x80000000u

static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; /* of the list; held while the gate is closed */
static struct capture *captures;
unsigned bfc_captures_under_way; /* how many are in the list; changed under the lock */
static atomic_uint gate;         /* threads inside, and CLOSED */
static struct bfc_door *doors;   /* guarded by the lock */
bool bfc_capture_seen;
struct bfc_waits bfc_waits[BFC_WAITS];

__thread char bfc_this_thread __attribute__((tls_model("initial-exec")));

static unsigned count_under_way(void) {
    return __atomic_load_n(&bfc_captures_under_way, __ATOMIC_RELAXED);
}

/* In a forked child nothing of ours goes on, and what other threads held is held for ever. */
static bool is_forked(void) {
    const struct bfc_process *process = __atomic_load_n(&bfc_process_made, __ATOMIC_ACQUIRE);
    return process && !process->alive;
}

/* ---- the gate ---- */

/* What a closer counts is seen here: both go through the gate word, which orders them. */
bool bfc_gate_enter(void) {
    BFC_WITHOUT_GATE(atomic_fetch_add(&gate, 1); return true;)
    BFC_WITHOUT_HOLDING(return count_under_way() == 0;)
    while (count_under_way() == 0) {
        if (!(atomic_fetch_add(&gate, 1) & CLOSED)) {
            if (count_under_way() == 0)
                return true;
            bfc_gate_leave();
            return false;
        }
        bfc_gate_leave();
        pthread_mutex_lock(&lock); /* until it opens */
        pthread_mutex_unlock(&lock);
    }
    return false;
}

void bfc_gate_leave(void) {
    BFC_WITHOUT_HOLDING(return;)
    atomic_fetch_sub(&gate, 1);
}

/* ---- waits by context ---- */

enum { LONGEST_WAIT_NS = 1000000000, NAP_NS = 20000 };

static bool are_waits(void) {
    unsigned under_way = 0;
    for (int i = 0; i < BFC_WAITS; i++)
        under_way += __atomic_load_n(&bfc_waits[i].under_way, __ATOMIC_SEQ_CST);
    return under_way != 0;
}

/* Nothing enters any more. */
static void outlast_waits(void) {
    BFC_WITHOUT_HOLDING(return;)
    if (!are_waits())
        return;
    uint64_t start = bfc_now_ns();
    while (are_waits() && bfc_now_ns() - start < LONGEST_WAIT_NS)
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

/* ---- doors ---- */

void bfc_door_add(struct bfc_door *door, bool (*is_empty)(struct bfc_door *door)) {
    pthread_mutex_lock(&lock);
    *door = (struct bfc_door){.is_empty = is_empty, .next = doors};
    doors = door;
    pthread_mutex_unlock(&lock);
}

void bfc_door_remove(struct bfc_door *door) {
    pthread_mutex_lock(&lock);
    struct bfc_door **link = &doors;
    while (*link != door)
        link = &(*link)->next;
    *link = door->next;
    pthread_mutex_unlock(&lock);
}

void bfc_door_await(void) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

static bool shut(struct bfc_door *door) {
    pool_lock(&door->lock);
    door->shut = true;
    bool empty = door->is_empty(door);
    pool_unlock(&door->lock);
    return empty;
}

static void shut_doors(void) {
    BFC_WITHOUT_HOLDING(return;)
    for (struct bfc_door *door = doors; door; door = door->next)
        while (!shut(door))
            sched_yield();
}

static void open_doors(void) {
    for (struct bfc_door *door = doors; door; door = door->next) {
        pool_lock(&door->lock);
        door->shut = false;
        pool_unlock(&door->lock);
    }
}

/* ---- captures ---- */

void bfc_capture_begin(void) {
    if (is_forked())
        return;
    __atomic_store_n(&bfc_capture_seen, true, __ATOMIC_SEQ_CST);
    outlast_waits();
    pthread_mutex_lock(&lock);
    atomic_fetch_or(&gate, CLOSED);
    while (atomic_load(&gate) != CLOSED)
        sched_yield(); /* those inside make calls that do not block */
    shut_doors();
}

static CUcontext current_context(void) {
    CUcontext context = NULL;
    const struct bfc_driver *driver = bfc_driver();
    return driver && driver->cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : NULL;
}

/* The calling thread's default stream. */
static bool is_default(CUstream stream, bool per_thread) {
    return stream == CU_STREAM_PER_THREAD || (per_thread && !stream);
}

/* ---- a thread's end ---- */

/* The C library's own, of 2.18: thread keys are in libc.so.6 only since 2.34. */
int __cxa_thread_atexit_impl(void (*function)(void *), void *argument, void *library);
extern void *__dso_handle;

static void end_thread(void *unused);

/* A thread's default stream ends with it, and its capture too. */
static void watch_thread(void) {
    static __thread bool watched __attribute__((tls_model("initial-exec")));
    if (!watched && __cxa_thread_atexit_impl(end_thread, NULL, &__dso_handle) == 0)
        watched = true;
}

/* ---- begins ---- */

/* Without host memory for the record the capture goes unprotected; nothing better is left. */
static void add_capture(CUstream stream, bool default_stream, CUstreamCaptureMode mode) {
    struct capture *capture = malloc(sizeof *capture);
    if (!capture)
        return;
    *capture = (struct capture){
        .stream = stream,
        .context = current_context(),
        .thread = &bfc_this_thread,
        .mode = mode,
        .default_stream = default_stream,
        .next = captures,
    };
    captures = capture;
    if (default_stream)
        watch_thread();
    __atomic_fetch_add(&bfc_captures_under_way, 1, __ATOMIC_SEQ_CST);
}

void bfc_capture_began(CUstream stream, bool per_thread, CUstreamCaptureMode mode,
                       CUresult result) {
    if (is_forked())
        return;
    if (result == CUDA_SUCCESS)
        add_capture(stream, is_default(stream, per_thread), mode);
    open_doors();
    atomic_fetch_and(&gate, ~CLOSED);
    pthread_mutex_unlock(&lock);
}

/* ---- modes ---- */

CUstreamCaptureMode bfc_capture_relax_now(const struct bfc_driver *driver) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (driver->cuThreadExchangeStreamCaptureMode)
        driver->cuThreadExchangeStreamCaptureMode(&mode);
    return mode;
}

/* Puts back what relax returned; relax leaves RELAXED alone when it had nothing to change. */
void bfc_capture_restore_now(const struct bfc_driver *driver, CUstreamCaptureMode mode) {
    /* Once more if it is refused: a thread that stays relaxed could break captures. */
    for (int tries = 0; tries < 2 && mode != CU_STREAM_CAPTURE_MODE_RELAXED; tries++)
        if (driver->cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS)
            return;
}

/*
 * The driver's rule: a relaxed thread is never barred; any other by a non-relaxed capture of its
 * own, and a global one also by a global capture of another thread.
 */
static bool bars(const struct capture *capture, CUstreamCaptureMode mode) {
    if (capture->thread == &bfc_this_thread)
        return capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    return mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

enum bfc_capture_state bfc_capture_ask(const struct bfc_driver *driver) {
    BFC_WITHOUT_GATE(return BFC_CAPTURE_NONE;)
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (!driver->cuThreadExchangeStreamCaptureMode ||
        driver->cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS)
        return BFC_CAPTURE_BARRED; /* not known; so the driver is asked itself */
    bfc_capture_restore(driver, mode);
    if (mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return BFC_CAPTURE_ALLOWED;
    enum bfc_capture_state state = BFC_CAPTURE_NONE;
    pthread_mutex_lock(&lock);
    for (const struct capture *capture = captures; capture; capture = capture->next)
        state = bars(capture, mode) || state == BFC_CAPTURE_BARRED ? BFC_CAPTURE_BARRED
                                                                   : BFC_CAPTURE_ALLOWED;
    pthread_mutex_unlock(&lock);
    return state;
}

/* ---- ends ---- */

static bool forget(bool (*ended)(const struct capture *capture, const void *context),
                   const void *context) {
    if (count_under_way() == 0 || is_forked())
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
        __atomic_fetch_sub(&bfc_captures_under_way, 1, __ATOMIC_SEQ_CST);
    }
    bool last = before && count_under_way() == 0;
    pthread_mutex_unlock(&lock);
    return last;
}

/* An invalidated capture takes no more harm, so it counts as ended. */
static bool is_over(const struct capture *capture, const void *context) {
    const struct bfc_driver *driver = context;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (capture->default_stream && capture->thread != &bfc_this_thread)
        return false;
    CUstream stream = capture->default_stream ? CU_STREAM_PER_THREAD : capture->stream;
    return driver->cuStreamIsCapturing &&
           driver->cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

struct named_stream {
    CUstream stream;
    bool default_stream; /* this thread's */
};

static bool is_of_stream(const struct capture *capture, const void *context) {
    const struct named_stream *named = context;
    if (named->default_stream)
        return capture->default_stream && capture->thread == &bfc_this_thread;
    return !capture->default_stream && capture->stream == named->stream;
}

static bool is_of_context(const struct capture *capture, const void *context) {
    return capture->context == *(const CUcontext *)context;
}

/*
 * The driver is not asked: its own record of the thread may be gone. What lies in limbo is marked
 * by whoever looks for completed marks next.
 */
static void end_thread(void *unused) {
    (void)unused;
    bfc_capture_ended(CU_STREAM_PER_THREAD, true);
}

bool bfc_capture_review(const struct bfc_driver *driver) {
    return forget(is_over, driver);
}

bool bfc_capture_ended(CUstream stream, bool per_thread) {
    struct named_stream named = {stream, is_default(stream, per_thread)};
    return forget(is_of_stream, &named);
}

bool bfc_capture_context_ended(CUcontext context) {
    return forget(is_of_context, &context);
}
