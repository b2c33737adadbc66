/*
 * Submissions: the program's calls that give the device work which may use device memory.
 *
 * The hook of each such call is enclosed in bfc_submission_begin and bfc_submission_end. Where
 * submissions are counted (BFC_GATE), these add to the thread's count and compare the stream with
 * the only stream (features/gate/only_stream.h). They are inline because each launch calls them.
 * The core reaches the rest, in interpose/features/gate, by struct bfc_counter. Thread-safe.
 */
#ifndef BFC_INTERPOSE_COUNTER_H
#define BFC_INTERPOSE_COUNTER_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

struct bfc_arena;
struct bfc_driver;

/* What was known as the program began to wait for all work of a context. */
struct bfc_program_wait {
    struct bfc_arena *arena; /* the arena of that context, with a reference; NULL: the context has
                                none, or submissions are not counted */
    struct bfc_moment {
        uint64_t freed;       /* how many frees took no fence, as all work went to one stream */
        uint64_t trial;       /* number of the last trial to return to one stream (only_stream.h) */
        bool is_known;        /* whether `submissions` could be counted */
        uint64_t submissions; /* the sum of the submissions of all threads */
    } moment;
    uint64_t last; /* the last fence that had a number before the wait began */
};

struct bfc_counter {
    /* Called before the calling thread's first submission. */
    void (*begin_thread)(void);
    /* Called before a submission to a stream that is not the only one; while there are many, only
     * if the thread's last submission went to another. Called with BFC_STREAMS_MANY before other
     * uses of memory while bfc_only.stream is BFC_STREAM_CHANGING. An error means that the call
     * must be refused: the memory is asleep (moved off the device) and cannot be woken. */
    CUresult (*meet_stream)(CUstream stream);
    /* From now on some submissions may go uncounted, because of `what`, which the log names. */
    void (*hide)(const char *what);
    /* cuGetExportTable gives the program this table; a copy that counts calls may replace it. */
    void (*note_table)(const void **table, const CUuuid *id);
    /* Whether a launch may overlap with earlier work of its stream. */
    bool (*may_overlap)(const CUlaunchConfig *how);
    /* leave: from now on work may go to several streams, or others may use the memory. bar: the
     * same, and no return to one stream is tried until unbar was called as often as bar. */
    void (*leave)(void);
    void (*bar)(void);
    void (*unbar)(void);
    /* From close to open, each call that uses memory calls `wake` first, until that returns an
     * error or open was called. Submissions that began before close go on, and are counted, unless
     * close returns false: then the kernel has no barrier for all threads. */
    bool (*close)(CUresult (*wake)(void));
    void (*open)(void);
    /* The stream is about to be destroyed; the driver may give its handle to another stream. */
    void (*stream_ending)(CUstream stream);
    /* These two functions enclose the driver's call that waits for all work of a context (NULL: the
     * current one). */
    struct bfc_program_wait (*wait_begin)(const struct bfc_driver *driver, CUcontext context);
    void (*wait_end)(struct bfc_program_wait *wait, CUresult result);
    /* stream_waited tells that the host has waited for the work of the stream. `frees` is what
     * frees_so_far returned just before that wait: the wait does not cover later frees. */
    uint64_t (*frees_so_far)(void);
    void (*stream_waited)(CUstream stream, uint64_t frees);
    /* Sums up the submissions of all threads. False: a thread is inside a submission, or work may
     * be submitted by calls without a hook. While the sum is the same, no work was submitted. */
    bool (*count)(uint64_t *sum);
    /* Frees a block of a context without peers, in mode lazy or ordered. */
    CUresult (*free)(const struct bfc_driver *driver, struct bfc_arena *arena, CUdeviceptr pointer);
    /* All fences up to `fence` of the arena with this `sequence` are known to be complete. */
    void (*fences_complete)(uint64_t sequence, uint64_t fence);
};

/* NULL: submissions are not counted in this process. The feature `gate` sets it before the
 * program is given a hook. */
extern const struct bfc_counter *bfc_counter HIDDEN;

/* Calls a function of bfc_counter, as in BFC_TELL_COUNTER(bar()), unless bfc_counter is NULL. */
#define BFC_TELL_COUNTER(call)                                                                     \
    do {                                                                                           \
        if (UNLIKELY(bfc_counter))                                                                 \
            bfc_counter->call;                                                                     \
    } while (0)

/* `count` is how many submissions the thread has made, times BFC_SUBMISSION, plus how many it is
 * inside now: several if a tool or a signal handler submits within one. Only the thread itself
 * writes `count`. Each addition is one instruction (bfc_add_own), lest a handler interrupts it. */
enum { BFC_SUBMISSION = 1 << 16 };
struct bfc_submitter {
    uint64_t count; /* atomic; 0: the thread has made none yet */
    CUstream last;  /* the last stream that meet_stream was told of */
    struct bfc_submitter *next;
    bool leaves_at_exit;
};
extern __thread struct bfc_submitter bfc_submitter INITIAL_EXEC HIDDEN;

/* The only stream, or a value below that is no stream. It has cache lines of its own, because each
 * submission reads it. */
struct ON_LINES_OF_ITS_OWN bfc_only {
    CUstream stream; /* atomic */
};
extern struct bfc_only bfc_only HIDDEN;
#define BFC_STREAMS_MANY ((CUstream) ~(uintptr_t)0)
#define BFC_STREAM_NONE_YET ((CUstream) ~(uintptr_t)1)
#define BFC_STREAM_CHANGING ((CUstream) ~(uintptr_t)2)
/* Passed in place of a stream for work that may use several streams or overlap earlier work. */
#define BFC_STREAMS_UNKNOWN (~(uintptr_t)3)

/* Returns one handle for each stream: for a default stream its constant, never NULL. */
static inline CUstream bfc_stream_of_handle(CUstream stream, bool per_thread) {
    return stream ? stream : per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

/* Counts the thread as inside a submission, and sets `*end` to `ending`, which bfc_submission_end
 * then adds to the thread's count. */
static ALWAYS_INLINE void bfc_submission_enter(uint64_t ending, uint64_t *end) {
    if (UNLIKELY(!bfc_load_relaxed(&bfc_submitter.count)))
        bfc_counter->begin_thread();
    bfc_add_own(&bfc_submitter.count, 1);
    *end = ending;
}

/*
 * bfc_submission_begin and bfc_submission_end enclose a call that submits work to `stream`;
 * `per_thread`: stream 0 is the thread's own default stream. `*end` goes from one to the other. On
 * an error the call must not be made. If another stream is the process's only one, its work is
 * first ordered before this call's work. If memory is asleep, it is woken.
 *
 * The count rises before the stream is compared, and other threads rely on this order. No barrier
 * is needed here: they have the kernel run one in every thread (bfc_submissions_barrier).
 */
static ALWAYS_INLINE CUresult bfc_submission_begin(CUstream stream, bool per_thread,
                                                   uint64_t *end) {
    *end = 0;
    if (LIKELY(!bfc_counter))
        return CUDA_SUCCESS;
    bfc_submission_enter(BFC_SUBMISSION - 1, end);
    CUstream named = bfc_stream_of_handle(stream, per_thread);
    CUstream only = bfc_load_acquire(&bfc_only.stream);
    if (UNLIKELY(only != named && (only != BFC_STREAMS_MANY || bfc_submitter.last != named)))
        return bfc_counter->meet_stream(named);
    return CUDA_SUCCESS;
}

/* Does what bfc_submission_begin does, for a call that uses memory, but submits no work. */
static inline CUresult bfc_stay_awake(uint64_t *end) {
    *end = 0;
    if (LIKELY(!bfc_counter))
        return CUDA_SUCCESS;
    bfc_submission_enter(UINT64_MAX, end); /* bfc_submission_end takes the 1 off again */
    return UNLIKELY(bfc_load_acquire(&bfc_only.stream) == BFC_STREAM_CHANGING)
               ? bfc_counter->meet_stream(BFC_STREAMS_MANY)
               : CUDA_SUCCESS;
}

static ALWAYS_INLINE void bfc_submission_end(uint64_t end) {
    if (UNLIKELY(end))
        bfc_add_own(&bfc_submitter.count, end);
}

#endif
