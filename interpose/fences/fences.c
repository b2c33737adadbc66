/*
 * Fences: a ring buffer of the pending fences in the order of their numbers, and a list of CUDA
 * events for reuse.
 *
 * A fence gets its number and its entry in the ring before its events are recorded. While it is not
 * recorded, or a thread uses its events (pins it), it stays in the ring, and so do all later
 * fences. A fence whose record failed is void: no block has it, its events are ignored, and it
 * delays no other fence.
 *
 * The lock of the fences is a part of the gate (interpose/context/capture.h): a fence counts as
 * inside the gate while it has a number but is not recorded, or while a context is being made to
 * wait for it. So a free takes one lock, once, and records its events without it.
 */
#include "interpose/fences/fences.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "interpose/context/capture.h"
#include "interpose/fences/fence_event.h"

enum { QUERIES_A_POLL = 8, FIRST_CAPACITY = 16 };
#define NAP_NS 20000L /* nanoseconds that a waiting thread sleeps between two polls */

/* The state of a fence; while it is RECORDING, a capture must not begin. */
enum state { RECORDING, RECORDED, VOID };

/* A context that is about to end; there is one entry for each thread that is ending it. */
struct ending {
    CUcontext context;
    struct ending *next;
};

struct entry {
    /* the events of a pending fence; in an unused entry NULL, or one event that can be recorded
     * again */
    struct event *events;
    unsigned pins; /* how many threads use the events now; meanwhile the fence stays in the ring */
};

/* The ring holds the fences from `first` to next - 1, each in the entry ring[number & (capacity -
 * 1)]. Those up to `done` are complete, and still in the ring only because one of them is pinned.
 * The fences after `done` are pending; neither the first nor the last of them is void. The lock of
 * `gate_part` guards all fields except `ordered`. */
struct bfc_fences {
    struct bfc_gate_part gate_part; /* the first field, so that its address is also the struct's */
    unsigned ordering;              /* how many threads are making a context wait for a fence */
    unsigned looking;               /* how many threads are querying fences */
    uint64_t looked;                /* how many times any thread has finished querying fences */
    bfc_fence first, done, next;
    struct entry *ring;
    uint64_t capacity; /* number of entries in the ring, a power of two */
    /* how many pending fences cover another context than `usual`, or several contexts */
    size_t mixed;
    /* the first context of the fence that was last added to an empty ring */
    CUcontext usual;
    /* the `step` (struct look) of the last poll's last successful query; 1: it had none */
    uint64_t stride;
    bfc_fence seen_recorded; /* no fence below this number is RECORDING; may lag behind */
    bfc_fence handed_out;    /* the highest fence passed to bfc_fences_announce */
    /* atomic: the highest fence that the context which owns the pool was made to wait for */
    bfc_fence ordered;
    struct event *store; /* unused events, besides those in unused entries of the ring */
    struct ending *endings;
    unsigned makers; /* how many threads are creating events */
};

static void lock_fences(struct bfc_fences *fences) {
    pool_lock(&fences->gate_part.lock);
}

static void unlock_fences(struct bfc_fences *fences) {
    pool_unlock(&fences->gate_part.lock);
}

static struct entry *entry_of(const struct bfc_fences *fences, bfc_fence fence) {
    return &fences->ring[fence & (fences->capacity - 1)];
}

static bool double_ring(struct bfc_fences *fences) {
    struct entry *ring = calloc(2 * fences->capacity, sizeof *ring);
    if (!ring)
        return false;
    for (bfc_fence fence = fences->first; fence < fences->next; fence++)
        ring[fence & (2 * fences->capacity - 1)] = *entry_of(fences, fence);
    free(fences->ring);
    fences->ring = ring;
    fences->capacity *= 2;
    return true;
}

static bool is_mixed(const struct bfc_fences *fences, const struct event *events) {
    return events->next || events->context != fences->usual;
}

static bool is_ending(const struct bfc_fences *fences, CUcontext context) {
    const struct ending *ending = fences->endings;
    while (ending && ending->context != context)
        ending = ending->next;
    return ending;
}

static enum state state_of(const struct entry *entry) {
    return (enum state)bfc_load_acquire(&entry->events->state);
}

/* Whether no fence is being recorded, and no context is being made to wait for one. The caller
 * holds the lock. */
static bool nothing_inside(struct bfc_gate_part *gate_part) {
    struct bfc_fences *fences = (struct bfc_fences *)gate_part;
    if (fences->seen_recorded < fences->first)
        fences->seen_recorded = fences->first;
    while (fences->seen_recorded < fences->next &&
           state_of(entry_of(fences, fences->seen_recorded)) != RECORDING)
        fences->seen_recorded++;
    return fences->seen_recorded == fences->next && fences->ordering == 0;
}

static void remove_ending(struct bfc_fences *fences, CUcontext context) {
    struct ending **link = &fences->endings;
    while (*link && (*link)->context != context)
        link = &(*link)->next;
    struct ending *removed = *link;
    if (removed)
        *link = removed->next;
    free(removed);
}

struct bfc_fences *bfc_fences_create(void) {
    struct bfc_fences *fences = calloc(1, sizeof *fences);
    struct entry *ring = calloc(FIRST_CAPACITY, sizeof *ring);
    if (!fences || !ring) {
        free(fences);
        free(ring);
        return NULL;
    }
    fences->first = fences->next = fences->stride = 1;
    fences->ring = ring;
    fences->capacity = FIRST_CAPACITY;
    bfc_gate_part_add(&fences->gate_part, nothing_inside);
    return fences;
}

void bfc_fences_destroy(struct bfc_fences *fences) {
    if (!fences)
        return;
    bfc_gate_part_remove(&fences->gate_part);
    for (uint64_t i = 0; i < fences->capacity; i++)
        bfc_fence_events_free(fences->ring[i].events);
    bfc_fence_events_free(fences->store);
    while (fences->endings)
        remove_ending(fences, fences->endings->context);
    free(fences->ring);
    free(fences);
}

static NOINLINE void clear_out(struct bfc_fences *fences, struct entry *entry) {
    bfc_fence_events_store(&fences->store, entry->events);
    entry->events = NULL;
}

/* Removes the first or the last fence from the ring. If the fence has one event, which is live,
 * that event stays in the fence's entry, for the next fence that gets this entry. */
static ALWAYS_INLINE void drop_entry(struct bfc_fences *fences, struct entry *entry) {
    if (UNLIKELY(fences->mixed))
        fences->mixed -= is_mixed(fences, entry->events);
    if (UNLIKELY(entry->events->next || bfc_fence_event_liveness(entry->events) != LIVE))
        clear_out(fences, entry);
}

/* Notes that the fences up to `fence`, or only those before the first that is still being recorded,
 * are complete; void fences right behind them count as complete too. Then drops complete fences
 * from the ring, up to the first that a thread has pinned. */
static NOINLINE void retire_up_to(struct bfc_fences *fences, bfc_fence fence) {
    enum state state;
    for (; fences->done + 1 < fences->next; fences->done++) {
        state = state_of(entry_of(fences, fences->done + 1));
        if (fences->done < fence ? state == RECORDING : state != VOID)
            break;
    }
    while (fences->first <= fences->done && !entry_of(fences, fences->first)->pins)
        drop_entry(fences, entry_of(fences, fences->first++));
}

/* Removes void fences at the end of the ring, so that frees that fail repeatedly do not fill it
 * behind one incomplete fence. The numbers of the void fences are used again, since no block has
 * them. */
static void drop_void_lasts(struct bfc_fences *fences) {
    while (fences->next > fences->done + 1 && state_of(entry_of(fences, fences->next - 1)) == VOID)
        drop_entry(fences, entry_of(fences, --fences->next));
    if (fences->seen_recorded > fences->next)
        fences->seen_recorded = fences->next;
}

/* Takes one unused event for each context. NULL: there are too few, and none is taken. The caller
 * holds the lock. */
static struct event *take_all_stored(struct bfc_fences *fences, const CUcontext *contexts,
                                     size_t count) {
    struct event *taken = NULL;
    for (size_t i = 0; i < count; i++)
        if (!bfc_fence_events_take(&fences->store, contexts[i], &taken)) {
            bfc_fence_events_store(&fences->store, taken);
            return NULL;
        }
    return taken;
}

/* Counts the caller among `makers`, so that it may create events in these contexts. A thread that
 * ends a context waits until `makers` is 0. False: one of the contexts is about to end, and no
 * event may be created in it. */
static bool begin_making(struct bfc_fences *fences, const CUcontext *contexts, size_t count) {
    bool may = true;
    lock_fences(fences);
    for (size_t i = 0; i < count && may; i++)
        may = !is_ending(fences, contexts[i]);
    fences->makers += may;
    unlock_fences(fences);
    return may;
}

/* Creates an event for each context, and stores them as unused. */
static CUresult stock_up(struct bfc_fences *fences, const struct bfc_driver *driver,
                         const CUcontext *contexts, size_t count) {
    struct event *made = NULL;
    CUresult result = CUDA_SUCCESS;
    if (!begin_making(fences, contexts, count))
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = bfc_fence_events_make(driver, contexts[i], &made);
    lock_fences(fences);
    bfc_fence_events_store(&fences->store, made);
    fences->makers--;
    unlock_fences(fences);
    return result;
}

/* Gives an entry of the ring one event for each context. False: there are too few unused events. */
static NOINLINE bool fit_out(struct bfc_fences *fences, struct entry *entry,
                             const CUcontext *contexts, size_t count) {
    clear_out(fences, entry);
    entry->events = take_all_stored(fences, contexts, count);
    return entry->events;
}

/* Gives a new fence over these contexts its number and its entry in the ring. CUDA_ERROR_NOT_READY:
 * there are too few unused events. The caller holds the lock. */
static inline CUresult draw_fence(struct bfc_fences *fences, const CUcontext *contexts,
                                  size_t count, struct event **events, bfc_fence *fence) {
    if (UNLIKELY(fences->next - fences->first == fences->capacity) && !double_ring(fences))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct entry *entry = entry_of(fences, fences->next);
    if (UNLIKELY(!entry->events || count != 1 || entry->events->context != contexts[0]) &&
        !fit_out(fences, entry, contexts, count))
        return CUDA_ERROR_NOT_READY;
    struct event *first = entry->events;
    first->state = RECORDING;
    if (fences->first == fences->next)
        fences->usual = first->context;
    fences->mixed += is_mixed(fences, first);
    *events = first;
    *fence = fences->next++;
    return CUDA_SUCCESS;
}

/* Gives a new fence its number while the gate is open. Returns
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED if something captures. */
static inline CUresult draw_inside(struct bfc_fences *fences, const CUcontext *contexts,
                                   size_t count, struct event **events, bfc_fence *fence) {
    bool shut, open;
    do {
        lock_fences(fences);
        shut = fences->gate_part.shut;
        open = bfc_gate_part_is_open(&fences->gate_part);
        CUresult result = open ? draw_fence(fences, contexts, count, events, fence)
                               : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        unlock_fences(fences);
        if (LIKELY(open))
            return result;
    } while (shut && bfc_gate_part_await());
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/* Makes a fence void, because not all of its events could be recorded. The recorded ones alone do
 * not show that all work with the block is complete. */
static NOINLINE void make_void(struct bfc_fences *fences, struct event *events) {
    lock_fences(fences);
    bfc_store_release(&events->state, VOID);
    drop_void_lasts(fences);
    retire_up_to(fences, fences->done);
    unlock_fences(fences);
}

CUresult bfc_fences_record(struct bfc_fences *fences, const struct bfc_driver *driver,
                           const CUcontext *contexts, size_t count, bfc_fence *fence) {
    struct event *events = NULL;
    bfc_fence drawn = BFC_NO_FENCE;
    CUresult result;
    /* another thread may take the events that this thread has made; then this one makes more */
    while ((result = draw_inside(fences, contexts, count, &events, &drawn)) == CUDA_ERROR_NOT_READY)
        if ((result = stock_up(fences, driver, contexts, count)) != CUDA_SUCCESS)
            return result;
    if (result != CUDA_SUCCESS || !events)
        return result;
    result = bfc_fence_events_record(driver, events);
    if (UNLIKELY(result != CUDA_SUCCESS)) {
        make_void(fences, events);
        return result;
    }
    bfc_store_release(&events->state, RECORDED);
    *fence = drawn;
    return result;
}

/* Pins a fence and returns its events. NULL: the fence is not pending, or not recorded yet. The
 * caller holds the lock. */
static struct event *pin_locked(struct bfc_fences *fences, bfc_fence fence) {
    if (fence <= fences->done || fence >= fences->next ||
        state_of(entry_of(fences, fence)) != RECORDED)
        return NULL;
    entry_of(fences, fence)->pins++;
    return entry_of(fences, fence)->events;
}

static struct event *pin_event(struct bfc_fences *fences, bfc_fence fence) {
    lock_fences(fences);
    struct event *events = pin_locked(fences, fence);
    unlock_fences(fences);
    return events;
}

/* Unpins a fence. The fence is still in the ring, because a pinned one is not dropped. */
static void unpin_locked(struct bfc_fences *fences, bfc_fence fence, bool complete) {
    entry_of(fences, fence)->pins--;
    /* if all pending fences are of one context, a complete one implies that those before it are
     * complete */
    if (fence <= fences->done || (complete && (fences->mixed == 0 || fence == fences->done + 1)))
        retire_up_to(fences, fence);
}

static void unpin_event(struct bfc_fences *fences, bfc_fence fence, bool complete) {
    lock_fences(fences);
    unpin_locked(fences, fence, complete);
    unlock_fences(fences);
}

/* The next query of a poll: of the fence whose number is the last complete one plus `step`. The
 * first step is the `stride` of struct bfc_fences; a success doubles the step, a failure sets it to
 * 1. */
struct look {
    /* the events of `fence`, which stays in the ring meanwhile (pin_locked); NULL: this poll makes
     * no further query */
    struct event *events;
    bfc_fence fence;
    uint64_t step;
};

static void aim_look(struct bfc_fences *fences, struct look *look) {
    uint64_t pending = fences->next - fences->done - 1;
    if (look->step > pending)
        look->step = pending;
    if (fences->mixed || look->step == 0)
        look->step = 1;
    look->fence = fences->done + look->step;
    look->events = pin_locked(fences, look->fence);
    /* the fence that is `step` ahead has no events yet, so the first pending one is queried */
    if (!look->events && look->step > 1) {
        look->step = 1;
        look->fence = fences->done + 1;
        look->events = pin_locked(fences, look->fence);
    }
}

static void begin_look(struct bfc_fences *fences, struct look *look) {
    lock_fences(fences);
    fences->looking++;
    look->step = fences->stride;
    fences->stride = 1;
    aim_look(fences, look);
    unlock_fences(fences);
}

static void continue_look(struct bfc_fences *fences, struct look *look, bool complete) {
    lock_fences(fences);
    unpin_locked(fences, look->fence, complete);
    look->events = NULL;
    if (complete)
        fences->stride = look->step;
    if (complete || look->step > 1) {
        look->step = complete ? 2 * look->step : 1;
        aim_look(fences, look);
    }
    unlock_fences(fences);
}

static bfc_fence end_look(struct bfc_fences *fences, const struct look *look) {
    lock_fences(fences);
    if (look->events)
        unpin_locked(fences, look->fence, false);
    fences->looking--;
    fences->looked++;
    bfc_fence complete = fences->done;
    unlock_fences(fences);
    return complete;
}

static uint64_t read_number(struct bfc_fences *fences, const uint64_t *field) {
    lock_fences(fences);
    uint64_t number = *field;
    unlock_fences(fences);
    return number;
}

bfc_fence bfc_fences_known(struct bfc_fences *fences) {
    return read_number(fences, &fences->done);
}

bfc_fence bfc_fences_poll(struct bfc_fences *fences, const struct bfc_driver *driver) {
    if (!bfc_gate_enter())
        return bfc_fences_known(fences);
    CUstreamCaptureMode mode = bfc_capture_relax(driver);
    struct look look;
    begin_look(fences, &look);
    for (int queries = 0; look.events && queries < QUERIES_A_POLL; queries++)
        continue_look(fences, &look, bfc_fence_events_query(driver, look.events) == CUDA_SUCCESS);
    bfc_fence complete = end_look(fences, &look);
    bfc_capture_restore(driver, mode);
    bfc_gate_leave();
    return complete;
}

struct polls {
    struct bfc_fences *fences;
    uint64_t begun;
};

static bool have_ended(void *argument) {
    const struct polls *polls = argument;
    return read_number(polls->fences, &polls->fences->looked) >= polls->begun;
}

bool bfc_fences_await_polls(struct bfc_fences *fences) {
    struct polls polls = {.fences = fences};
    lock_fences(fences);
    bool any = fences->looking;
    polls.begun = fences->looked + fences->looking;
    unlock_fences(fences);
    if (any)
        bfc_await(have_ended, &polls, BFC_NS_PER_SECOND);
    return any;
}

/* Waits for the events. If the context of one is about to end, sleeps a little instead and returns
 * CUDA_ERROR_NOT_READY. */
static CUresult synchronize_events(const struct bfc_driver *driver, struct event *events) {
    CUresult result = bfc_fence_events_synchronize(driver, events);
    if (result == CUDA_ERROR_NOT_READY)
        bfc_nap(NAP_NS);
    return result;
}

static bfc_fence wait_until_deadline(struct bfc_fences *fences, const struct bfc_driver *driver,
                                     bfc_fence fence, uint64_t timeout_ns) {
    uint64_t start = bfc_now_ns();
    struct bfc_bounded_wait patience = bfc_bounded_wait_until(start + timeout_ns, start, NAP_NS);
    bfc_fence complete;
    while ((complete = bfc_fences_poll(fences, driver)) < fence && bfc_bounded_wait_nap(&patience))
        ;
    return complete;
}

/* Waits for the first pending fence. If it is not recorded yet, sleeps a little, since another
 * thread is about to record it. */
static CUresult wait_for_first(struct bfc_fences *fences, const struct bfc_driver *driver) {
    bfc_fence first = bfc_fences_known(fences) + 1;
    struct event *events = pin_event(fences, first);
    if (!events) {
        bfc_nap(NAP_NS);
        return CUDA_SUCCESS;
    }
    /* This wait is outside the gate, so the process's first capture may begin meanwhile. Relaxed
     * mode keeps the wait from invalidating that capture. */
    CUstreamCaptureMode mode = bfc_capture_relax_now(driver);
    CUresult result = synchronize_events(driver, events);
    bfc_capture_restore(driver, mode);
    unpin_event(fences, first, result == CUDA_SUCCESS);
    return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
}

bfc_fence bfc_fences_wait(struct bfc_fences *fences, const struct bfc_driver *driver,
                          bfc_fence fence, uint64_t timeout_ns, CUresult *error) {
    CUresult result = CUDA_SUCCESS;
    if (timeout_ns != UINT64_MAX)
        return wait_until_deadline(fences, driver, fence, timeout_ns);
    while (bfc_fences_poll(fences, driver) < fence && result == CUDA_SUCCESS &&
           bfc_fences_known(fences) < bfc_fences_last(fences))
        result = wait_for_first(fences, driver);
    if (error)
        *error = result;
    return bfc_fences_known(fences);
}

CUresult bfc_fences_synchronize(struct bfc_fences *fences, const struct bfc_driver *driver,
                                bfc_fence fence) {
    CUresult result = CUDA_ERROR_NOT_READY;
    struct event *events;
    while (result == CUDA_ERROR_NOT_READY && (events = pin_event(fences, fence))) {
        result = synchronize_events(driver, events);
        unpin_event(fences, fence, result == CUDA_SUCCESS);
    }
    return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
}

void bfc_fences_pass(struct bfc_fences *fences, CUcontext context, bfc_fence last) {
    lock_fences(fences);
    if (fences->mixed == 0 && fences->usual == context)
        retire_up_to(fences, last);
    unlock_fences(fences);
}

bfc_fence bfc_fences_last(struct bfc_fences *fences) {
    lock_fences(fences);
    bfc_fence last = fences->next - 1;
    while (last > fences->done && state_of(entry_of(fences, last)) != RECORDED)
        last--;
    unlock_fences(fences);
    return last;
}

/* Does nothing if the context that owns the pool already waits for this fence or a later one
 * (`ordered`). That one was announced, so `handed_out` is already at least as high. */
bool bfc_fences_announce(struct bfc_fences *fences, bfc_fence fence, struct bfc_order *order) {
    *order = (struct bfc_order){.fence = fence};
    if (fence <= bfc_load_acquire(&fences->ordered))
        return true;
    lock_fences(fences);
    bool open = bfc_gate_part_is_open(&fences->gate_part);
    if (fence > fences->handed_out)
        fences->handed_out = fence;
    if (open && (order->events = pin_locked(fences, fence)))
        fences->ordering++;
    unlock_fences(fences);
    return open;
}

bfc_fence bfc_fences_announced(struct bfc_fences *fences) {
    return read_number(fences, &fences->handed_out);
}

static void end_order(struct bfc_fences *fences, const struct bfc_order *order, bool ordered) {
    lock_fences(fences);
    fences->ordering--;
    unpin_locked(fences, order->fence, false);
    if (ordered && order->fence > fences->ordered)
        bfc_store_release(&fences->ordered, order->fence);
    unlock_fences(fences);
}

void bfc_fences_retract(struct bfc_fences *fences, const struct bfc_order *order) {
    if (order->events)
        end_order(fences, order, false);
}

CUresult bfc_fences_order(struct bfc_fences *fences, const struct bfc_driver *driver,
                          CUcontext context, const struct bfc_order *order) {
    if (!order->events)
        return CUDA_SUCCESS;
    CUresult result = bfc_fence_events_order(driver, context, order->events);
    end_order(fences, order, result == CUDA_SUCCESS);
    return result;
}

/* Removes events that are not live from those entries of the ring that hold no pending fence. */
static void clear_idle(struct bfc_fences *fences) {
    for (bfc_fence fence = fences->next; fence < fences->first + fences->capacity; fence++) {
        struct entry *entry = entry_of(fences, fence);
        if (entry->events && bfc_fence_event_liveness(entry->events) != LIVE)
            clear_out(fences, entry);
    }
}

static void set_all_liveness(struct bfc_fences *fences, CUcontext context, enum liveness liveness) {
    for (uint64_t i = 0; i < fences->capacity; i++)
        bfc_fence_events_set_liveness(fences->ring[i].events, context, liveness);
    clear_idle(fences);
    bfc_fence_events_set_liveness(fences->store, context, liveness);
}

static bool is_used(const struct entry *entry, CUcontext context) {
    bool recording = state_of(entry) == RECORDING, used = false;
    for (const struct event *event = entry->events; event && !used; event = event->next)
        used = event->context == context && (recording || bfc_load_seq_cst(&event->users) != 0);
    return used;
}

/* Whether any call is under way that may use an event of this context. */
static bool are_used(struct bfc_fences *fences, CUcontext context) {
    bool used = fences->makers != 0 || fences->ordering != 0 || fences->looking != 0;
    for (bfc_fence fence = fences->first; fence < fences->next && !used; fence++)
        used = is_used(entry_of(fences, fence), context);
    return used;
}

struct suspension {
    struct bfc_fences *fences;
    CUcontext context;
};

/* Marks the context's events as ENDING. Returns whether no call uses them. It is called repeatedly,
 * because events may be created meanwhile, which must be marked too. */
static bool put_fences_aside(void *argument) {
    const struct suspension *suspension = argument;
    struct bfc_fences *fences = suspension->fences;
    lock_fences(fences);
    set_all_liveness(fences, suspension->context, ENDING);
    bool used = are_used(fences, suspension->context);
    unlock_fences(fences);
    return !used;
}

void bfc_fences_suspend_context(struct bfc_fences *fences, CUcontext context) {
    struct ending *ending = malloc(sizeof *ending);
    if (!ending)
        return;
    lock_fences(fences);
    *ending = (struct ending){context, fences->endings};
    fences->endings = ending;
    unlock_fences(fences);
    bfc_await(put_fences_aside, &(struct suspension){fences, context}, BFC_NS_PER_SECOND);
}

void bfc_fences_conclude_context(struct bfc_fences *fences, CUcontext context, bool ended) {
    lock_fences(fences);
    remove_ending(fences, context);
    if (ended || !is_ending(fences, context))
        set_all_liveness(fences, context, ended ? DEAD : LIVE);
    bfc_fence_events_purge(&fences->store);
    unlock_fences(fences);
}
