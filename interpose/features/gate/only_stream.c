/*
 * The state of the only stream (only_stream.h): bfc_only.stream, one word that is changed under a
 * lock and read without one. It is the handle of the only stream, or says that no stream was used
 * yet, that there are many streams, or that the state is changing.
 *
 * A free counts itself and then reads the word; a thread that changes the word reads the count of
 * frees afterwards. So either the free sees the new word and takes a fence, or the thread that
 * changes it sees the free, and makes other streams wait for the last work on the freed block.
 */
#include "interpose/features/gate/only_stream.h"

#include <pthread.h>
#include <stdio.h>

#include "interpose/arena/arena.h"
#include "interpose/arena/upstream.h"
#include "interpose/config/log.h"
#include "interpose/config/process.h"
#include "interpose/context/capture.h"
#include "interpose/context/contexts.h"
#include "interpose/context/peers.h"
#include "interpose/driver/current.h"
#include "interpose/driver/driver.h"
#include "interpose/features/gate/submissions.h"
#include "interpose/fences/fences.h"
#include "interpose/stats/published_segment.h"

/* Held by a thread that changes which stream, if any, is the only one to which the process submits
 * work. In the driver's calls under it a tool's callback may submit, and so take it again and
 * change the stream itself. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
/* The value of bfc_only.stream, except from bfc_only_stream_close to bfc_only_stream_open: in that
 * time bfc_only.stream is BFC_STREAM_CHANGING, whatever `state` is. */
static CUstream state = BFC_STREAMS_MANY;
/* Atomic: the function that was passed to bfc_only_stream_close, until bfc_only_stream_open; NULL
 * otherwise. While it is set, each submission first calls it (bfc_only_stream_meet). */
static CUresult (*waker)(void);
/* Atomic: the blocking stream that together with the legacy stream counts as the only stream
 * (only_stream.h); NULL: there is none. */
static CUstream partner;
/* Atomic: the former only stream, while bfc_only.stream is BFC_STREAM_CHANGING. */
static CUstream leaving;
/* How many calls of bfc_only_stream_bar were not yet followed by one of bfc_only_stream_unbar.
 * Above 0, no trial (only_stream.h) begins. */
static unsigned bars;

/* The numbers of the last trial (only_stream.h) and of the last trial that succeeded. While they
 * differ, each free takes a fence. */
static uint64_t trial, succeeded; /* both are atomic */
/* The trial with the number `trial` succeeds when `fence` is complete. The fence is one of the
 * arena whose `sequence` is `arena`; 0: no fence was recorded for this trial yet. */
static struct {
    uint64_t arena;
    bfc_fence fence;
} proof;

/* The next trial begins at least FIRST_PAUSE frees with fences after the last one. Each time that
 * the state of one stream ends, this pause doubles, up to LONGEST_PAUSE. A call in which the
 * program waits for a context's work counts as FREES_A_WAIT frees. */
enum { FIRST_PAUSE = 8, LONGEST_PAUSE = 4096, FREES_A_WAIT = 16 };
static int pause_of_trials = FIRST_PAUSE;

/* The state of one stream counts as lasting after so many frees without a fence. */
enum { LASTING = 512 };

/* Counters that frees write, all atomic. They have cache lines of their own, apart from
 * bfc_only.stream, which every launch of a kernel reads. */
static struct ON_LINES_OF_ITS_OWN {
    /* how many frees took no fence because of the only stream. Each free counts itself before it
     * reads the state, so some that then found it changed, and took a fence, are counted too. */
    uint64_t freed;
    /* how many of the frees in `freed`, from the first on, are safe whatever stream is used next:
     * the last work on the block is complete, or all later work waits for it */
    uint64_t ordered;
    uint64_t early; /* frees while no stream was used yet, when all work was complete */
    int to_trial;   /* how many frees are left until the next trial (only_stream.h) is due */
} frees = {.to_trial = FIRST_PAUSE};

static CUstream read_word(void) {
    return state;
}

static void write_word(CUstream word) {
    state = word;
    if (!waker)
        bfc_store_seq_cst(&bfc_only.stream, word);
}

void bfc_only_stream_begin_process(void) {
    write_word(BFC_STREAM_NONE_YET);
    bfc_store_relaxed(&bfc_segment_counters()->gate.state, BFC_GATE_COUNTS);
}

/* Makes later work of the arena's context wait on the device for the context's work so far. */
static CUresult order_on_device(const struct bfc_driver *driver, struct bfc_arena *arena) {
    bfc_fence fence;
    struct bfc_order order;
    CUresult result = bfc_fences_record(arena->fences, driver, &arena->context, 1, &fence);
    if (result != CUDA_SUCCESS)
        return result;
    return bfc_fences_announce(arena->fences, fence, &order)
               ? bfc_fences_order(arena->fences, driver, arena->context, &order)
               : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/* The host waits for the former only stream (`leaving`), to which all work on blocks that were
 * freed without a fence went. Unlike recording an event, this needs no memory of the driver. */
static CUresult wait_for_stream(const struct bfc_driver *driver, struct bfc_arena *arena) {
    CUstream second = bfc_load_relaxed(&partner);
    bool pushed;
    CUresult result = driver->cuStreamSynchronize && !bfc_captures_exist()
                          ? bfc_arena_make_current(driver, arena, &pushed)
                          : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (result != CUDA_SUCCESS)
        return result;
    result = driver->cuStreamSynchronize(bfc_load_relaxed(&leaving));
    if (second && result == CUDA_SUCCESS)
        result = driver->cuStreamSynchronize(second);
    bfc_current_leave(driver, pushed);
    return result;
}

/* Makes later work of the arena's context wait for the context's work so far: on the device, or if
 * the driver refuses that, by a wait of the host. */
static void order_arena(const struct bfc_driver *driver, struct bfc_arena *arena) {
    if (!arena->fences || bfc_arena_is_host(arena) || !bfc_arena_enter(arena))
        return;
    CUstreamCaptureMode mode = bfc_capture_relax(driver);
    CUresult result = order_on_device(driver, arena);
    bfc_capture_restore(driver, mode);
    if (result != CUDA_SUCCESS) {
        BFC_TRY_HARD(freed, bfc_upstream_wait_as_free(driver, arena));
        result = freed;
    }
    if (result != CUDA_SUCCESS) {
        BFC_TRY_HARD(waited, wait_for_stream(driver, arena));
        if (waited != CUDA_SUCCESS)
            bfc_upstream_wait_weakly(driver, arena);
    }
    bfc_arena_leave(arena);
}

static void note_ordered(uint64_t freed) {
    uint64_t before = bfc_load_relaxed(&frees.ordered);
    while (before < freed && !bfc_compare_exchange_acq_rel(&frees.ordered, &before, freed))
        ;
}

/* Makes later work of every context wait for that context's work so far, since frees took no fence
 * while there was an only stream. Called under the lock while bfc_only.stream is
 * BFC_STREAM_CHANGING: then frees take fences, so no block is freed without one meanwhile. */
static void order_all(void) {
    struct bfc_arena *arena = NULL;
    uint64_t freed = bfc_load_seq_cst(&frees.freed);
    if (freed == bfc_load_acquire(&frees.ordered))
        return;
    while ((arena = bfc_arena_next(arena)))
        order_arena(bfc_driver(), arena);
    note_ordered(freed);
}

/* The value of frees.freed when the state of one stream last ended; atomic. */
static uint64_t freed_before;

static bool has_succeeded(void) {
    return bfc_load_seq_cst(&succeeded) == bfc_load_seq_cst(&trial);
}

/* Publishes in the segment how many streams there are, which bfcstat shows. */
static void publish_streams(void) {
    CUstream only = read_word();
    enum bfc_gate_streams streams = BFC_STREAMS_ONE;
    if (only == BFC_STREAMS_MANY || !has_succeeded())
        streams = BFC_STREAMS_SEVERAL;
    else if (only == BFC_STREAM_NONE_YET)
        streams = BFC_STREAMS_NONE;
    else if (bfc_load_relaxed(&partner))
        streams = BFC_STREAMS_ORDERED;
    bfc_store_relaxed(&bfc_segment_counters()->gate.streams, streams);
}

static void set_many(void) {
    CUstream only = read_word();
    if (only == BFC_STREAMS_MANY)
        return;
    if (only != BFC_STREAM_CHANGING)
        bfc_store_seq_cst(&leaving, only);
    write_word(BFC_STREAM_CHANGING);
    order_all();
    write_word(BFC_STREAMS_MANY);
    bfc_store_relaxed(&freed_before, bfc_load_relaxed(&frees.freed));
    if (pause_of_trials < LONGEST_PAUSE)
        pause_of_trials *= 2;
    bfc_store_relaxed(&frees.to_trial, pause_of_trials);
    bfc_fetch_add_relaxed(&bfc_segment_counters()->gate.left, 1);
    publish_streams();
}

static bool is_blocking(CUstream stream) {
    const struct bfc_driver *driver = bfc_driver();
    unsigned flags;
    return driver && driver->cuStreamGetFlags &&
           driver->cuStreamGetFlags(stream, &flags) == CUDA_SUCCESS &&
           !(flags & CU_STREAM_NON_BLOCKING);
}

/* Makes the legacy stream and one blocking stream count as the only stream, if they are the two
 * streams that were used. False: they are not. */
static bool become_partners(CUstream only, CUstream stream) {
    CUstream other = only == CU_STREAM_LEGACY ? stream : only;
    if ((only != CU_STREAM_LEGACY && stream != CU_STREAM_LEGACY) ||
        (bfc_load_relaxed(&partner) && bfc_load_relaxed(&partner) != other) ||
        !is_blocking(other) || read_word() != only)
        return false;
    bfc_store_release(&partner, other);
    write_word(CU_STREAM_LEGACY);
    return true;
}

/* Whether the stream can be the only one. The handle CU_STREAM_PER_THREAD cannot, since it means
 * another stream in each thread. */
static bool can_be_alone(CUstream stream) {
    return stream != CU_STREAM_PER_THREAD && stream != (CUstream)BFC_STREAMS_UNKNOWN;
}

static void meet_stream(CUstream stream) {
    CUstream only = read_word();
    if (only == BFC_STREAMS_MANY || only == stream)
        return;
    if (!can_be_alone(stream))
        set_many();
    else if (only == BFC_STREAM_NONE_YET)
        write_word(stream);
    else if (!become_partners(only, stream))
        set_many();
    publish_streams();
}

/* Notes a submission to the stream, which may become the only one or end the state of one stream.
 * False: nothing was noted, since submissions wait for bfc_only_stream_open. */
static bool meet_if_open(CUstream stream) {
    CUstream only = bfc_load_seq_cst(&bfc_only.stream);
    if (bfc_load_seq_cst(&waker))
        return false;
    /* While `stream` ceases to be the only stream, submissions to it need not wait: the thread that
     * makes that change has other streams wait for them. */
    if (only == BFC_STREAMS_MANY || stream == BFC_STREAMS_MANY ||
        (only == CU_STREAM_LEGACY && stream == bfc_load_acquire(&partner)) ||
        (only == BFC_STREAM_CHANGING && stream == bfc_load_seq_cst(&leaving)))
        return true;
    pthread_mutex_lock(&lock);
    bool open = !waker;
    if (open)
        meet_stream(stream);
    pthread_mutex_unlock(&lock);
    return open;
}

/* While a thread waits here for its submission to go on, it does not count as inside one: the
 * thread that called bfc_only_stream_close waits until no thread is inside a submission. */
CUresult bfc_only_stream_meet(CUstream stream) {
    CUresult result = CUDA_SUCCESS;
    if (stream != BFC_STREAMS_MANY)
        bfc_submissions_note_stream(stream);
    while (!bfc_process_is_forked() && result == CUDA_SUCCESS && !meet_if_open(stream)) {
        CUresult (*wake)(void) = bfc_load_seq_cst(&waker);
        bfc_add_own(&bfc_submitter.count, UINT64_MAX);
        if (wake)
            result = wake();
        bfc_fetch_add_seq_cst(&bfc_submitter.count, 1);
    }
    return result;
}

bool bfc_only_stream_close(CUresult (*wake)(void)) {
    pthread_mutex_lock(&lock);
    bfc_store_seq_cst(&waker, wake);
    bfc_store_seq_cst(&bfc_only.stream, BFC_STREAM_CHANGING);
    pthread_mutex_unlock(&lock);
    return bfc_submissions_barrier();
}

void bfc_only_stream_open(void) {
    pthread_mutex_lock(&lock);
    /* A thread may have read BFC_STREAM_CHANGING before this call, and yet compare its stream with
     * `leaving` only later. So `leaving` must not keep the only stream of an earlier change. */
    bfc_store_seq_cst(&leaving, BFC_STREAM_NONE_YET);
    bfc_store_seq_cst(&waker, NULL);
    write_word(state);
    pthread_mutex_unlock(&lock);
}

static void change_bars(int by, bool leaves) {
    if (bfc_process_is_forked())
        return;
    pthread_mutex_lock(&lock);
    bars += (unsigned)by;
    if (leaves)
        set_many();
    pthread_mutex_unlock(&lock);
}

void bfc_only_stream_leave(void) {
    change_bars(0, true);
}

void bfc_only_stream_bar(void) {
    change_bars(1, true);
}

void bfc_only_stream_unbar(void) {
    change_bars(-1, false);
}

static bool given_up; /* atomic; true: submissions may be unseen, so each free takes a fence */

void bfc_only_stream_tell_hidden(void) {
    static bool logged;
    if (!bfc_load_acquire(&given_up))
        return;
    const char *what = bfc_submissions_hidden_by();
    struct bfc_segment_gate *gate = &bfc_segment_counters()->gate;
    snprintf(gate->why, sizeof gate->why, "%s", what);
    bfc_store_release(&gate->state, BFC_GATE_GIVEN_UP);
    if (bfc_log_shows(BFC_LOG_INFO) && !bfc_exchange_relaxed(&logged, true))
        bfc_log(BFC_LOG_INFO, "BFC_GATE is off, because work may be submitted unseen: %s", what);
}

/* Every call bars trials (only_stream.h), not only the first one. Otherwise a second call could
 * return before the first one has barred trials, and a trial could begin although the second
 * caller's work may go unseen. */
void bfc_only_stream_hide(const char *what) {
    if (bfc_process_is_forked())
        return;
    bool is_first = bfc_submissions_hide(what);
    bfc_only_stream_bar();
    if (is_first) {
        bfc_store_release(&given_up, true);
        bfc_only_stream_tell_hidden();
    }
    CUresult (*wake)(void) = bfc_load_seq_cst(&waker);
    if (wake)
        wake();
}

/* While bfc_only.stream is BFC_STREAM_CHANGING, submissions to the former only stream (`leaving`)
 * go on, and the destroyed stream may be that one. Then bfc_only_stream_leave waits for the lock,
 * and so until the change has ended. Otherwise a new stream that got the same handle could be taken
 * for the former only stream. */
void bfc_only_stream_destroyed(CUstream stream) {
    CUstream only = bfc_load_seq_cst(&bfc_only.stream);
    if (stream == only || only == BFC_STREAM_CHANGING || stream == bfc_load_relaxed(&partner))
        bfc_only_stream_leave();
}

CUstream bfc_only_stream_hold(void) {
    pthread_mutex_lock(&lock);
    return read_word();
}

void bfc_only_stream_release(void) {
    pthread_mutex_unlock(&lock);
}

bool bfc_only_stream_lasts(void) {
    uint64_t before = bfc_load_relaxed(&freed_before);
    return bfc_only_stream_may_be() && has_succeeded() &&
           (!bfc_load_seq_cst(&trial) || bfc_load_relaxed(&frees.freed) - before >= LASTING);
}

uint64_t bfc_only_stream_orders(void) {
    if (bfc_submissions_hidden_by())
        return 0;
    /* No stream was used yet and all work is complete, so no work uses the block, and the free is
     * not counted in `freed`. If it were, a stream would later be made to wait for another, perhaps
     * for a kernel that in turn waits for what the program has yet to submit to the waiting
     * stream. */
    if (bfc_load_seq_cst(&bfc_only.stream) == BFC_STREAM_NONE_YET)
        return has_succeeded() ? bfc_fetch_add_relaxed(&frees.early, 1) + 1 : 0;
    uint64_t number = bfc_fetch_add_seq_cst(&frees.freed, 1) + 1;
    CUstream only = bfc_load_seq_cst(&bfc_only.stream);
    bool ordered = only != BFC_STREAMS_MANY && only != BFC_STREAM_CHANGING && has_succeeded();
    return ordered ? number : 0;
}

/* Begins a trial (only_stream.h), and stores the sum of submissions. False: something forbids a
 * trial, or a thread is inside a submission. bfc_only.stream is changed before submissions are
 * counted. So a thread that begins a submission meanwhile is either counted, or sees the change and
 * waits for the lock, which the caller holds. */
static bool begin_trial(uint64_t *sum) {
    if (bars || read_word() != BFC_STREAMS_MANY || bfc_captures_exist() || bfc_peers_known() ||
        bfc_contexts_are_several())
        return false;
    bfc_store_seq_cst(&trial, trial + 1);
    proof.arena = 0;
    bfc_store_relaxed(&partner, NULL);
    write_word(BFC_STREAM_NONE_YET);
    if (bfc_submissions_barrier() && bfc_submissions_count(sum))
        return true;
    write_word(BFC_STREAMS_MANY);
    return false;
}

/* Counts down by `passed` frees to the next trial (only_stream.h). True: that trial is due. */
static bool is_due(int passed) {
    return bfc_fetch_sub_relaxed(&frees.to_trial, passed) <= passed;
}

uint64_t bfc_only_stream_try(void) {
    uint64_t sum, begun = 0;
    if (!is_due(1))
        return 0;
    pthread_mutex_lock(&lock);
    bfc_store_relaxed(&frees.to_trial, pause_of_trials);
    if (begin_trial(&sum))
        begun = trial;
    pthread_mutex_unlock(&lock);
    return begun;
}

void bfc_only_stream_await(uint64_t number, uint64_t arena, bfc_fence fence) {
    pthread_mutex_lock(&lock);
    if (number == trial) {
        proof.arena = arena;
        proof.fence = fence;
    }
    pthread_mutex_unlock(&lock);
}

static void note_success(void) {
    bfc_store_seq_cst(&succeeded, trial);
    publish_streams();
}

void bfc_only_stream_completed(uint64_t arena, bfc_fence complete) {
    if (has_succeeded() || !bfc_only_stream_may_be())
        return;
    pthread_mutex_lock(&lock);
    if (read_word() != BFC_STREAMS_MANY && proof.arena == arena && complete >= proof.fence)
        note_success();
    pthread_mutex_unlock(&lock);
}

/* Describes the moment at which a wait of the host begins. It takes the lock because begin_trial
 * first raises the trial's number and counts submissions later. A wait that began between the two,
 * and had the new number, would make the trial succeed without covering the work that was submitted
 * after the wait began and before the count. */
struct bfc_moment bfc_only_stream_moment(void) {
    struct bfc_moment moment = {0};
    if (bfc_process_is_forked())
        return moment;
    pthread_mutex_lock(&lock);
    moment.trial = trial;
    pthread_mutex_unlock(&lock);
    moment.freed = bfc_load_seq_cst(&frees.freed);
    moment.is_known = bfc_submissions_count(&moment.submissions);
    return moment;
}

/* Begins a trial (only_stream.h), if one is due, after a wait for all work that was submitted
 * before `moment`. If nothing was submitted since, no work is under way, and the trial succeeds at
 * once. */
static void restart_trial(const struct bfc_moment *moment) {
    uint64_t sum;
    if (!moment->is_known || !is_due(FREES_A_WAIT) || !begin_trial(&sum))
        return;
    if (sum == moment->submissions)
        note_success();
    else
        write_word(BFC_STREAMS_MANY);
}

void bfc_only_stream_waited(const struct bfc_moment *moment) {
    if (bfc_process_is_forked())
        return;
    note_ordered(moment->freed);
    pthread_mutex_lock(&lock);
    if (read_word() == BFC_STREAMS_MANY)
        restart_trial(moment);
    else if (moment->trial == trial)
        note_success();
    pthread_mutex_unlock(&lock);
}

uint64_t bfc_only_stream_freed(void) {
    return bfc_load_seq_cst(&frees.freed);
}

void bfc_only_stream_waited_for(CUstream stream, uint64_t freed) {
    if (bfc_load_seq_cst(&bfc_only.stream) == stream && !bfc_load_acquire(&partner))
        note_ordered(freed);
}
