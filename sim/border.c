// The border that every driver call passes: the one lock, the states of a process (before cuInit,
// running, forked, at exit), counting, latencies and refusals on demand.
//
// A forked child is known by a page that the kernel wipes at fork, so a raw clone is known as well.
#include "sim/sim.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER;
static unsigned progress_waiters;
static struct sim_call *calls; // guarded by the lock
static unsigned long long total, waits_called, waits_blocked, records, device_waits;
static bool initialised, ended; // guarded by the lock
static unsigned inside;         // calls under way; guarded by the lock
static unsigned long long late; // made, or under way, when the driver had gone
static unsigned long long trespasses;
static _Thread_local bool ended_here; // this thread runs the process's exit
static atomic_int *_Atomic alive_page;

static bool forked(void) {
    atomic_int *page = atomic_load_explicit(&alive_page, memory_order_acquire);
    return page != NULL && atomic_load_explicit(page, memory_order_relaxed) == 0;
}

// A child has its own lock: the parent's may have been held by a thread that the child lacks.
static pthread_mutex_t *the_lock(void) {
    return &locks[forked()];
}

void sim_lock_take(void) {
    pthread_mutex_lock(the_lock());
}

void sim_lock_give(void) {
    pthread_mutex_unlock(the_lock());
}

void sim_pause(unsigned us) {
    if (us == 0) {
        return;
    }
    double until = sim_now_ms() + us / 1000.0;
    // nanosleep overshoots by some 60 µs, so short pauses and the ends of long ones are spun.
    if (us > 150) {
        struct timespec rest = {.tv_sec = (us - 100) / 1000000,
                                .tv_nsec = (long)((us - 100) % 1000000) * 1000};
        nanosleep(&rest, NULL);
    }
    while (sim_now_ms() < until) {
    }
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

double sim_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void introduce(struct sim_call *call) {
    if (!call->known) {
        call->known = true;
        call->latency_us = sim_latency_of(call->name);
        call->need = sim_need_of(call->name);
        call->codes = sim_codes_of(call->name);
        call->next = calls;
        calls = call;
    }
}

static CUresult state_bars(unsigned needs) {
    if (!(needs & (SIM_READY | SIM_CURRENT))) {
        return CUDA_SUCCESS;
    }
    if (ended) {
        return CUDA_ERROR_DEINITIALIZED;
    }
    return initialised && !forked() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

// SIM_NEEDS: is so much of each device free, for a moment?
static bool has_room(const struct sim_call *call) {
    size_t pages = call->need / SIM_PAGE;
    for (int i = 0; initialised && pages != 0 && i < sim_options.devices; i++) {
        size_t used = sim_devices[i].used + sim_share_others(&sim_devices[i]);
        if (used + pages > sim_devices[i].limit) {
            return false;
        }
    }
    return true;
}

static CUresult bars(struct sim_call *call, unsigned needs) {
    CUresult result = state_bars(needs);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (sim_self()->in_callback && !(needs & SIM_IN_CALLBACK)) {
        return CUDA_ERROR_NOT_PERMITTED;
    }
    if (needs & SIM_CURRENT) {
        struct CUctx_st *context = sim_current();
        if (context == NULL) {
            return CUDA_ERROR_INVALID_CONTEXT;
        }
        result = sim_context_error(context);
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    if (needs & SIM_UNSAFE) {
        result = sim_capture_bars();
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    if (!has_room(call)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return needs & SIM_UNCOUNTED ? CUDA_SUCCESS : sim_refusal_of(call);
}

static void note_entry(void) {
    struct sim_thread *self = sim_self();
    inside++;
    late += ended && !ended_here;
    self->used = sim_current();
    if (self->used != NULL) {
        self->used->users++;
    }
}

static void note_exit(void) {
    struct sim_thread *self = sim_self();
    inside--;
    if (self->used != NULL) {
        self->used->users--;
    }
}

void sim_count_trespasses(unsigned count) {
    trespasses += count;
}

CUresult sim_enter(struct sim_call *call, unsigned needs) {
    sim_lock_take();
    sim_options_read();
    introduce(call);
    call->count++;
    note_entry();
    if (!(needs & SIM_UNCOUNTED)) {
        total++;
        if (sim_options.step != 0 && !forked()) {
            sim_step();
        }
    }
    if (call->latency_us != 0) {
        sim_lock_give();
        sim_pause(call->latency_us);
        sim_lock_take();
    }
    CUresult result = bars(call, needs);
    if (result != CUDA_SUCCESS) {
        sim_leave(result);
    }
    return result;
}

CUresult sim_leave(CUresult result) {
    note_exit();
    sim_lock_give();
    return result;
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

void sim_count_wait(bool blocked) {
    waits_called++;
    waits_blocked += blocked;
}

void sim_count_record(void) {
    records++;
}

void sim_count_device_wait(void) {
    device_waits++;
}

static unsigned long long count_of(const char *name) {
    for (struct sim_call *call = calls; call != NULL; call = call->next) {
        if (strcmp(call->name, name) == 0) {
            return call->count;
        }
    }
    return 0;
}

unsigned long long sim_call_count(const char *name) {
    sim_lock_take();
    unsigned long long count = strcmp(name, "total") == 0           ? total
                               : strcmp(name, "waits") == 0         ? waits_called
                               : strcmp(name, "blocked_waits") == 0 ? waits_blocked
                               : strcmp(name, "event_records") == 0 ? records
                               : strcmp(name, "device_waits") == 0  ? device_waits
                               : strcmp(name, "late") == 0          ? late
                               : strcmp(name, "trespasses") == 0    ? trespasses
                                                                    : count_of(name);
    sim_lock_give();
    return count;
}

static void print_stats(FILE *file) {
    fprintf(file,
            "{\"pid\": %ld, \"total\": %llu, \"cuMemAlloc\": %llu, \"cuMemFree\": %llu, "
            "\"cuCtxSynchronize\": %llu, \"event_records\": %llu, \"device_waits\": %llu, "
            "\"waits\": %llu, \"blocked_waits\": %llu, \"calls\": {",
            (long)getpid(), total, count_of("cuMemAlloc_v2"), count_of("cuMemFree_v2"),
            count_of("cuCtxSynchronize") + count_of("cuCtxSynchronize_v2"), records, device_waits,
            waits_called, waits_blocked);
    for (struct sim_call *call = calls; call != NULL; call = call->next) {
        fprintf(file, "\"%s\": %llu%s", call->name, call->count, call->next ? ", " : "");
    }
    fputs("}}\n", file);
}

static void write_stats(void) {
    char *line = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&line, &size);
    if (memory == NULL) {
        return;
    }
    print_stats(memory);
    fclose(memory);
    // One write, so that processes may share the file.
    int file = open(sim_options.stats, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 || write(file, line, size) != (ssize_t)size) {
        fprintf(stderr, "sim: SIM_STATS=%s: %s\n", sim_options.stats, strerror(errno));
    }
    if (file >= 0) {
        close(file);
    }
    free(line);
}

static void end(void) {
    if (forked()) {
        return;
    }
    sim_lock_take();
    ended = true;
    ended_here = true;
    late += inside;
    if (sim_options.stats != NULL) {
        write_stats();
    }
    sim_lock_give();
}

static bool watch_forks(void) {
    void *page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || madvise(page, (size_t)sysconf(_SC_PAGESIZE), MADV_WIPEONFORK) != 0) {
        return false;
    }
    atomic_store_explicit((atomic_int *)page, 1, memory_order_relaxed);
    atomic_store_explicit(&alive_page, page, memory_order_release);
    return true;
}

CUresult sim_initialise(void) {
    if (forked()) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (ended) {
        return CUDA_ERROR_DEINITIALIZED;
    }
    if (initialised) {
        return CUDA_SUCCESS;
    }
    CUresult result = sim_devices_open();
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (!watch_forks() || atexit(end) != 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    initialised = true;
    return CUDA_SUCCESS;
}
