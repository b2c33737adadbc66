/*
 * Frees in the order of a stream: a queue for each stream, of frees whose events were recorded.
 *
 * A free draws its number before its event is recorded, and after all use of its block was
 * submitted. So in one stream, a complete event covers every free with a lower number, in whatever
 * order two threads record their events.
 *
 * Any number of threads may query events at once. Each copies what it asks the driver about, so
 * that the threads do not depend on each other; and a free leaves its queue in the same critical
 * section in which its block becomes ready in the pool. So the block of a free that is in no queue
 * is in the pool.
 */
#include "interpose/arena/stream_frees.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "interpose/arena/stream_queues.h"
#include "interpose/context/capture.h"
#include "interpose/fences/fence_event.h"

enum { QUERIES_A_POLL = 16, QUEUES_A_POLL = 8 };
#define NAP_NS 20000L

/* A thread's pass over the queues. */
struct look {
    struct look *next; /* another thread's */
    CUcontext context; /* of the event that the thread asks about */
    size_t place;      /* of the queue that was examined last; the pass goes downwards */
    size_t queues;     /* how many queues are still to be examined */
    size_t queries;    /* how many events may still be queried */
};

/*
 * The lock guards everything, and is held across no driver call. A pool's lock is taken under it.
 */
struct bfc_stream_frees {
    pthread_mutex_t lock;
    struct stream_queues queues;
    struct stream_free *store; /* frees that are over, whose events can be used again */
    struct look *looks;
    size_t place; /* where the last poll ended */
    uint64_t next_number;
    uint64_t ready; /* atomic: frees that ever became ready */
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
    stream_queues_clear(&frees->queues);
    for (struct stream_free *one = frees->store, *next; one; one = next) {
        next = one->next;
        free(one);
    }
    pthread_mutex_destroy(&frees->lock);
    free(frees);
}

/* ---- freeing ---- */

static struct stream_free *take_stored_free(struct bfc_stream_frees *frees, CUcontext context) {
    pthread_mutex_lock(&frees->lock);
    struct stream_free **link = &frees->store;
    while (*link && ((*link)->context != context || (*link)->liveness != LIVE))
        link = &(*link)->next;
    struct stream_free *taken = *link;
    if (taken)
        *link = taken->next;
    pthread_mutex_unlock(&frees->lock);
    return taken;
}

/* Keeps a free for later use, unless its event is dead. The caller holds the lock. */
static void store_free(struct bfc_stream_frees *frees, struct stream_free *one) {
    if (one->liveness == DEAD) {
        free(one);
        return;
    }
    one->next = frees->store;
    frees->store = one;
}

/* Returns a free with an event of the context; NULL: there is none, and `result` is the error. */
static struct stream_free *take_or_make(const struct bfc_driver *driver,
                                        struct bfc_stream_frees *frees, CUcontext context,
                                        CUresult *result) {
    struct stream_free *one = take_stored_free(frees, context);
    *result = CUDA_SUCCESS;
    if (one)
        return one;
    one = calloc(1, sizeof *one);
    *result =
        one ? bfc_fence_event_make_handle(driver, context, &one->event) : CUDA_ERROR_OUT_OF_MEMORY;
    if (*result != CUDA_SUCCESS) {
        free(one);
        return NULL;
    }
    one->context = context;
    return one;
}

/*
 * Whether a stream captures. For the legacy stream, the driver answers with an error while a
 * blocking stream captures; that is not taken for a capture, since recording an event then fails by
 * itself.
 */
static bool stream_captures(const struct bfc_stream_calls *calls, CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return calls->is_capturing && calls->is_capturing(stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/*
 * Records the event, unless the stream captures. The gate keeps any capture from beginning between
 * the query and the record. But the stream may join a capture that is under way, so it is queried
 * again after the record. A captured free is an error (CUDA_ERROR_INVALID_VALUE), as it is in the
 * driver for memory that no graph has allocated.
 */
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

/* Returns the stream's id. If the driver gives none, the number is unique to this free, so that the
 * free gets a queue of its own. */
static uint64_t id_of_stream(const struct bfc_stream_calls *calls, CUstream stream,
                             uint64_t number) {
    unsigned long long id;
    return calls->get_id && calls->get_id(stream, &id) == CUDA_SUCCESS ? id
                                                                       : number | (uint64_t)1 << 63;
}

/* Draws the free's number, and reserves room in a queue. False: the host has no memory. */
static bool begin_free(struct bfc_stream_frees *frees, struct stream_free *one) {
    pthread_mutex_lock(&frees->lock);
    bool room = stream_queues_promise(&frees->queues);
    one->number = frees->next_number++;
    pthread_mutex_unlock(&frees->lock);
    return room;
}

static void queue_free(struct bfc_stream_frees *frees, struct stream_free *one, uint64_t stream,
                       struct stream_queue **spare) {
    pthread_mutex_lock(&frees->lock);
    one->rivalled = frees->next_number != one->number + 1;
    stream_queues_add(&frees->queues, stream, one, spare);
    pthread_mutex_unlock(&frees->lock);
}

static void abandon_free(struct bfc_stream_frees *frees, struct stream_free *one, bool begun) {
    pthread_mutex_lock(&frees->lock);
    if (begun)
        stream_queues_withdraw(&frees->queues);
    store_free(frees, one);
    pthread_mutex_unlock(&frees->lock);
}

static CUresult free_in_stream(struct bfc_arena *arena, struct stream_free *one,
                               const struct bfc_stream_calls *calls, CUstream stream,
                               struct stream_queue **spare) {
    struct bfc_stream_frees *frees = arena->stream_frees;
    uint64_t id = id_of_stream(calls, stream, one->number);
    CUresult result = record_event(calls, stream, one->event);
    if (result == CUDA_SUCCESS && bfc_pool_free_awaited(arena->pool, one->start) != BFC_OK)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        queue_free(frees, one, id, spare);
    else
        abandon_free(frees, one, true);
    return result;
}

CUresult bfc_stream_frees_free(const struct bfc_driver *driver, struct bfc_arena *arena,
                               CUdeviceptr pointer, const struct bfc_stream_calls *calls,
                               CUstream stream, CUcontext context) {
    CUresult result;
    struct stream_free *one = take_or_make(driver, arena->stream_frees, context, &result);
    if (!one)
        return result;
    struct stream_queue *spare = malloc(sizeof *spare);
    if (spare && begin_free(arena->stream_frees, one)) {
        one->start = pointer;
        result = free_in_stream(arena, one, calls, stream, &spare);
    } else {
        abandon_free(arena->stream_frees, one, false);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    free(spare);
    return result;
}

/* ---- looking ---- */

/* A copy of the free that a thread asks about, since the free itself may meanwhile be over and be
 * used anew. What follows from the copy's event stays true for the copy's number. */
struct question {
    uint64_t stream, number;
    CUevent event;
    CUcontext context;
    enum liveness liveness;
    bool rivalled;
};

/* Copies a free into `question`, at the cost of one of the thread's queries. False: `one` is NULL,
 * or the thread has no query left. The caller holds the lock. */
static bool ask_about(struct look *look, uint64_t stream, const struct stream_free *one,
                      struct question *question) {
    if (!one || !look->queries)
        return false;
    look->queries--;
    look->context = one->context;
    *question = (struct question){
        stream, one->number, one->event, one->context, (enum liveness)one->liveness, one->rivalled};
    return true;
}

/*
 * Asks about the last free of the next queue. The array's last queue takes the place of one that is
 * removed, so a thread that goes through the queues downwards misses none that was there when the
 * thread began.
 */
static bool ask_about_next_queue(struct bfc_stream_frees *frees, struct look *look,
                                 struct question *question) {
    const struct stream_queues *queues = &frees->queues;
    bool asked = false;
    pthread_mutex_lock(&frees->lock);
    if (look->queues && queues->count) {
        look->queues--;
        if (look->place == 0 || look->place > queues->count)
            look->place = queues->count;
        const struct stream_queue *queue = queues->all[--look->place];
        asked = ask_about(look, queue->stream, queue->last, question);
    }
    pthread_mutex_unlock(&frees->lock);
    return asked;
}

/* Asks about the stream's first free whose number is at least `from`. */
static bool ask_from(struct bfc_stream_frees *frees, struct look *look, uint64_t stream,
                     uint64_t from, struct question *question) {
    pthread_mutex_lock(&frees->lock);
    const struct stream_queue *queue = stream_queues_find(&frees->queues, stream);
    const struct stream_free *one = queue ? queue->first : NULL;
    while (one && one->number < from)
        one = one->next;
    bool asked = ask_about(look, stream, one, question);
    pthread_mutex_unlock(&frees->lock);
    return asked;
}

/* An event of a context that is about to end is not queried, and counts as not complete. */
static CUresult answer_question(const struct bfc_driver *driver, const struct question *question) {
    if (question->liveness == LIVE)
        return driver->cuEventQuery(question->event);
    return question->liveness == DEAD ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

/* Takes out the stream's first free if its number is at most `number`, and gives its block `fence`
 * in the pool. False: there is no such free. */
static bool finish_first(struct bfc_arena *arena, uint64_t stream, uint64_t number,
                         bfc_fence fence) {
    struct bfc_stream_frees *frees = arena->stream_frees;
    pthread_mutex_lock(&frees->lock);
    struct stream_free *one = stream_queues_take(&frees->queues, stream, number);
    if (one) {
        bfc_pool_ready(arena->pool, one->start, fence);
        bfc_store_release(&frees->ready, frees->ready + 1);
        store_free(frees, one);
    }
    pthread_mutex_unlock(&frees->lock);
    return one;
}

/*
 * Finishes the stream's frees up to the one in question. If their blocks become deferred,
 * has_deferred is set before that, for threads that look for deferred blocks meanwhile, and again
 * after it, for threads that have looked and cleared has_deferred in between.
 */
static void finish_frees(struct bfc_arena *arena, const struct question *question,
                         bfc_fence fence) {
    if (fence == BFC_DEFERRED_FENCE)
        bfc_store_seq_cst(&arena->has_deferred, true);
    while (finish_first(arena, question->stream, question->number, fence))
        ;
    if (fence == BFC_DEFERRED_FENCE)
        bfc_store_seq_cst(&arena->has_deferred, true);
}

/*
 * An event that has become part of a capture never shows whether its stream's work is complete. So
 * its block is deferred, like one freed during the capture, and gets a fence over the whole context
 * later. Any other error may pass, or the context ends.
 */
static CUresult settle_question(const struct bfc_driver *driver, struct bfc_arena *arena,
                                const struct question *question) {
    CUresult result = answer_question(driver, question);
    bool captured =
        result == CUDA_ERROR_CAPTURED_EVENT && arena->fences && question->context == arena->context;
    if (result == CUDA_SUCCESS || captured)
        finish_frees(arena, question, captured ? BFC_DEFERRED_FENCE : BFC_NO_FENCE);
    return captured ? CUDA_SUCCESS : result;
}

/*
 * Examines a queue whose last free is not complete, from its first free up to one that is not
 * complete either. Later frees are not complete then, unless they may have been recorded before
 * that one.
 */
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

/*
 * Begins a pass over all queues, or over a few from where the last poll ended. False: there is no
 * queue.
 */
static bool begin_look(struct bfc_stream_frees *frees, struct look *look, bool all) {
    pthread_mutex_lock(&frees->lock);
    size_t count = frees->queues.count;
    *look = (struct look){.next = frees->looks, .place = frees->place};
    look->queries = all ? SIZE_MAX : QUERIES_A_POLL;
    look->queues = all || count < QUEUES_A_POLL ? count : QUEUES_A_POLL;
    if (all)
        look->place = count;
    if (count)
        frees->looks = look;
    pthread_mutex_unlock(&frees->lock);
    return count;
}

static void end_look(struct bfc_stream_frees *frees, const struct look *look) {
    pthread_mutex_lock(&frees->lock);
    struct look **link = &frees->looks;
    while (*link != look)
        link = &(*link)->next;
    *link = look->next;
    frees->place = look->place;
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
    bool any = frees->queues.count;
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

/* ---- a context's end ---- */

static void set_liveness(struct stream_free *one, CUcontext context, enum liveness liveness) {
    for (; one; one = one->next)
        if (one->context == context && one->liveness != DEAD)
            one->liveness = (unsigned char)liveness;
}

/* Sets the liveness of the context's queued frees. The caller holds the lock. */
static void set_queued_liveness(struct bfc_stream_frees *frees, CUcontext context,
                                enum liveness liveness) {
    for (size_t i = 0; i < frees->queues.count; i++)
        set_liveness(frees->queues.all[i]->first, context, liveness);
    set_liveness(frees->store, context, liveness);
}

struct suspension {
    struct bfc_stream_frees *frees;
    CUcontext context;
};

/* Keeps the context's events from being queried from now on. Returns whether no query of such an
 * event is under way. */
static bool put_frees_aside(void *argument) {
    const struct suspension *suspension = argument;
    struct bfc_stream_frees *frees = suspension->frees;
    pthread_mutex_lock(&frees->lock);
    set_queued_liveness(frees, suspension->context, ENDING);
    const struct look *look = frees->looks;
    while (look && look->context != suspension->context)
        look = look->next;
    pthread_mutex_unlock(&frees->lock);
    return !look;
}

void bfc_stream_frees_suspend_context(struct bfc_stream_frees *frees, CUcontext context) {
    bfc_await(put_frees_aside, &(struct suspension){frees, context}, BFC_NS_PER_SECOND);
}

void bfc_stream_frees_resume_context(struct bfc_stream_frees *frees, CUcontext context) {
    pthread_mutex_lock(&frees->lock);
    set_queued_liveness(frees, context, LIVE);
    pthread_mutex_unlock(&frees->lock);
}

void bfc_stream_frees_forget_context(struct bfc_stream_frees *frees, CUcontext context) {
    pthread_mutex_lock(&frees->lock);
    set_queued_liveness(frees, context, DEAD);
    for (struct stream_free **link = &frees->store, *one; (one = *link);) {
        if (one->liveness != DEAD) {
            link = &one->next;
            continue;
        }
        *link = one->next;
        free(one);
    }
    pthread_mutex_unlock(&frees->lock);
}
