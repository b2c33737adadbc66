/* Background work: two flags, by which a piece of work and the process's exit see each other. */
#include "interpose/host/background.h"

#include <stddef.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "interpose/host/thread.h"

static __thread bool is_background INITIAL_EXEC;
static unsigned working; /* atomic: pieces of work under way */
static bool stopping;    /* atomic: no further work may begin */
static pid_t starter;    /* atomic: the process that has started the threads */

/* ---- starting ---- */

/* Forbids further work, and waits for work under way. */
static void stop_work(void) {
    bfc_store_seq_cst(&stopping, true);
    bfc_await_zero(&working, BFC_NS_PER_SECOND);
}

/*
 * Stops the background threads at exit, before the driver's own handlers run, which were registered
 * before the threads were started. The wait for their last calls is bounded, since such a call may
 * wait for work of the device that never ends. A forked child has no such threads.
 */
static void stop_at_exit(void *unused) {
    (void)unused;
    if (bfc_load_relaxed(&starter) == getpid() && !bfc_background_is_over())
        stop_work();
}

/* These threads need little stack, and the default size would take much of the address space. */
#define STACK_BYTES ((size_t)256 * 1024)

extern int __cxa_atexit(void (*function)(void *), void *argument, void *library);

bool bfc_background_start(void *(*run)(void *), void *argument) {
    bfc_store_relaxed(&starter, getpid());
    __cxa_atexit(stop_at_exit, NULL, NULL);
    return bfc_thread_start(run, argument, STACK_BYTES);
}

/* ---- working ---- */

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

/* Publishes `working`, then checks `stopping`; a stop does the reverse. So of a piece of work and a
 * stop that begin together, at least one sees the other. */
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
