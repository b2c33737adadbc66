/*
 * Marks: a ring of pending ones in the order of their numbers, and a small store of events.
 *
 * Numbers are reserved in the ring before their events are recorded; a mark that is not recorded
 * yet, or that a thread is using (pinned), holds up those after it. The lock is a part of the gate
 * (interpose/capture.h): a mark that is drawn but not recorded yet, or that a context is being made
 * to wait for, is inside. So the way of one free is one lock pair and its records, and that of one
 * look is two lock pairs and a query. Looking is by galloping: a complete event of a context
 * implies the earlier ones, so while all pending marks are of one context, a few queries settle
 * hundreds of marks.
 */
#include "interpose/marks.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "interpose/capture.h"
#include "interpose/clock.h"
#include "interpose/unsafe.h"

enum { QUERIES_A_POLL = 8, FIRST_CAPACITY = 64 };
#define NAP_NS 20000L /* between two looks in a wait with a limit */

struct event {
    CUevent handle;
    CUcontext context;
    bool dead;          /* atomic: its context has ended, so it is complete and its handle void */
    bool recorded;      /* atomic, in a mark's first event: all of the mark's are recorded */
    struct event *next; /* in its mark, or in the store */
};

struct entry {
    struct event *events; /* at least one; not pending: none, or one that can be used again */
    unsigned pins;        /* threads that use the events now */
};

/*
 * Pending marks are first..next-1, at [number & (capacity - 1)]; below `first` all are complete.
 * All but `ordered` is guarded by the door's lock.
 */
struct bfc_marks {
    struct bfc_door door; /* first: the door is the marks */
    unsigned ordering;    /* threads that hold a mark to make a context wait for it */
    bfc_mark first, next;
    struct entry *ring;
    uint64_t capacity;      /* a power of two */
    size_t mixed;           /* pending marks that are not of just the context `usual` */
    CUcontext usual;        /* of the first pending mark */
    uint64_t stride;        /* marks that the last look settled at once */
    bfc_mark seen_recorded; /* all below it are recorded */
    bfc_mark handed_out;    /* the highest that was announced */
    bfc_mark ordered;       /* atomic: the highest that the owner was made to wait for */
    struct event *store;    /* more events that can be used again */
};

static void lock(struct bfc_marks *marks) {
    pool_lock(&marks->door.lock);
}

static void unlock(struct bfc_marks *marks) {
    pool_unlock(&marks->door.lock);
}

static void free_events(struct event *event) {
    while (event) {
        struct event *next = event->next;
        free(event);
        event = next;
    }
}

static struct entry *entry_of(const struct bfc_marks *marks, bfc_mark mark) {
    return &marks->ring[mark & (marks->capacity - 1)];
}

/* ---- the ring, under the lock ---- */

static bool make_room(struct bfc_marks *marks) {
    if (marks->next - marks->first < marks->capacity)
        return true;
    struct entry *ring = calloc(2 * marks->capacity, sizeof *ring);
    if (!ring)
        return false;
    for (bfc_mark mark = marks->first; mark < marks->next; mark++)
        ring[mark & (2 * marks->capacity - 1)] = *entry_of(marks, mark);
    free(marks->ring);
    marks->ring = ring;
    marks->capacity *= 2;
    return true;
}

static bool is_mixed(const struct bfc_marks *marks, const struct event *events) {
    return events->next || events->context != marks->usual;
}

static bool is_dead(const struct event *event) {
    return __atomic_load_n(&event->dead, __ATOMIC_ACQUIRE);
}

static bool is_recorded(const struct entry *entry) {
    return __atomic_load_n(&entry->events->recorded, __ATOMIC_ACQUIRE);
}

/* Under the lock: nothing is being recorded, and no context being made to wait. */
static bool nothing_inside(struct bfc_door *door) {
    struct bfc_marks *marks = (struct bfc_marks *)door;
    if (marks->seen_recorded < marks->first)
        marks->seen_recorded = marks->first;
    while (marks->seen_recorded < marks->next && is_recorded(entry_of(marks, marks->seen_recorded)))
        marks->seen_recorded++;
    return marks->seen_recorded == marks->next && marks->ordering == 0;
}

struct bfc_marks *bfc_marks_create(void) {
    struct bfc_marks *marks = calloc(1, sizeof *marks);
    struct entry *ring = calloc(FIRST_CAPACITY, sizeof *ring);
    if (!marks || !ring) {
        free(marks);
        free(ring);
        return NULL;
    }
    marks->first = marks->next = marks->stride = 1;
    marks->ring = ring;
    marks->capacity = FIRST_CAPACITY;
    bfc_door_add(&marks->door, nothing_inside);
    return marks;
}

void bfc_marks_destroy(struct bfc_marks *marks) {
    if (!marks)
        return;
    bfc_door_remove(&marks->door);
    for (uint64_t i = 0; i < marks->capacity; i++)
        free_events(marks->ring[i].events);
    free_events(marks->store);
    free(marks->ring);
    free(marks);
}

static void store_event(struct bfc_marks *marks, struct event *event) {
    if (is_dead(event)) {
        free(event);
        return;
    }
    event->next = marks->store;
    marks->store = event;
}

static void give_back(struct bfc_marks *marks, struct event *events) {
    while (events) {
        struct event *event = events;
        events = event->next;
        store_event(marks, event);
    }
}

static void clear_out(struct bfc_marks *marks, struct entry *entry) {
    give_back(marks, entry->events);
    entry->events = NULL;
}

/*
 * Marks up to `mark` are complete: drops them, as far as none is in use or still to be recorded. An
 * event that was alone stays for the next mark at its place.
 */
static void retire_up_to(struct bfc_marks *marks, bfc_mark mark) {
    while (marks->first <= mark && marks->first < marks->next) {
        struct entry *entry = entry_of(marks, marks->first);
        if (!is_recorded(entry) || entry->pins)
            return;
        marks->first++;
        if (marks->mixed)
            marks->mixed -= is_mixed(marks, entry->events);
        if (entry->events->next || is_dead(entry->events))
            clear_out(marks, entry);
    }
}

/* ---- events ---- */

/* Moves an event of the context from the store to `taken`; under the lock. */
static bool take_stored(struct bfc_marks *marks, CUcontext context, struct event **taken) {
    struct event **link = &marks->store;
    while (*link && (*link)->context != context)
        link = &(*link)->next;
    struct event *event = *link;
    if (!event)
        return false;
    *link = event->next;
    event->next = *taken;
    *taken = event;
    return true;
}

/* One event for each context, or none at all; under the lock. */
static struct event *take_all_stored(struct bfc_marks *marks, const CUcontext *contexts,
                                     size_t count) {
    struct event *taken = NULL;
    for (size_t i = 0; i < count; i++)
        if (!take_stored(marks, contexts[i], &taken)) {
            give_back(marks, taken);
            return NULL;
        }
    return taken;
}

/*
 * An event belongs to the context that is current when it is made. The gate is not passed, so the
 * thread is relaxed even where no capture was seen yet.
 */
static CUresult make_handle(const struct bfc_driver *driver, CUcontext context, CUevent *handle) {
    CUresult result = driver->cuCtxPushCurrent_v2(context);
    if (result != CUDA_SUCCESS)
        return result;
    CUstreamCaptureMode mode = bfc_capture_relax_now(driver);
    result = driver->cuEventCreate(handle, CU_EVENT_DISABLE_TIMING);
    bfc_capture_restore(driver, mode);
    bfc_pop_context(driver);
    return result;
}

static CUresult make_event(const struct bfc_driver *driver, CUcontext context,
                           struct event **made) {
    struct event *event = calloc(1, sizeof *event);
    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = make_handle(driver, context, &event->handle);
    if (result != CUDA_SUCCESS) {
        free(event);
        return result;
    }
    event->context = context;
    event->next = *made;
    *made = event;
    return CUDA_SUCCESS;
}

/* Makes a new event for each context, and puts them into the store. */
static CUresult stock_up(struct bfc_marks *marks, const struct bfc_driver *driver,
                         const CUcontext *contexts, size_t count) {
    struct event *made = NULL;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = make_event(driver, contexts[i], &made);
    lock(marks);
    give_back(marks, made);
    unlock(marks);
    return result;
}

static CUresult record_events(const struct bfc_driver *driver, const struct event *event) {
    CUresult result = CUDA_SUCCESS;
    for (; event && result == CUDA_SUCCESS; event = event->next)
        result = driver->cuCtxRecordEvent(event->context, event->handle);
    return result;
}

/* CUDA_SUCCESS when all are complete, CUDA_ERROR_NOT_READY, or an error. */
static CUresult query_events(const struct bfc_driver *driver, const struct event *event) {
    CUresult result = CUDA_SUCCESS;
    for (; event && result == CUDA_SUCCESS; event = event->next)
        result = is_dead(event) ? CUDA_SUCCESS : driver->cuEventQuery(event->handle);
    return result;
}

static CUresult synchronize_events(const struct bfc_driver *driver, const struct event *event) {
    CUresult result = CUDA_SUCCESS;
    for (; event && result == CUDA_SUCCESS; event = event->next)
        result = is_dead(event) ? CUDA_SUCCESS : driver->cuEventSynchronize(event->handle);
    return result;
}

/* ---- recording ---- */

/* Gives a place in the ring one event for each context. False: the store has too few. */
static __attribute__((noinline)) bool fit_out(struct bfc_marks *marks, struct entry *entry,
                                              const CUcontext *contexts, size_t count) {
    clear_out(marks, entry);
    entry->events = take_all_stored(marks, contexts, count);
    return entry->events != NULL;
}

/*
 * Draws a number for a mark over the contexts; its place in the ring is held from now on.
 * CUDA_ERROR_NOT_READY: the store has too few events.
 */
static inline CUresult draw(struct bfc_marks *marks, const CUcontext *contexts, size_t count,
                            struct event **events, bfc_mark *mark) {
    if (__builtin_expect(marks->next - marks->first == marks->capacity, 0) && !make_room(marks))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct entry *entry = entry_of(marks, marks->next);
    if (__builtin_expect(!entry->events || count != 1 || entry->events->context != contexts[0],
                         0) &&
        !fit_out(marks, entry, contexts, count))
        return CUDA_ERROR_NOT_READY;
    struct event *first = entry->events;
    first->recorded = false;
    if (marks->first == marks->next)
        marks->usual = first->context;
    marks->mixed += is_mixed(marks, first);
    *events = first;
    *mark = marks->next++;
    return CUDA_SUCCESS;
}

/* The same if the door is open; else CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED. */
static inline CUresult draw_inside(struct bfc_marks *marks, const CUcontext *contexts, size_t count,
                                   struct event **events, bfc_mark *mark) {
    bool shut, open;
    do {
        lock(marks);
        shut = marks->door.shut;
        open = bfc_door_is_open(&marks->door);
        BFC_WITHOUT_GATE(open = true;)
        CUresult result = open ? draw(marks, contexts, count, events, mark)
                               : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        unlock(marks);
        if (__builtin_expect(open, 1))
            return result;
        if (shut)
            bfc_door_await();
    } while (shut);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/* Should recording fail there is no mark; an event that was not recorded counts as complete. */
CUresult bfc_marks_record(struct bfc_marks *marks, const struct bfc_driver *driver,
                          const CUcontext *contexts, size_t count, bfc_mark *mark) {
    struct event *events = NULL;
    bfc_mark drawn = BFC_NO_MARK;
    CUresult result;
    /* Another thread may take what was put into the store: then again. */
    while ((result = draw_inside(marks, contexts, count, &events, &drawn)) == CUDA_ERROR_NOT_READY)
        if ((result = stock_up(marks, driver, contexts, count)) != CUDA_SUCCESS)
            return result;
    if (result != CUDA_SUCCESS || !events)
        return result;
    result = record_events(driver, events);
    __atomic_store_n(&events->recorded, true, __ATOMIC_RELEASE);
    if (result == CUDA_SUCCESS)
        *mark = drawn;
    return result;
}

/* ---- looking ---- */

/* Under the lock: the events of a recorded, pending mark, pinned; NULL: it is none. */
static struct event *pin_locked(struct bfc_marks *marks, bfc_mark mark) {
    if (mark < marks->first || mark >= marks->next || !is_recorded(entry_of(marks, mark)))
        return NULL;
    entry_of(marks, mark)->pins++;
    return entry_of(marks, mark)->events;
}

static struct event *pin(struct bfc_marks *marks, bfc_mark mark) {
    lock(marks);
    struct event *events = pin_locked(marks, mark);
    unlock(marks);
    return events;
}

/* A pinned mark is not retired, so it is still in the ring. */
static void unpin_locked(struct bfc_marks *marks, bfc_mark mark, bool complete) {
    entry_of(marks, mark)->pins--;
    /* Of marks over one context a complete one implies those before it. */
    if (complete && (marks->mixed == 0 || mark == marks->first))
        retire_up_to(marks, mark);
}

static void unpin(struct bfc_marks *marks, bfc_mark mark, bool complete) {
    lock(marks);
    unpin_locked(marks, mark, complete);
    unlock(marks);
}

/*
 * A look begins with as many marks at once as the last one settled. Each success doubles the step,
 * as long as all pending marks are of one context; a failure beyond the first mark begins anew.
 */
struct look {
    struct event *events; /* NULL: there is nothing more to see */
    bfc_mark mark;
    uint64_t step;
};

static void aim(struct bfc_marks *marks, struct look *look) {
    uint64_t pending = marks->next - marks->first;
    if (look->step > pending)
        look->step = pending;
    if (marks->mixed || look->step == 0)
        look->step = 1;
    look->mark = marks->first + look->step - 1;
    look->events = pin_locked(marks, look->mark);
    if (!look->events && look->step > 1) { /* it is not recorded yet; the first may be */
        look->step = 1;
        look->mark = marks->first;
        look->events = pin_locked(marks, look->mark);
    }
}

static void begin_look(struct bfc_marks *marks, struct look *look) {
    lock(marks);
    look->step = marks->stride;
    marks->stride = 1;
    aim(marks, look);
    unlock(marks);
}

static void continue_look(struct bfc_marks *marks, struct look *look, bool complete) {
    lock(marks);
    unpin_locked(marks, look->mark, complete);
    look->events = NULL;
    if (complete)
        marks->stride = look->step;
    if (complete || look->step > 1) {
        look->step = complete ? 2 * look->step : 1;
        aim(marks, look);
    }
    unlock(marks);
}

static bfc_mark complete_mark(struct bfc_marks *marks) {
    lock(marks);
    bfc_mark mark = marks->first - 1;
    unlock(marks);
    return mark;
}

bfc_mark bfc_marks_poll(struct bfc_marks *marks, const struct bfc_driver *driver) {
    if (!bfc_gate_enter())
        return complete_mark(marks);
    CUstreamCaptureMode mode = bfc_capture_relax(driver);
    struct look look;
    begin_look(marks, &look);
    for (int queries = 0; look.events && queries < QUERIES_A_POLL; queries++)
        continue_look(marks, &look, query_events(driver, look.events) == CUDA_SUCCESS);
    if (look.events)
        unpin(marks, look.mark, false);
    bfc_capture_restore(driver, mode);
    bfc_gate_leave();
    return complete_mark(marks);
}

/* ---- waiting ---- */

static bfc_mark wait_a_while(struct bfc_marks *marks, const struct bfc_driver *driver,
                             bfc_mark mark, uint64_t timeout_ns) {
    uint64_t start = bfc_now_ns();
    bfc_mark complete;
    while ((complete = bfc_marks_poll(marks, driver)) < mark && bfc_now_ns() - start < timeout_ns)
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    return complete;
}

/* Waits for the first pending mark. It may also not be recorded yet: then its thread is about to.
 */
static CUresult wait_for_first(struct bfc_marks *marks, const struct bfc_driver *driver) {
    bfc_mark first = complete_mark(marks) + 1;
    struct event *events = pin(marks, first);
    if (!events) {
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        return CUDA_SUCCESS;
    }
    CUstreamCaptureMode mode = bfc_capture_relax(driver);
    CUresult result = synchronize_events(driver, events);
    bfc_capture_restore(driver, mode);
    unpin(marks, first, result == CUDA_SUCCESS);
    return result;
}

bfc_mark bfc_marks_wait(struct bfc_marks *marks, const struct bfc_driver *driver, bfc_mark mark,
                        uint64_t timeout_ns, CUresult *error) {
    CUresult result = CUDA_SUCCESS;
    if (timeout_ns != UINT64_MAX)
        return wait_a_while(marks, driver, mark, timeout_ns);
    bfc_mark last = bfc_marks_last(marks);
    if (mark > last)
        mark = last;
    while (bfc_marks_poll(marks, driver) < mark && result == CUDA_SUCCESS)
        result = wait_for_first(marks, driver);
    if (error)
        *error = result;
    return complete_mark(marks);
}

CUresult bfc_marks_synchronize(struct bfc_marks *marks, const struct bfc_driver *driver,
                               bfc_mark mark) {
    struct event *events = pin(marks, mark);
    if (!events)
        return CUDA_SUCCESS;
    CUresult result = synchronize_events(driver, events);
    unpin(marks, mark, result == CUDA_SUCCESS);
    return result;
}

bfc_mark bfc_marks_last(struct bfc_marks *marks) {
    lock(marks);
    bfc_mark last = marks->next - 1;
    unlock(marks);
    return last;
}

/* ---- ordering ---- */

/*
 * What the owner was made to wait for once, it need not wait for again; and whatever was announced
 * then is not below what is announced now.
 */
bool bfc_marks_announce(struct bfc_marks *marks, bfc_mark mark, struct bfc_order *order) {
    *order = (struct bfc_order){.mark = mark};
    if (mark <= __atomic_load_n(&marks->ordered, __ATOMIC_ACQUIRE))
        return true;
    lock(marks);
    bool open = bfc_door_is_open(&marks->door);
    BFC_WITHOUT_GATE(open = true;)
    if (mark > marks->handed_out)
        marks->handed_out = mark;
    if (open && (order->events = pin_locked(marks, mark)))
        marks->ordering++;
    unlock(marks);
    return open;
}

bfc_mark bfc_marks_announced(struct bfc_marks *marks) {
    lock(marks);
    bfc_mark mark = marks->handed_out;
    unlock(marks);
    return mark;
}

void bfc_marks_retract(struct bfc_marks *marks, const struct bfc_order *order) {
    if (!order->events)
        return;
    lock(marks);
    marks->ordering--;
    unpin_locked(marks, order->mark, false);
    unlock(marks);
}

CUresult bfc_marks_order(struct bfc_marks *marks, const struct bfc_driver *driver,
                         CUcontext context, const struct bfc_order *order) {
    CUresult result = CUDA_SUCCESS;
    if (!order->events)
        return result;
    BFC_WITHOUT_MOMENT(record_events(driver, order->events);)
    for (const struct event *event = order->events; event && result == CUDA_SUCCESS;
         event = event->next)
        if (!is_dead(event))
            result = driver->cuCtxWaitEvent(context, event->handle);
    lock(marks);
    marks->ordering--;
    unpin_locked(marks, order->mark, false);
    if (result == CUDA_SUCCESS && order->mark > marks->ordered)
        __atomic_store_n(&marks->ordered, order->mark, __ATOMIC_RELEASE);
    unlock(marks);
    return result;
}

/* ---- a context's end ---- */

static void bury(struct event *event, CUcontext context) {
    for (; event; event = event->next)
        if (event->context == context)
            __atomic_store_n(&event->dead, true, __ATOMIC_RELEASE);
}

static void purge_store(struct bfc_marks *marks) {
    struct event *stored = marks->store;
    marks->store = NULL;
    while (stored) {
        struct event *event = stored;
        stored = event->next;
        store_event(marks, event);
    }
}

/* Of the places in the ring that no pending mark has. */
static void clear_dead(struct bfc_marks *marks) {
    for (bfc_mark mark = marks->next; mark < marks->first + marks->capacity; mark++) {
        struct entry *entry = entry_of(marks, mark);
        if (entry->events && is_dead(entry->events))
            clear_out(marks, entry);
    }
}

void bfc_marks_forget_context(struct bfc_marks *marks, CUcontext context) {
    lock(marks);
    for (uint64_t i = 0; i < marks->capacity; i++)
        bury(marks->ring[i].events, context);
    clear_dead(marks);
    bury(marks->store, context);
    purge_store(marks);
    unlock(marks);
}
