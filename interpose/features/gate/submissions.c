/* Counts the submissions of all threads. */
#include "interpose/features/gate/submissions.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

#include "interpose/config/process.h"
#include "interpose/host/thread_exit.h"
#include "interpose/table/counter.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the four variables below */
static struct bfc_submitter *submitters;
static uint64_t count_of_ended; /* submissions of threads that have ended */
static char why_hidden[96];
static const char *hidden_by; /* atomic; NULL or why_hidden */

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
        count_of_ended += (bfc_submitter.count + 1) & ~(uint64_t)1;
    }
    pthread_mutex_unlock(&lock);
    bfc_submitter = (struct bfc_submitter){0};
}

/* If the host has no memory to note the thread's end, its submissions cannot be counted. */
uint64_t bfc_submitter_begin(void) {
    if (bfc_process_is_forked())
        return 2;
    bfc_at_thread_exit(&bfc_submitter.leaves_at_exit, end_thread);
    if (!bfc_submitter.leaves_at_exit) {
        bfc_submissions_hide("no memory to note a thread's end");
        return 2;
    }
    pthread_mutex_lock(&lock);
    bfc_submitter.count = 2;
    bfc_submitter.next = submitters;
    submitters = &bfc_submitter;
    pthread_mutex_unlock(&lock);
    return 2;
}

bool bfc_submissions_count(uint64_t *sum) {
    bool known = !bfc_load_acquire(&hidden_by) && !bfc_process_is_forked();
    if (!known)
        return false;
    pthread_mutex_lock(&lock);
    *sum = count_of_ended;
    for (const struct bfc_submitter *thread = submitters; thread; thread = thread->next) {
        uint64_t count = bfc_load_seq_cst(&thread->count);
        known = known && !(count & 1);
        *sum += count;
    }
    pthread_mutex_unlock(&lock);
    return known;
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
