/*
 * Marks: a ring of pending ones in the order of their numbers, and a small store of events.
 *
 * Numbers are reserved in the ring before their events are recorded; a mark that is not recorded
 * yet, or that a thread is using (pinned), holds up those after it. The way of one free is one lock
 * pair and its records; that of one look is two lock pairs and a query. Looking is by galloping: a
 * complete event of a context implies the earlier ones, so while all pending marks are of one
 * context, a few queries settle hundreds of marks.
 */
#include "interpose/marks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "interpose/capture.h"
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
    struct event *events; /* at least one */
    unsigned pins;        /* threads that use the events now */
};

/* Pending marks are first..next-1, at [number & (capacity - 1)]; below `first` all are complete. */
struct bfc_marks {
    pthread_mutex_t lock;
    bfc_mark first, next;
    struct entry *ring;
    uint64_t capacity; /* a power of two */
    size_t mixed;      /* pending marks that are not of just the context `usual` */
    CUcontext usual;
    struct event *store; /* events that can be used again */
};

struct bfc_marks *bfc_marks_create(void) {
    struct bfc_marks *marks = calloc(1, sizeof *marks);
    struct entry *ring = calloc(FIRST_CAPACITY, sizeof *ring);
    if (!marks || !ring) {
        free(marks);
        free(ring);
        return NULL;
    }
    pthread_mutex_init(&marks->lock, NULL);
    marks->first = marks->next = 1;
    marks->ring = ring;
    marks->capacity = FIRST_CAPACITY;
    return marks;
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

void bfc_marks_destroy(struct bfc_marks *marks) {
    if (!marks)
        return;
    for (bfc_mark mark = marks->first; mark < marks->next; mark++)
        free_events(entry_of(marks, mark)->events);
    free_events(marks->store);
    free(marks->ring);
    pthread_mutex_destroy(&marks->lock);
    free(marks);
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

static void store_event(struct bfc_marks *marks, struct event *event) {
    if (is_dead(event)) {
        free(event);
        return;
    }
    event->recorded = false;
    event->next = marks->store;
    marks->store = event;
}

static void retire_first(struct bfc_marks *marks) {
    struct entry *entry = entry_of(marks, marks->first++);
    marks->mixed -= is_mixed(marks, entry->events);
    while (entry->events) {
        struct event *event = entry->events;
        entry->events = event->next;
        store_event(marks, event);
    }
    *entry = (struct entry){0};
}

/* Marks up to `mark` are complete: drops them, as far as none is in use or still to be recorded. */
static void retire_up_to(struct bfc_marks *marks, bfc_mark mark) {
    while (marks->first <= mark && marks->first < marks->next) {
        const struct entry *entry = entry_of(marks, marks->first);
        if (!is_recorded(entry) || entry->pins)
            return;
        retire_first(marks);
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

static void give_back(struct bfc_marks *marks, struct event *events) {
    while (events) {
        struct event *event = events;
        events = event->next;
        store_event(marks, event);
    }
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

/* An event belongs to the context that is current when it is made. */
static CUresult make_handle(const struct bfc_driver *driver, CUcontext context, CUevent *handle) {
    CUresult result = driver->cuCtxPushCurrent_v2(context);
    if (result != CUDA_SUCCESS)
        return result;
    result = driver->cuEventCreate(handle, CU_EVENT_DISABLE_TIMING);
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
    pthread_mutex_lock(&marks->lock);
    give_back(marks, made);
    pthread_mutex_unlock(&marks->lock);
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

/*
 * Draws a number for a mark over the contexts; its place in the ring is held from now on.
 * CUDA_ERROR_NOT_READY: the store has too few events.
 */
static CUresult draw(struct bfc_marks *marks, const CUcontext *contexts, size_t count,
                     struct event **events, bfc_mark *mark) {
    if (!make_room(marks))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *events = take_all_stored(marks, contexts, count);
    if (!*events)
        return CUDA_ERROR_NOT_READY;
    if (marks->first == marks->next)
        marks->usual = (*events)->context;
    *mark = marks->next++;
    *entry_of(marks, *mark) = (struct entry){.events = *events};
    marks->mixed += is_mixed(marks, *events);
    return CUDA_SUCCESS;
}

/* The same with new events, should the store have too few; another thread may take those too. */
static CUresult draw_stocked(struct bfc_marks *marks, const struct bfc_driver *driver,
                             const CUcontext *contexts, size_t count, struct event **events,
                             bfc_mark *mark) {
    for (;;) {
        pthread_mutex_lock(&marks->lock);
        CUresult result = draw(marks, contexts, count, events, mark);
        pthread_mutex_unlock(&marks->lock);
        if (result == CUDA_ERROR_NOT_READY)
            result = stock_up(marks, driver, contexts, count);
        else
            return result;
        if (result != CUDA_SUCCESS)
            return result;
    }
}

/* Should recording fail there is no mark; an event that was not recorded counts as complete. */
CUresult bfc_marks_record(struct bfc_marks *marks, const struct bfc_driver *driver,
                          const CUcontext *contexts, size_t count, bfc_mark *mark) {
    struct event *events = NULL;
    bfc_mark drawn = BFC_NO_MARK;
    CUresult result = draw_stocked(marks, driver, contexts, count, &events, &drawn);
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
    pthread_mutex_lock(&marks->lock);
    struct event *events = pin_locked(marks, mark);
    pthread_mutex_unlock(&marks->lock);
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
    pthread_mutex_lock(&marks->lock);
    unpin_locked(marks, mark, complete);
    pthread_mutex_unlock(&marks->lock);
}

/* A look gallops: each success doubles the step, as long as all pending marks are of one context.
 */
struct look {
    struct event *events; /* NULL: there is nothing more to see */
    bfc_mark mark;
    uint64_t step;
};

static void aim(struct bfc_marks *marks, struct look *look) {
    uint64_t pending = marks->next - marks->first;
    if (marks->mixed || look->step > pending)
        look->step = 1;
    look->mark = marks->first + look->step - 1;
    look->events = pin_locked(marks, look->mark);
}

static void begin_look(struct bfc_marks *marks, struct look *look) {
    pthread_mutex_lock(&marks->lock);
    look->step = 1;
    aim(marks, look);
    pthread_mutex_unlock(&marks->lock);
}

/* After a query: the next mark to look at. A failure beyond the first mark begins anew. */
static void continue_look(struct bfc_marks *marks, struct look *look, bool complete) {
    pthread_mutex_lock(&marks->lock);
    unpin_locked(marks, look->mark, complete);
    look->events = NULL;
    if (complete || look->step > 1) {
        look->step = complete ? 2 * look->step : 1;
        aim(marks, look);
    }
    pthread_mutex_unlock(&marks->lock);
}

static bfc_mark complete_mark(struct bfc_marks *marks) {
    pthread_mutex_lock(&marks->lock);
    bfc_mark mark = marks->first - 1;
    pthread_mutex_unlock(&marks->lock);
    return mark;
}

static void end_look(struct bfc_marks *marks, const struct look *look) {
    if (look->events)
        unpin(marks, look->mark, false);
}

bfc_mark bfc_marks_poll(struct bfc_marks *marks, const struct bfc_driver *driver) {
    if (!bfc_gate_enter())
        return complete_mark(marks);
    CUstreamCaptureMode mode = bfc_capture_relax(driver);
    struct look look;
    begin_look(marks, &look);
    for (int queries = 0; look.events && queries < QUERIES_A_POLL; queries++)
        continue_look(marks, &look, query_events(driver, look.events) == CUDA_SUCCESS);
    end_look(marks, &look);
    bfc_capture_restore(driver, mode);
    bfc_gate_leave();
    return complete_mark(marks);
}

/* ---- waiting ---- */

static uint64_t read_clock(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static bfc_mark wait_a_while(struct bfc_marks *marks, const struct bfc_driver *driver,
                             bfc_mark mark, uint64_t timeout_ns) {
    uint64_t start = read_clock();
    bfc_mark complete;
    while ((complete = bfc_marks_poll(marks, driver)) < mark && read_clock() - start < timeout_ns)
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
    pthread_mutex_lock(&marks->lock);
    bfc_mark last = marks->next - 1;
    pthread_mutex_unlock(&marks->lock);
    return last;
}

/* ---- ordering ---- */

CUresult bfc_marks_order(struct bfc_marks *marks, const struct bfc_driver *driver,
                         CUcontext context, bfc_mark mark) {
    struct event *events = pin(marks, mark);
    CUresult result = CUDA_SUCCESS;
    if (!events)
        return result;
    BFC_WITHOUT_MOMENT(record_events(driver, events);)
    for (const struct event *event = events; event && result == CUDA_SUCCESS; event = event->next)
        if (!is_dead(event))
            result = driver->cuCtxWaitEvent(context, event->handle);
    unpin(marks, mark, false);
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

void bfc_marks_forget_context(struct bfc_marks *marks, CUcontext context) {
    pthread_mutex_lock(&marks->lock);
    for (bfc_mark mark = marks->first; mark < marks->next; mark++)
        bury(entry_of(marks, mark)->events, context);
    bury(marks->store, context);
    purge_store(marks);
    pthread_mutex_unlock(&marks->lock);
}
