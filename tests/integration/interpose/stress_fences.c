/*
 * Threads fence, look, and make the context wait, beside one that begins and ends captures, and one
 * that ends contexts: no event is recorded or waited for while anything captures; an event in use
 * is not recorded anew; one that could not be recorded is asked nothing; none of a context that is
 * ending or has ended is; fences that are said to be complete are; and after all, every fence is.
 *
 * The driver is made up here. An event counts how often it was recorded, and who uses it.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "interpose/config/process.h"
#include "interpose/context/capture.h"
#include "interpose/driver/current.h"
#include "interpose/fences/fences.h"

enum { THREADS = 4, ROUNDS = 5000 };

struct event {
    atomic_uint users, recorders;
    atomic_bool failed; /* its last record */
    bool of_peer;
    unsigned life; /* of the peer's context, in which it was made */
    struct event *made_before;
};

static atomic_bool capturing, done, ending;
static atomic_uint life;
static __thread CUcontext pushed;
static atomic_int wrong;
static atomic_uint calls, records, waits;
static struct event *_Atomic made_last;
static int owner, peer;
static struct bfc_fences *fences;
static struct bfc_driver driver;
const struct bfc_driver *bfc_driver_found = &driver;
struct bfc_process *bfc_process_made;

const struct bfc_driver *bfc_driver_find(void) {
    return &driver;
}

CUresult bfc_current_enter(const struct bfc_driver *ours, CUcontext context, bool *has_pushed) {
    *has_pushed = true;
    return ours->cuCtxPushCurrent_v2(context);
}

void bfc_current_leave(const struct bfc_driver *unused, bool has_pushed) {
    (void)unused, (void)has_pushed;
}

/* Its context is there, and is not about to go. */
static bool is_gone(const struct event *event) {
    return event->of_peer && (ending || event->life != life);
}

/* ---- the driver ---- */

enum { FAILS_ONE_IN = 16 };
static const CUresult refusal = CUDA_ERROR_NOT_PERMITTED;

static CUresult create(CUevent *made, unsigned flags) {
    (void)flags;
    struct event *event = calloc(1, sizeof *event);
    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    event->of_peer = pushed == (CUcontext)(void *)&peer;
    event->life = life;
    wrong += is_gone(event);
    event->made_before = made_last;
    while (!atomic_compare_exchange_weak(&made_last, &event->made_before, event))
        ;
    *made = (CUevent)(void *)event;
    return CUDA_SUCCESS;
}

/* Now and then for so long that the others get through the ring of fences meanwhile. */
static void linger(unsigned steps) {
    unsigned call = calls++;
    for (unsigned i = 0; i < steps && call % 256 == 0; i++)
        wrong += capturing;
}

static bool refuses;             /* the next record is refused */
static bfc_fence last_meanwhile; /* bfc_fences_last during that record */

static CUresult record(CUcontext context, CUevent handle) {
    struct event *event = (struct event *)(void *)handle;
    (void)context;
    if (refuses) {
        refuses = false;
        last_meanwhile = bfc_fences_last(fences);
        event->failed = true;
        return refusal;
    }
    wrong += capturing + (event->users != 0) + (event->recorders++ != 0);
    wrong += is_gone(event);
    linger(100000);
    wrong += is_gone(event);
    event->failed = records++ % FAILS_ONE_IN == 0;
    event->recorders--;
    wrong += capturing;
    return event->failed ? refusal : CUDA_SUCCESS;
}

static CUresult wait(CUcontext context, CUevent handle) {
    struct event *event = (struct event *)(void *)handle;
    (void)context;
    event->users++;
    wrong += capturing + event->failed;
    linger(500000);
    wrong += capturing + is_gone(event);
    event->users--;
    waits++;
    return CUDA_SUCCESS;
}

static CUresult query(CUevent handle) {
    struct event *event = (struct event *)(void *)handle;
    event->users++;
    wrong += capturing + event->failed + is_gone(event);
    linger(20000);
    wrong += is_gone(event);
    event->users--;
    return calls++ % 4 ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static CUresult synchronize(CUevent handle) {
    const struct event *event = (const struct event *)(const void *)handle;
    wrong += event->failed + is_gone(event);
    return CUDA_SUCCESS;
}

static CUresult push(CUcontext context) {
    pushed = context;
    return CUDA_SUCCESS;
}

static CUresult current(CUcontext *context) {
    *context = (CUcontext)(void *)&owner;
    return CUDA_SUCCESS;
}

static CUresult exchange(CUstreamCaptureMode *mode) {
    *mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    return CUDA_SUCCESS;
}

/* ---- threads ---- */

/* Fences, now and then over two contexts; then hands out under the fence. */
static void *fence(void *unused) {
    const CUcontext contexts[] = {(CUcontext)(void *)&owner, (CUcontext)(void *)&peer};
    for (unsigned i = 0; i < ROUNDS;) {
        bfc_fence drawn = BFC_NO_FENCE;
        struct bfc_order order;
        CUresult result =
            bfc_fences_record(fences, &driver, contexts, i % 100 < 99 ? 1 : 2, &drawn);
        if (result != CUDA_SUCCESS) {
            wrong += result != CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && result != refusal;
            sched_yield();
            continue;
        }
        i++;
        if (i % 3 == 0 && bfc_fences_announce(fences, drawn, &order)) {
            wrong += bfc_fences_announced(fences) < drawn;
            if (i % 2)
                bfc_fences_order(fences, &driver, contexts[0], &order);
            else
                bfc_fences_retract(fences, &order);
        }
        if (i % 8 == 0)
            wrong += bfc_fences_poll(fences, &driver) > bfc_fences_last(fences);
    }
    return unused;
}

static void *capture(void *unused) {
    CUstream stream = (CUstream)(void *)&capturing;
    for (unsigned i = 0; !done; i++) {
        bfc_capture_begin();
        capturing = true;
        bfc_capture_began(stream, false, CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_SUCCESS);
        sched_yield();
        capturing = false;
        bfc_capture_ended(stream, false);
        usleep(i % 2 ? 2000 : 1); /* long enough for the ring to go round, and hardly any */
    }
    return unused;
}

static void *end_contexts(void *unused) {
    CUcontext context = (CUcontext)(void *)&peer;
    for (unsigned i = 0; !done; i++) {
        bfc_fences_suspend_context(fences, context);
        ending = true;
        usleep(100);
        life += i % 2;
        ending = false;
        bfc_fences_conclude_context(fences, context, i % 2);
        usleep(1000);
    }
    return unused;
}

/* What the owner waits for already it is not made to wait for again. */
static void order_twice(void) {
    CUcontext context = (CUcontext)(void *)&owner;
    bfc_fence first, second;
    struct bfc_order order;
    while (bfc_fences_record(fences, &driver, &context, 1, &first) != CUDA_SUCCESS)
        ;
    while (bfc_fences_record(fences, &driver, &context, 1, &second) != CUDA_SUCCESS)
        ;
    waits = 0;
    wrong += !bfc_fences_announce(fences, second, &order);
    bfc_fences_order(fences, &driver, context, &order);
    wrong += !bfc_fences_announce(fences, first, &order);
    bfc_fences_order(fences, &driver, context, &order);
    wrong += waits != 1;
}

/* A fence is known to be complete also while a thread uses its events: threads that wait for one
 * fence and begin anew would otherwise keep each other from ever seeing it complete. */
static void know_pinned(void) {
    CUcontext context = (CUcontext)(void *)&owner;
    bfc_fence pinned, later;
    struct bfc_order order, none;
    bfc_fences_wait(fences, &driver, bfc_fences_last(fences), UINT64_MAX, NULL);
    while (bfc_fences_record(fences, &driver, &context, 1, &pinned) != CUDA_SUCCESS)
        ;
    wrong += !bfc_fences_announce(fences, pinned, &order) || !order.events;
    wrong += bfc_fences_wait(fences, &driver, pinned, 1000000000, NULL) < pinned;
    wrong += !bfc_fences_announce(fences, pinned, &none) || none.events;
    while (bfc_fences_record(fences, &driver, &context, 1, &later) != CUDA_SUCCESS)
        ;
    wrong += bfc_fences_wait(fences, &driver, later, 1000000000, NULL) != later;
    bfc_fences_retract(fences, &order);
    wrong += bfc_fences_known(fences) != later;
}

/* Behind a fence that is not complete, records that fail take no room and hide nothing. */
static void fail_often(void) {
    CUcontext context = (CUcontext)(void *)&owner;
    bfc_fence before = bfc_fences_last(fences), drawn;
    unsigned made = 0;
    for (unsigned i = 0; i < ROUNDS; i++)
        made += bfc_fences_record(fences, &driver, &context, 1, &drawn) == CUDA_SUCCESS;
    wrong += made == ROUNDS || bfc_fences_last(fences) != before + made;
}

/* A wait for the context that begins during a record covers the fences up to bfc_fences_last. If
 * the record is refused, a later fence, of work that the wait does not cover, must not count as one
 * of these. */
static void pass_refused(void) {
    CUcontext context = (CUcontext)(void *)&owner;
    bfc_fence before = bfc_fences_last(fences), later;
    bfc_fences_wait(fences, &driver, before, UINT64_MAX, NULL);
    refuses = true;
    wrong += bfc_fences_record(fences, &driver, &context, 1, &later) != refusal;
    while (bfc_fences_record(fences, &driver, &context, 1, &later) != CUDA_SUCCESS)
        ;
    bfc_fences_pass(fences, context, last_meanwhile);
    wrong += bfc_fences_known(fences) >= later;
}

int main(void) {
    pthread_t threads[THREADS], capturer, ender;
    driver = (struct bfc_driver){.cuEventCreate = create,
                                 .cuCtxRecordEvent = record,
                                 .cuCtxWaitEvent = wait,
                                 .cuEventQuery = query,
                                 .cuEventSynchronize = synchronize,
                                 .cuCtxPushCurrent_v2 = push,
                                 .cuCtxGetCurrent = current,
                                 .cuThreadExchangeStreamCaptureMode = exchange};
    fences = bfc_fences_create();
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, fence, NULL);
    pthread_create(&capturer, NULL, capture, NULL);
    pthread_create(&ender, NULL, end_contexts, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    done = true;
    pthread_join(capturer, NULL);
    pthread_join(ender, NULL);
    order_twice();
    know_pinned();
    pass_refused();
    fail_often();
    bfc_fence last = bfc_fences_last(fences);
    wrong += bfc_fences_wait(fences, &driver, last, UINT64_MAX, NULL) != last;
    bfc_fences_destroy(fences);
    while (made_last) {
        struct event *event = made_last;
        made_last = event->made_before;
        free(event);
    }
    printf("%d wrong of %llu fences\n", wrong, (unsigned long long)last);
    return wrong != 0;
}
