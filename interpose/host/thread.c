/*
 * Threads of the library's own.
 *
 * pthread_create and pthread_attr_setstacksize are looked up, because before glibc 2.34 they are in
 * libpthread, which a process without a driver may lack. sigprocmask is used in place of
 * pthread_sigmask, which would need glibc 2.32; in Linux it changes the calling thread's mask
 * alone.
 */
#include "interpose/host/thread.h"

#include <pthread.h>
#include <signal.h>

#include "interpose/host/c_library.h"

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
