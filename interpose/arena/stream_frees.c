/*
 * Frees in the order of a stream. Each stream has a queue of its frees; each free has an event.
 *
 * A free takes a number from a counter after all use of its block was submitted, and before its
 * event is recorded. So if an event of a stream is complete, every free of that stream with a lower
 * number is complete too, even if its own event was recorded later.
 *
 * Each thread queries a copy of an event, so that none waits for another. A free leaves its queue
 * and its block becomes ready under one lock, so that no thread finds the block in neither place.
 */
#include "interpose/arena/stream_frees.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "interpose/context/capture.h"
#include "interpose/fences/fence_event.h"

enum { QUERIES_A_POLL = 16, FIRST_CAPACITY = 16 };
#define NAP_NS 20000L

struct stream_free {
    struct stream_free *next; /* the next free in the stream's queue */
    struct event *event;
    /* whether another free took a number after this one had taken its own, but before this one was
     * put into its queue */
    bool rivalled;
    CUdeviceptr start;
    uint64_t number;
};

/* The frees of one stream whose events are not known to be complete, in the order of their
 * numbers. */
struct queue {
    uint64_t stream; /* the stream's id, which no other stream ever has */
    struct stream_free *first, *last;
};

/* The progress of a thread that goes through the queues and queries events. */
struct look {
    struct look *next;    /* the next in the list of querying threads */
    CUcontext context;    /* the context of the event that this thread is querying */
    uint64_t from, until; /* ids of streams: the queues in this range are still to be examined */
    size_t queries;       /* how many more events the thread may query */
};

/* The lock guards all fields. No driver call is made under it; a pool's lock may be taken under
 * it. */
struct bfc_stream_frees {
    pthread_mutex_t lock;
    struct queue *queues; /* `count` queues, sorted by stream, with room for `capacity` */
    size_t count, capacity;
    /* how many frees have taken a number but are not queued yet; each may need a new queue */
    size_t promised;
    struct event *store; /* unused events, which can be recorded again */
    struct look *looks;
    uint64_t from; /* the id of the stream at which the next poll begins */
    uint64_t next_number;
    uint64_t ready; /* atomic: how many frees have made their block ready so far */
};

struct bfc_stream_frees *bfc_stream_frees_create(void) {
    struct bfc_stream_frees *frees = calloc(1, sizeof *frees);
    if (frees)
        pthread_mutex_init(&frees->lock, NULL);
    return frees;
}

void bfc_stream_frees_destroy(struct bfc_stream_frees *frees) {
    if (!frees)
        return;
    for (size_t i = 0; i < frees->count; i++)
        while (frees->queues[i].first) {
            struct stream_free *one = frees->queues[i].first;
            frees->queues[i].first = one->next;
            bfc_fence_events_free(one->event);
            free(one);
        }
    free(frees->queues);
    bfc_fence_events_free(frees->store);
    pthread_mutex_destroy(&frees->lock);
    free(frees);
}

/* Returns the index of the stream's queue; if it has none, the index at which to insert one. */
static size_t place_of(const struct bfc_stream_frees *frees, uint64_t stream) {
    size_t low = 0, high = frees->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (frees->queues[middle].stream < stream)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct queue *find_queue(const struct bfc_stream_frees *frees, uint64_t stream) {
    size_t place = place_of(frees, stream);
    bool found = place < frees->count && frees->queues[place].stream == stream;
    return found ? &frees->queues[place] : NULL;
}

/* Reserves room for one more queue, so that a free that has recorded its event can always be
 * queued. queue_free uses the room, or abandon_free gives it up. False: the host has no memory. */
static bool promise_queue(struct bfc_stream_frees *frees) {
    if (frees->count + ++frees->promised <= frees->capacity)
        return true;
    size_t capacity = frees->capacity ? 2 * frees->capacity : FIRST_CAPACITY;
    struct queue *grown = realloc(frees->queues, capacity * sizeof *grown);
    if (!grown)
        return false;
    frees->queues = grown;
    frees->capacity = capacity;
    return true;
}

static struct queue *find_or_open_queue(struct bfc_stream_frees *frees, uint64_t stream) {
    struct queue *queue = find_queue(frees, stream);
    if (queue)
        return queue;
    size_t place = place_of(frees, stream);
    queue = &frees->queues[place];
    memmove(queue + 1, queue, (frees->count++ - place) * sizeof *queue);
    *queue = (struct queue){.stream = stream};
    return queue;
}

/* Inserts a free by its number. That is not always at the end, since two threads may free in one
 * stream at the same time. */
static void put_in_order(struct queue *queue, struct stream_free *one) {
    struct stream_free **link = &queue->first;
    if (queue->last && queue->last->number < one->number)
        link = &queue->last->next;
    while (*link && (*link)->number < one->number)
        link = &(*link)->next;
    one->next = *link;
    *link = one;
    if (!one->next)
        queue->last = one;
}

/* Removes and returns the stream's first free if its number is at most `number`; else returns
 * NULL. */
static struct stream_free *take_first(struct bfc_stream_frees *frees, uint64_t stream,
                                      uint64_t number) {
    struct queue *queue = find_queue(frees, stream);
    struct stream_free *first = queue ? queue->first : NULL;
    if (!first || first->number > number)
        return NULL;
    queue->first = first->next;
    if (!queue->first) {
        size_t behind = (size_t)(&frees->queues[--frees->count] - queue);
        memmove(queue, queue + 1, behind * sizeof *queue);
    }
    return first;
}

/* Whether a stream is capturing. For the legacy default stream, the driver answers with an error
 * while a blocking stream captures. That error counts as not capturing, since recording an event
 * then fails anyway. */
static bool stream_captures(const struct bfc_stream_calls *calls, CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return calls->is_capturing && calls->is_capturing(stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Records the event, unless the stream captures. The calling thread holds the gate
 * (context/capture.h), so no capture begins between the query and the record. But the stream may
 * join a capture that is under way, so the stream is queried again after the record. If the record
 * was captured, the free fails with CUDA_ERROR_INVALID_VALUE, as the driver's cuMemFreeAsync does
 * for memory that no graph has allocated. */
static CUresult record_event(const struct bfc_stream_calls *calls, CUstream stream, CUevent event) {
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    bfc_gate_hold();
    if (!stream_captures(calls, stream)) {
        result = calls->record(event, stream);
        if (result == CUDA_SUCCESS && bfc_captures_exist() && stream_captures(calls, stream))
            result = CUDA_ERROR_INVALID_VALUE;
    }
    bfc_gate_leave();
    return result;
}

/* Returns the stream's id. If the driver does not tell it, returns a number that no other free
 * gets; then this free has a queue of its own. No result is UINT64_MAX, so that `id + 1` does not
 * overflow. */
static uint64_t id_of_stream(const struct bfc_stream_calls *calls, CUstream stream,
                             uint64_t number) {
    unsigned long long id;
    bool given = calls->get_id && calls->get_id(stream, &id) == CUDA_SUCCESS && !(id >> 63);
    return given ? id : number | (uint64_t)1 << 63;
}

/* Begins a free: gives it a number, reserves room for a queue, and takes an unused event of the
 * context if there is one. False: the host has no memory. */
static bool begin_free(struct bfc_stream_frees *frees, struct stream_free *one, CUcontext context) {
    pthread_mutex_lock(&frees->lock);
    bool room = promise_queue(frees);
    one->number = frees->next_number++;
    bfc_fence_events_take(&frees->store, context, &one->event);
    pthread_mutex_unlock(&frees->lock);
    return room;
}

static void queue_free(struct bfc_stream_frees *frees, struct stream_free *one, uint64_t stream) {
    pthread_mutex_lock(&frees->lock);
    one->rivalled = frees->next_number != one->number + 1;
    frees->promised--;
    put_in_order(find_or_open_queue(frees, stream), one);
    pthread_mutex_unlock(&frees->lock);
}

static void abandon_free(struct bfc_stream_frees *frees, struct stream_free *one) {
    pthread_mutex_lock(&frees->lock);
    frees->promised--;
    bfc_fence_events_store(&frees->store, one->event);
    pthread_mutex_unlock(&frees->lock);
    free(one);
}

static CUresult free_in_stream(struct bfc_arena *arena, struct stream_free *one,
                               const struct bfc_stream_calls *calls, CUstream stream) {
    uint64_t id = id_of_stream(calls, stream, one->number);
    CUresult result = record_event(calls, stream, one->event->handle);
    if (result == CUDA_SUCCESS && bfc_pool_free_awaited(arena->pool, one->start) != BFC_OK)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        queue_free(arena->stream_frees, one, id);
    return result;
}

CUresult bfc_stream_frees_free(const struct bfc_driver *driver, struct bfc_arena *arena,
                               CUdeviceptr pointer, const struct bfc_stream_calls *calls,
                               CUstream stream, CUcontext context) {
    struct stream_free *one = calloc(1, sizeof *one);
    if (!one)
        return CUDA_ERROR_OUT_OF_MEMORY;
    one->start = pointer;
    CUresult result =
        begin_free(arena->stream_frees, one, context) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS && !one->event)
        result = bfc_fence_events_make(driver, context, &one->event);
    if (result == CUDA_SUCCESS)
        result = free_in_stream(arena, one, calls, stream);
    if (result != CUDA_SUCCESS)
        abandon_free(arena->stream_frees, one);
    return result;
}

/* A free, with a copy of the event that a thread queries: another thread may finish the free
 * meanwhile, and reuse its event. If the copied event is complete, so is the free of this
 * number. */
struct question {
    uint64_t stream, number;
    struct event event;
    bool rivalled;
};

/* Copies the free `one` into `question`, and counts down the queries that the thread may make.
 * False: `one` is NULL, or the thread may make no more queries. The caller holds the lock. */
static bool ask_about(struct look *look, uint64_t stream, const struct stream_free *one,
                      struct question *question) {
    if (!one || !look->queries)
        return false;
    look->queries--;
    look->context = one->event->context;
    *question = (struct question){stream, one->number, *one->event, one->rivalled};
    return true;
}

/* Copies the last free of the next queue into `question`. A thread goes through the queues in the
 * order of their streams' ids, so that it visits every queue that existed when it began, even if
 * other threads add and remove queues meanwhile. */
static bool ask_about_next_queue(struct bfc_stream_frees *frees, struct look *look,
                                 struct question *question) {
    pthread_mutex_lock(&frees->lock);
    size_t place = place_of(frees, look->from);
    const struct queue *queue = place < frees->count ? &frees->queues[place] : NULL;
    bool asked = queue && queue->stream <= look->until &&
                 ask_about(look, queue->stream, queue->last, question);
    if (asked)
        look->from = queue->stream + 1;
    pthread_mutex_unlock(&frees->lock);
    return asked;
}

/* Copies the first free in the stream's queue whose number is at least `from` into `question`. */
static bool ask_from(struct bfc_stream_frees *frees, struct look *look, uint64_t stream,
                     uint64_t from, struct question *question) {
    pthread_mutex_lock(&frees->lock);
    const struct queue *queue = find_queue(frees, stream);
    const struct stream_free *one = queue ? queue->first : NULL;
    while (one && one->number < from)
        one = one->next;
    bool asked = ask_about(look, stream, one, question);
    pthread_mutex_unlock(&frees->lock);
    return asked;
}

/* If the stream's first free has a number of at most `number`, removes it from its queue and makes
 * its block ready, or deferred if `fence` is BFC_DEFERRED_FENCE. False: there is no such free. */
static bool finish_first(struct bfc_arena *arena, uint64_t stream, uint64_t number,
                         bfc_fence fence) {
    struct bfc_stream_frees *frees = arena->stream_frees;
    pthread_mutex_lock(&frees->lock);
    struct stream_free *one = take_first(frees, stream, number);
    bool found = one;
    if (found) {
        bfc_pool_ready(arena->pool, one->start, fence);
        bfc_store_release(&frees->ready, frees->ready + 1);
        bfc_fence_events_store(&frees->store, one->event);
    }
    pthread_mutex_unlock(&frees->lock);
    free(one);
    return found;
}

/* Finishes all frees of the stream up to the one in `question`. If `fence` makes their blocks
 * deferred, has_deferred is set before that, for threads that look for deferred blocks meanwhile.
 * Such a thread may find none yet and clear has_deferred, so it is set once more afterwards. */
static void finish_frees(struct bfc_arena *arena, const struct question *question,
                         bfc_fence fence) {
    if (fence == BFC_DEFERRED_FENCE)
        bfc_store_seq_cst(&arena->has_deferred, true);
    while (finish_first(arena, question->stream, question->number, fence))
        ;
    if (fence == BFC_DEFERRED_FENCE)
        bfc_store_seq_cst(&arena->has_deferred, true);
}

/* Queries the event in `question`, and finishes the frees that it shows to be complete. An event
 * that has become part of a capture never completes. So the block of its free is deferred, like one
 * that is freed during a capture, and later gets a fence over the whole context. After any other
 * error the free stays in its queue, since the error may pass, or the context may end. */
static CUresult settle_question(const struct bfc_driver *driver, struct bfc_arena *arena,
                                const struct question *question) {
    CUresult result = bfc_fence_events_query(driver, &question->event);
    bool captured = result == CUDA_ERROR_CAPTURED_EVENT && arena->fences &&
                    question->event.context == arena->context;
    if (result == CUDA_SUCCESS || captured)
        finish_frees(arena, question, captured ? BFC_DEFERRED_FENCE : BFC_NO_FENCE);
    return captured ? CUDA_SUCCESS : result;
}

/* Called when the last free of a queue is not complete: queries the frees from the first one on,
 * until one is not complete. No later free is complete then, unless that one is `rivalled`: a free
 * of a higher number may have recorded its event before it. So a rivalled free is skipped. */
static void look_from_first(const struct bfc_driver *driver, struct bfc_arena *arena,
                            struct look *look, const struct question *last) {
    struct question question;
    uint64_t from = 0;
    while (ask_from(arena->stream_frees, look, last->stream, from, &question) &&
           question.number < last->number) {
        CUresult result = settle_question(driver, arena, &question);
        if (result == CUDA_ERROR_NOT_READY && !question.rivalled)
            break;
        if (result != CUDA_SUCCESS)
            from = question.number + 1;
    }
}

static void look_at_queues(const struct bfc_driver *driver, struct bfc_arena *arena,
                           struct look *look) {
    struct question last;
    while (ask_about_next_queue(arena->stream_frees, look, &last))
        if (settle_question(driver, arena, &last) != CUDA_SUCCESS)
            look_from_first(driver, arena, look, &last);
}

/* Begins to go through the queues: through all of them, or a limited number from where the last
 * poll stopped. False: there is no queue. */
static bool begin_look(struct bfc_stream_frees *frees, struct look *look, bool all) {
    pthread_mutex_lock(&frees->lock);
    bool any = frees->count;
    *look = (struct look){.next = frees->looks, .until = UINT64_MAX, .queries = QUERIES_A_POLL};
    if (any && all) {
        look->until = frees->queues[frees->count - 1].stream;
        look->queries = SIZE_MAX;
    } else if (place_of(frees, frees->from) < frees->count) {
        look->from = frees->from;
    }
    if (any)
        frees->looks = look;
    pthread_mutex_unlock(&frees->lock);
    return any;
}

static void end_look(struct bfc_stream_frees *frees, const struct look *look) {
    pthread_mutex_lock(&frees->lock);
    struct look **link = &frees->looks;
    while (*link != look)
        link = &(*link)->next;
    *link = look->next;
    frees->from = look->from;
    pthread_mutex_unlock(&frees->lock);
}

static void look_at_frees(const struct bfc_driver *driver, struct bfc_arena *arena, bool all) {
    struct look look;
    if (!begin_look(arena->stream_frees, &look, all))
        return;
    CUstreamCaptureMode mode = bfc_capture_relax(driver);
    look_at_queues(driver, arena, &look);
    bfc_capture_restore(driver, mode);
    end_look(arena->stream_frees, &look);
}

void bfc_stream_frees_poll(const struct bfc_driver *driver, struct bfc_arena *arena) {
    look_at_frees(driver, arena, false);
}

void bfc_stream_frees_settle(const struct bfc_driver *driver, struct bfc_arena *arena) {
    look_at_frees(driver, arena, true);
}

static bool is_any(struct bfc_stream_frees *frees) {
    pthread_mutex_lock(&frees->lock);
    bool any = frees->count;
    pthread_mutex_unlock(&frees->lock);
    return any;
}

bool bfc_stream_frees_wait(const struct bfc_driver *driver, struct bfc_arena *arena,
                           uint64_t timeout_ns) {
    struct bfc_stream_frees *frees = arena->stream_frees;
    uint64_t before = bfc_load_acquire(&frees->ready), start = bfc_now_ns();
    bfc_stream_frees_settle(driver, arena);
    while (bfc_load_acquire(&frees->ready) == before && is_any(frees) &&
           bfc_now_ns() - start < timeout_ns) {
        bfc_nap(NAP_NS);
        bfc_stream_frees_poll(driver, arena);
    }
    return bfc_load_acquire(&frees->ready) != before;
}

/* Marks all events of a context as living, ending or ended. The caller holds the lock. */
static void set_all_liveness(struct bfc_stream_frees *frees, CUcontext context,
                             enum liveness liveness) {
    for (size_t i = 0; i < frees->count; i++)
        for (struct stream_free *one = frees->queues[i].first; one; one = one->next)
            bfc_fence_events_set_liveness(one->event, context, liveness);
    bfc_fence_events_set_liveness(frees->store, context, liveness);
}

struct suspension {
    struct bfc_stream_frees *frees;
    CUcontext context;
};

/* Marks the context's events so that no thread begins to query one. Returns whether no thread is
 * querying one now. */
static bool put_frees_aside(void *argument) {
    const struct suspension *suspension = argument;
    struct bfc_stream_frees *frees = suspension->frees;
    pthread_mutex_lock(&frees->lock);
    set_all_liveness(frees, suspension->context, ENDING);
    const struct look *look = frees->looks;
    while (look && look->context != suspension->context)
        look = look->next;
    pthread_mutex_unlock(&frees->lock);
    return !look;
}

void bfc_stream_frees_suspend_context(struct bfc_stream_frees *frees, CUcontext context) {
    bfc_await(put_frees_aside, &(struct suspension){frees, context}, BFC_NS_PER_SECOND);
}

void bfc_stream_frees_conclude_context(struct bfc_stream_frees *frees, CUcontext context,
                                       bool ended) {
    pthread_mutex_lock(&frees->lock);
    set_all_liveness(frees, context, ended ? DEAD : LIVE);
    bfc_fence_events_purge(&frees->store);
    pthread_mutex_unlock(&frees->lock);
}
