/*
 * Frees in the order of a stream: a queue for each stream, of frees whose events were recorded.
 *
 * A free draws its number before its event is recorded, and so after all use of its block was
 * submitted: of one stream, a complete event covers every free with a lower number, in whatever
 * order two threads record theirs. One thread at a time looks (`looking`); only it takes frees out
 * of the queues, so it needs no lock to query them.
 */
#include "interpose/arena/stream_frees.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "interpose/context/capture.h"
#include "interpose/fences/fence_event.h"

enum { QUERIES_A_LOOK = 16 };
enum { LONGEST_WAIT_NS = 1000000000 }; /* for another thread's queries */
#define NAP_NS 20000L

struct stream_free {
    struct stream_free *next; /* in its queue, or in the store */
    CUevent event;
    CUcontext context;  /* the event's */
    unsigned char fate; /* atomic, changed under the lock: the event's, an enum fate */
    CUdeviceptr start;
    uint64_t number;
};

struct queue {
    struct queue *next;
    uint64_t stream; /* its id, which no other stream ever has */
    struct stream_free *first, **tail, *newest;
};

struct bfc_stream_frees {
    pthread_mutex_t lock;
    struct queue *queues;      /* who was looked at first stands last */
    struct stream_free *store; /* with events that can be used again */
    uint64_t next_number;
    uint64_t ready; /* frees that ever became ready */
    bool looking;
    uint64_t looked; /* how often a thread has ended its look */
};

struct bfc_stream_frees *bfc_stream_frees_create(void) {
    struct bfc_stream_frees *frees = calloc(1, sizeof *frees);
    if (frees)
        pthread_mutex_init(&frees->lock, NULL);
    return frees;
}

static void free_all(struct stream_free *gone) {
    while (gone) {
        struct stream_free *next = gone->next;
        free(gone);
        gone = next;
    }
}

void bfc_stream_frees_destroy(struct bfc_stream_frees *frees) {
    if (!frees)
        return;
    for (struct queue *queue = frees->queues, *next; queue; queue = next) {
        next = queue->next;
        free_all(queue->first);
        free(queue);
    }
    free_all(frees->store);
    pthread_mutex_destroy(&frees->lock);
    free(frees);
}

/* ---- freeing ---- */

static enum fate fate_of_free(const struct stream_free *one) {
    return (enum fate)bfc_load_acquire(&one->fate);
}

static struct stream_free *take_stored_free(struct bfc_stream_frees *frees, CUcontext context) {
    pthread_mutex_lock(&frees->lock);
    struct stream_free **link = &frees->store;
    while (*link && ((*link)->context != context || fate_of_free(*link) != LIVE))
        link = &(*link)->next;
    struct stream_free *taken = *link;
    if (taken)
        *link = taken->next;
    pthread_mutex_unlock(&frees->lock);
    return taken;
}

static void store_free(struct bfc_stream_frees *frees, struct stream_free *one) {
    pthread_mutex_lock(&frees->lock);
    bool dead = fate_of_free(one) == DEAD;
    if (!dead) {
        one->next = frees->store;
        frees->store = one;
    }
    pthread_mutex_unlock(&frees->lock);
    if (dead)
        free(one);
}

/* With an event of the context; NULL, and the error. */
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
 * The legacy stream answers with an error while a blocking stream captures. The record then has the
 * same answer as a free.
 */
static bool stream_captures(const struct bfc_stream_calls *calls, CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return calls->is_capturing && calls->is_capturing(stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/*
 * No capture begins between the look and the record. The stream may still be drawn into one that is
 * under way: hence the second look, after which the free counts as later than that. A node that
 * frees memory must be given a graph's own: for ours the driver has this answer.
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

static struct queue *find_queue(struct bfc_stream_frees *frees, uint64_t stream) {
    struct queue *queue = frees->queues;
    while (queue && queue->stream != stream)
        queue = queue->next;
    return queue;
}

/* Under the lock. Queues are made before they are needed, so that nothing can fail then. */
static struct queue *open_queue(struct bfc_stream_frees *frees, uint64_t stream,
                                struct queue **spare) {
    struct queue *queue = find_queue(frees, stream);
    if (queue)
        return queue;
    queue = *spare;
    *spare = NULL;
    *queue = (struct queue){.next = frees->queues, .stream = stream, .tail = &queue->first};
    frees->queues = queue;
    return queue;
}

static void enlist(struct bfc_stream_frees *frees, struct stream_free *one, uint64_t stream,
                   struct queue *spare) {
    pthread_mutex_lock(&frees->lock);
    struct queue *queue = open_queue(frees, stream, &spare);
    one->next = NULL;
    *queue->tail = one;
    queue->tail = &one->next;
    if (!queue->newest || queue->newest->number < one->number)
        queue->newest = one;
    pthread_mutex_unlock(&frees->lock);
    free(spare);
}

/* A stream whose id cannot be had shares its queue with nobody. */
static uint64_t id_of_stream(const struct bfc_stream_calls *calls, CUstream stream,
                             uint64_t number) {
    unsigned long long id;
    return calls->get_id && calls->get_id(stream, &id) == CUDA_SUCCESS ? id
                                                                       : number | (uint64_t)1 << 63;
}

static CUresult free_in_stream(struct bfc_arena *arena, struct stream_free *one,
                               const struct bfc_stream_calls *calls, CUstream stream,
                               struct queue *spare) {
    struct bfc_stream_frees *frees = arena->stream_frees;
    pthread_mutex_lock(&frees->lock);
    one->number = frees->next_number++;
    pthread_mutex_unlock(&frees->lock);
    uint64_t id = id_of_stream(calls, stream, one->number);
    CUresult result = record_event(calls, stream, one->event);
    if (result == CUDA_SUCCESS && bfc_pool_free_awaited(arena->pool, one->start) != BFC_OK)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        enlist(frees, one, id, spare);
    } else {
        store_free(frees, one);
        free(spare);
    }
    return result;
}

CUresult bfc_stream_frees_free(const struct bfc_driver *driver, struct bfc_arena *arena,
                               CUdeviceptr pointer, const struct bfc_stream_calls *calls,
                               CUstream stream, CUcontext context) {
    CUresult result;
    struct stream_free *one = take_or_make(driver, arena->stream_frees, context, &result);
    if (!one)
        return result;
    struct queue *spare = malloc(sizeof *spare);
    if (!spare) {
        store_free(arena->stream_frees, one);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    one->start = pointer;
    return free_in_stream(arena, one, calls, stream, spare);
}

/* ---- looking ---- */

/* Moves the frees up to this number out of the queue; under the lock. */
static struct stream_free *take_out_free(struct queue *queue, uint64_t number) {
    struct stream_free *taken = NULL;
    queue->newest = NULL;
    for (struct stream_free **link = &queue->first, *one; (one = *link);) {
        if (one->number <= number) {
            *link = one->next;
            one->next = taken;
            taken = one;
            continue;
        }
        if (!queue->newest || queue->newest->number < one->number)
            queue->newest = one;
        link = &one->next;
    }
    queue->tail = &queue->first;
    while (*queue->tail)
        queue->tail = &(*queue->tail)->next;
    return taken;
}

static void drop_if_empty(struct bfc_stream_frees *frees, struct queue *queue) {
    if (queue->first)
        return;
    struct queue **link = &frees->queues;
    while (*link != queue)
        link = &(*link)->next;
    *link = queue->next;
    free(queue);
}

/* The frees of this queue up to the number are done with: their blocks have this fence. */
static void finish_frees(struct bfc_arena *arena, struct queue *queue, uint64_t number,
                         bfc_fence fence) {
    struct bfc_stream_frees *frees = arena->stream_frees;
    pthread_mutex_lock(&frees->lock);
    struct stream_free *taken = take_out_free(queue, number);
    drop_if_empty(frees, queue);
    pthread_mutex_unlock(&frees->lock);
    while (taken) {
        struct stream_free *one = taken;
        taken = one->next;
        bfc_pool_ready(arena->pool, one->start, fence);
        bfc_fetch_add_release(&frees->ready, 1);
        store_free(frees, one);
    }
}

/* Of a context that is about to end nothing is known, and no call is made with its events. */
static CUresult query_event(const struct bfc_driver *driver, const struct stream_free *one) {
    enum fate fate = fate_of_free(one);
    if (fate == LIVE)
        return driver->cuEventQuery(one->event);
    return fate == DEAD ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

/*
 * Looks at one free, and at those below its number with it. An event that was drawn into a capture
 * after all tells nothing, and never will: its block is as if it had been freed during that, so
 * that a fence over all of the context will cover it. Any other error may pass, or the context
 * ends.
 */
static bool look_at_queue(const struct bfc_driver *driver, struct bfc_arena *arena,
                          struct queue *queue, const struct stream_free *one) {
    CUresult result = query_event(driver, one);
    bool captured =
        result == CUDA_ERROR_CAPTURED_EVENT && arena->fences && one->context == arena->context;
    if (result != CUDA_SUCCESS && !captured)
        return false;
    finish_frees(arena, queue, one->number, captured ? BFC_DEFERRED_FENCE : BFC_NO_FENCE);
    if (captured)
        bfc_store_seq_cst(&arena->has_deferred, true);
    return true;
}

/* The queue that was looked at least lately, its newest and its first free; NULL: there is none. */
static struct queue *next_queue(struct bfc_stream_frees *frees, struct stream_free **newest,
                                struct stream_free **first) {
    pthread_mutex_lock(&frees->lock);
    struct queue *queue = frees->queues, **end = &frees->queues;
    if (queue) {
        *newest = queue->newest;
        *first = queue->first;
        while (*end)
            end = &(*end)->next;
        *end = queue;
        frees->queues = queue->next;
        queue->next = NULL;
    }
    pthread_mutex_unlock(&frees->lock);
    return queue;
}

static bool look_at_queues(const struct bfc_driver *driver, struct bfc_arena *arena) {
    bool found = false;
    struct stream_free *newest = NULL, *first = NULL;
    for (int queries = QUERIES_A_LOOK; queries > 0; queries -= 2) {
        struct queue *queue = next_queue(arena->stream_frees, &newest, &first);
        if (!queue)
            break;
        if (look_at_queue(driver, arena, queue, newest) ||
            (first != newest && look_at_queue(driver, arena, queue, first)))
            found = true;
    }
    return found;
}

/* False: there is nothing to look at, or, `busy`, another thread looks. */
static bool begin_looking(struct bfc_stream_frees *frees, bool *busy) {
    pthread_mutex_lock(&frees->lock);
    *busy = frees->queues && frees->looking;
    bool begun = frees->queues && !frees->looking;
    if (begun)
        frees->looking = true;
    pthread_mutex_unlock(&frees->lock);
    return begun;
}

static void end_looking(struct bfc_stream_frees *frees) {
    pthread_mutex_lock(&frees->lock);
    frees->looking = false;
    frees->looked++;
    pthread_mutex_unlock(&frees->lock);
}

static bool look(const struct bfc_driver *driver, struct bfc_arena *arena, bool *busy) {
    if (!begin_looking(arena->stream_frees, busy))
        return false;
    CUstreamCaptureMode mode = bfc_capture_relax(driver);
    bool found = look_at_queues(driver, arena);
    bfc_capture_restore(driver, mode);
    end_looking(arena->stream_frees);
    return found;
}

bool bfc_stream_frees_poll(const struct bfc_driver *driver, struct bfc_arena *arena) {
    bool busy;
    return look(driver, arena, &busy);
}

static uint64_t count_looks(struct bfc_stream_frees *frees, bool begun) {
    pthread_mutex_lock(&frees->lock);
    uint64_t looks = frees->looked + (begun && frees->looking);
    pthread_mutex_unlock(&frees->lock);
    return looks;
}

/* One that began after this call did will do, whoever makes it. */
void bfc_stream_frees_settle(const struct bfc_driver *driver, struct bfc_arena *arena) {
    struct bfc_stream_frees *frees = arena->stream_frees;
    uint64_t start = bfc_now_ns(), before = count_looks(frees, true);
    bool busy;
    while (look(driver, arena, &busy) ||
           (busy && count_looks(frees, false) <= before && bfc_now_ns() - start < LONGEST_WAIT_NS))
        if (busy)
            bfc_nap(NAP_NS);
}

static bool is_any(struct bfc_stream_frees *frees) {
    pthread_mutex_lock(&frees->lock);
    bool any = frees->queues;
    pthread_mutex_unlock(&frees->lock);
    return any;
}

bool bfc_stream_frees_wait(const struct bfc_driver *driver, struct bfc_arena *arena,
                           uint64_t timeout_ns) {
    struct bfc_stream_frees *frees = arena->stream_frees;
    uint64_t before = bfc_load_acquire(&frees->ready), start = bfc_now_ns();
    while (!bfc_stream_frees_poll(driver, arena) && bfc_load_acquire(&frees->ready) == before) {
        if (!is_any(frees) || bfc_now_ns() - start >= timeout_ns)
            return false;
        bfc_nap(NAP_NS);
    }
    return true;
}

/* ---- a context's end ---- */

static void set_fate(struct stream_free *one, CUcontext context, enum fate fate) {
    for (; one; one = one->next)
        if (one->context == context && fate_of_free(one) != DEAD)
            bfc_store_release(&one->fate, (unsigned char)fate);
}

/* Under the lock. */
static void set_fates(struct bfc_stream_frees *frees, CUcontext context, enum fate fate) {
    for (struct queue *queue = frees->queues; queue; queue = queue->next)
        set_fate(queue->first, context, fate);
    set_fate(frees->store, context, fate);
}

/* A look that begins later sees the fates. */
static bool put_frees_aside(struct bfc_stream_frees *frees, CUcontext context) {
    pthread_mutex_lock(&frees->lock);
    set_fates(frees, context, ENDING);
    bool used = frees->looking;
    pthread_mutex_unlock(&frees->lock);
    return !used;
}

void bfc_stream_frees_suspend_context(struct bfc_stream_frees *frees, CUcontext context) {
    uint64_t start = bfc_now_ns();
    while (!put_frees_aside(frees, context) && bfc_now_ns() - start < LONGEST_WAIT_NS)
        bfc_nap(NAP_NS);
}

void bfc_stream_frees_resume_context(struct bfc_stream_frees *frees, CUcontext context) {
    pthread_mutex_lock(&frees->lock);
    set_fates(frees, context, LIVE);
    pthread_mutex_unlock(&frees->lock);
}

void bfc_stream_frees_forget_context(struct bfc_stream_frees *frees, CUcontext context) {
    pthread_mutex_lock(&frees->lock);
    set_fates(frees, context, DEAD);
    for (struct stream_free **link = &frees->store, *one; (one = *link);) {
        if (fate_of_free(one) != DEAD) {
            link = &one->next;
            continue;
        }
        *link = one->next;
        free(one);
    }
    pthread_mutex_unlock(&frees->lock);
}
