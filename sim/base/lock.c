// The one lock, what threads wait for under it, and forked children.
//
// A forked child is known by a page that the kernel wipes at fork, so a raw clone is known as well.
#include "sim/base/lock.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER;
static unsigned progress_waiters;
static atomic_int *_Atomic alive_page;

bool sim_forked(void) {
    atomic_int *page = atomic_load_explicit(&alive_page, memory_order_acquire);
    return page != NULL && atomic_load_explicit(page, memory_order_relaxed) == 0;
}

// A child has its own lock: the parent's may have been held by a thread that the child lacks.
static pthread_mutex_t *the_lock(void) {
    return &locks[sim_forked()];
}

void sim_lock_take(void) {
    pthread_mutex_lock(the_lock());
}

void sim_lock_give(void) {
    pthread_mutex_unlock(the_lock());
}

bool sim_thread_start(void *(*serve)(void *), void *argument) {
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, (size_t)1 << 20);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&thread, &attributes, serve, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

void sim_progress_broadcast(void) {
    if (progress_waiters > 0) {
        pthread_cond_broadcast(&progress);
    }
}

void sim_progress_wait(void) {
    progress_waiters++;
    pthread_cond_wait(&progress, the_lock());
    progress_waiters--;
}

void sim_sleep_on(pthread_cond_t *condition) {
    pthread_cond_wait(condition, the_lock());
}

bool sim_forks_watch(void) {
    void *page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || madvise(page, (size_t)sysconf(_SC_PAGESIZE), MADV_WIPEONFORK) != 0) {
        return false;
    }
    atomic_store_explicit((atomic_int *)page, 1, memory_order_relaxed);
    atomic_store_explicit(&alive_page, page, memory_order_release);
    return true;
}
