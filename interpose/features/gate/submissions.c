/* Counts the submissions of all threads, and the streams that they went to. */
#include "interpose/features/gate/submissions.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interpose/config/process.h"
#include "interpose/host/thread_exit.h"
#include "interpose/stats/published_segment.h"
#include "interpose/table/counter.h"

/* Guards `submitters` and `count_of_ended`, and writes to `why_hidden` and `hidden_by`. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct bfc_submitter *submitters;
static uint64_t count_of_ended; /* the sum of `count` over threads that have ended */
static char why_hidden[96];
/* Atomic. Why some submissions may be unseen (`why_hidden`); NULL: all are seen. */
static const char *hidden_by;

static void end_thread(void *unused) {
    (void)unused;
    if (bfc_process_is_forked())
        return;
    pthread_mutex_lock(&lock);
    struct bfc_submitter **link = &submitters;
    while (*link && *link != &bfc_submitter)
        link = &(*link)->next;
    if (*link) {
        *link = bfc_submitter.next;
        /* A thread that was cancelled inside a submission has its count rounded up, as if the
         * submission had ended: otherwise submissions would count as under way for ever. */
        count_of_ended +=
            (bfc_submitter.count + BFC_SUBMISSION - 1) & ~(uint64_t)(BFC_SUBMISSION - 1);
    }
    pthread_mutex_unlock(&lock);
    bfc_submitter = (struct bfc_submitter){0};
}

static void add_submitter(void) {
    if (bfc_submitter.count)
        return;
    bfc_at_thread_exit(&bfc_submitter.leaves_at_exit, end_thread);
    bfc_submitter.count = BFC_SUBMISSION;
    if (!bfc_submitter.leaves_at_exit)
        return;
    pthread_mutex_lock(&lock);
    bfc_submitter.next = submitters;
    submitters = &bfc_submitter;
    pthread_mutex_unlock(&lock);
}

/* Signals are blocked while the thread is added. Otherwise a signal handler could submit work in
 * the middle, and would add the thread to `submitters` a second time. If the host has no memory to
 * register end_thread, the thread is not added, so submissions count as unseen from then on. */
void bfc_submitter_begin(void) {
    sigset_t all, before;
    if (bfc_process_is_forked())
        return;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    add_submitter();
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (!bfc_submitter.leaves_at_exit)
        bfc_counter->hide("no memory to note a thread's end");
}

/* Linux runs this barrier only for a process that has registered for it. So if the barrier fails,
 * the process registers and tries once more. */
bool bfc_submissions_barrier(void) {
    int error = errno;
    bool done = syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) == 0 ||
                (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0) == 0 &&
                 syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) == 0);
    errno = error;
    return done;
}

bool bfc_submissions_count(uint64_t *sum) {
    bool known = !bfc_load_acquire(&hidden_by) && !bfc_process_is_forked();
    if (!known)
        return false;
    pthread_mutex_lock(&lock);
    *sum = count_of_ended;
    for (const struct bfc_submitter *thread = submitters; thread; thread = thread->next) {
        uint64_t count = bfc_load_acquire(&thread->count);
        known = known && count % BFC_SUBMISSION == 0;
        *sum += count;
    }
    pthread_mutex_unlock(&lock);
    return known;
}

/* A hash table of the handles of streams that had work. A handle is never removed, so a stream that
 * gets the handle of a destroyed one is not counted again. */
enum { STREAMS_BITS = 10 };
static CUstream streams[1 << STREAMS_BITS]; /* each element is atomic; NULL: unused */

void bfc_submissions_note_stream(CUstream stream) {
    bfc_submitter.last = stream;
    if (stream == (CUstream)BFC_STREAMS_UNKNOWN)
        return;
    uint64_t hash = (uintptr_t)stream * UINT64_C(0x9e3779b97f4a7c15) >> (64 - STREAMS_BITS);
    for (uint64_t probe = 0; probe < 1 << STREAMS_BITS; probe++) {
        CUstream *place = &streams[(hash + probe) % (1 << STREAMS_BITS)];
        CUstream there = bfc_load_relaxed(place);
        if (!there && bfc_compare_exchange_relaxed(place, &there, stream))
            bfc_fetch_add_relaxed(&bfc_segment_counters()->gate.seen, 1);
        if (!there || there == stream)
            break;
    }
}

bool bfc_submissions_hide(const char *what) {
    if (bfc_process_is_forked())
        return false;
    pthread_mutex_lock(&lock);
    bool is_first = !hidden_by;
    if (is_first) {
        snprintf(why_hidden, sizeof why_hidden, "%s", what);
        bfc_store_seq_cst(&hidden_by, why_hidden);
    }
    pthread_mutex_unlock(&lock);
    return is_first;
}

extern int __cxa_atexit(void (*function)(void *), void *argument, void *library);

static void forget_at_exit(void *unused) {
    (void)unused;
    bfc_submissions_hide("the process exits");
}

void bfc_submissions_stop_at_exit(void) {
    static bool asked;
    if (bfc_counter && !bfc_exchange_relaxed(&asked, true))
        __cxa_atexit(forget_at_exit, NULL, NULL);
}

const char *bfc_submissions_hidden_by(void) {
    return bfc_load_acquire(&hidden_by);
}
