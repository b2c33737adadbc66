/*
 * The library's own threads, and the two variables (`working` and `stopping`) by which these
 * threads and the exiting process know of each other.
 *
 * pthread_create and pthread_attr_setstacksize are looked up, because before glibc 2.34 they are in
 * libpthread, which a process without a driver may not have loaded. sigprocmask is used in place of
 * pthread_sigmask, which would need glibc 2.32; in Linux it changes only the calling thread's mask.
 */
#include "interpose/host/background.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "interpose/host/c_library.h"

static __thread bool is_background INITIAL_EXEC;
/* atomic: how many threads are between bfc_background_begin and bfc_background_end */
static unsigned working;
static bool stopping; /* atomic: whether no further work may begin */
static pid_t starter; /* atomic: id of the process that started the background threads */

static void set_stack(pthread_attr_t *attributes, size_t bytes) {
    int (*set_stack_size)(pthread_attr_t *, size_t);
    *(void **)&set_stack_size = bfc_bound_function("pthread_attr_setstacksize");
    if (bytes && set_stack_size)
        set_stack_size(attributes, bytes);
}

static bool create_detached(void *(*run)(void *), void *argument, size_t stack_bytes) {
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    pthread_attr_t attributes;
    pthread_t thread;
    *(void **)&create = bfc_bound_function("pthread_create");
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    set_stack(&attributes, stack_bytes);
    bfc_forget_dl_error();
    bool created = create && create(&thread, &attributes, run, argument) == 0;
    pthread_attr_destroy(&attributes);
    return created;
}

bool bfc_thread_start(void *(*run)(void *argument), void *argument, size_t stack_bytes) {
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    bool created = create_detached(run, argument, stack_bytes);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return created;
}

/* Forbids further background work, and waits for work under way, a second at most. */
static void stop_work(void) {
    bfc_store_seq_cst(&stopping, true);
    bfc_await_zero(&working, BFC_NS_PER_SECOND);
}

/* Stops the background threads at exit, before the driver's exit handlers run: those were
 * registered earlier, so they run later. The wait is bounded, since a thread's last call may
 * wait for work of the device that never ends. A forked child has no such threads. */
static void stop_at_exit(void *unused) {
    (void)unused;
    if (bfc_load_relaxed(&starter) == getpid() && !bfc_background_is_over())
        stop_work();
}

/* Background threads need little stack; the default size would take much address space. */
#define STACK_BYTES ((size_t)256 * 1024)

extern int __cxa_atexit(void (*function)(void *), void *argument, void *library);

bool bfc_background_start(void *(*run)(void *), void *argument) {
    bfc_store_relaxed(&starter, getpid());
    __cxa_atexit(stop_at_exit, NULL, NULL);
    return bfc_thread_start(run, argument, STACK_BYTES);
}

void bfc_background_enter(void) {
    is_background = true;
}

bool bfc_background_is_current(void) {
    return is_background;
}

bool bfc_background_is_over(void) {
    return bfc_load_seq_cst(&stopping);
}

bool bfc_background_is_stopped(void) {
    return is_background && bfc_background_is_over();
}

/* Increments `working`, and then checks `stopping`, while a stop sets `stopping` and then reads
 * `working`. So if both happen together, at least one of the threads sees the other. */
bool bfc_background_begin(void) {
    bfc_fetch_add_seq_cst(&working, 1);
    if (!bfc_background_is_stopped())
        return true;
    bfc_background_end();
    return false;
}

void bfc_background_end(void) {
    bfc_fetch_sub_release(&working, 1);
}
