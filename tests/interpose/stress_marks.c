/*
 * Threads mark, look, and make the context wait, beside one that begins and ends captures, and one
 * that ends contexts: no event is recorded or waited for while anything captures; an event in use
 * is not recorded anew; marks that are said to be complete are; and after all, every mark is.
 *
 * The driver is made up here. An event counts how often it was recorded, and who uses it.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "interpose/capture.h"
#include "interpose/marks.h"
#include "interpose/process.h"

enum { THREADS = 4, ROUNDS = 5000 };

struct event {
    atomic_uint users, recorders;
    struct event *made_before;
};

static atomic_bool capturing, done;
static atomic_int wrong;
static atomic_uint calls, waits;
static struct event *_Atomic made_last;
static int owner, peer;
static struct bfc_marks *marks;
static struct bfc_driver driver;
const struct bfc_driver *bfc_driver_found = &driver;
struct bfc_process *bfc_process_made;

const struct bfc_driver *bfc_find_driver(void) {
    return &driver;
}

CUresult bfc_pop_context(const struct bfc_driver *unused) {
    (void)unused;
    return CUDA_SUCCESS;
}

/* ---- the driver ---- */

static CUresult create(CUevent *made, unsigned flags) {
    (void)flags;
    struct event *event = calloc(1, sizeof *event);
    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    event->made_before = made_last;
    while (!atomic_compare_exchange_weak(&made_last, &event->made_before, event))
        ;
    *made = (CUevent)(void *)event;
    return CUDA_SUCCESS;
}

/* Now and then for so long that the others get through the ring of marks meanwhile. */
static void linger(unsigned steps) {
    unsigned call = calls++;
    for (unsigned i = 0; i < steps && call % 256 == 0; i++)
        wrong += capturing;
}

static CUresult record(CUcontext context, CUevent handle) {
    struct event *event = (struct event *)(void *)handle;
    (void)context;
    wrong += capturing + (event->users != 0) + (event->recorders++ != 0);
    linger(100000);
    event->recorders--;
    wrong += capturing;
    return CUDA_SUCCESS;
}

static CUresult wait(CUcontext context, CUevent handle) {
    struct event *event = (struct event *)(void *)handle;
    (void)context;
    event->users++;
    wrong += capturing;
    linger(500000);
    wrong += capturing;
    event->users--;
    waits++;
    return CUDA_SUCCESS;
}

static CUresult query(CUevent handle) {
    struct event *event = (struct event *)(void *)handle;
    event->users++;
    wrong += capturing;
    event->users--;
    return calls++ % 4 ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static CUresult synchronize(CUevent handle) {
    (void)handle;
    return CUDA_SUCCESS;
}

static CUresult push(CUcontext context) {
    (void)context;
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

/* Marks, now and then over two contexts; then hands out under the mark. */
static void *mark(void *unused) {
    const CUcontext contexts[] = {(CUcontext)(void *)&owner, (CUcontext)(void *)&peer};
    for (unsigned i = 0; i < ROUNDS;) {
        bfc_mark drawn = BFC_NO_MARK;
        struct bfc_order order;
        CUresult result = bfc_marks_record(marks, &driver, contexts, i % 100 < 99 ? 1 : 2, &drawn);
        if (result != CUDA_SUCCESS) {
            wrong += result != CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
            sched_yield();
            continue;
        }
        i++;
        if (i % 3 == 0 && bfc_marks_announce(marks, drawn, &order)) {
            wrong += bfc_marks_announced(marks) < drawn;
            if (i % 2)
                bfc_marks_order(marks, &driver, contexts[0], &order);
            else
                bfc_marks_retract(marks, &order);
        }
        if (i % 8 == 0)
            wrong += bfc_marks_poll(marks, &driver) > bfc_marks_last(marks);
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
    while (!done) {
        bfc_marks_forget_context(marks, (CUcontext)(void *)&peer);
        usleep(1000);
    }
    return unused;
}

/* What the owner waits for already it is not made to wait for again. */
static void order_twice(void) {
    CUcontext context = (CUcontext)(void *)&owner;
    bfc_mark first, second;
    struct bfc_order order;
    bfc_marks_record(marks, &driver, &context, 1, &first);
    bfc_marks_record(marks, &driver, &context, 1, &second);
    waits = 0;
    wrong += !bfc_marks_announce(marks, second, &order);
    bfc_marks_order(marks, &driver, context, &order);
    wrong += !bfc_marks_announce(marks, first, &order);
    bfc_marks_order(marks, &driver, context, &order);
    wrong += waits != 1;
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
    marks = bfc_marks_create();
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, mark, NULL);
    pthread_create(&capturer, NULL, capture, NULL);
    pthread_create(&ender, NULL, end_contexts, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    done = true;
    pthread_join(capturer, NULL);
    pthread_join(ender, NULL);
    order_twice();
    bfc_mark last = bfc_marks_last(marks);
    wrong += bfc_marks_wait(marks, &driver, last, UINT64_MAX, NULL) != last;
    bfc_marks_destroy(marks);
    while (made_last) {
        struct event *event = made_last;
        made_last = event->made_before;
        free(event);
    }
    printf("%d wrong of %llu marks\n", wrong, (unsigned long long)last);
    return wrong != 0;
}
