/*
 * The state of the whole process: its options, and whether the library may act in it.
 *
 * It is made at the first allocation; a process that never allocates has none. CUDA is unusable in
 * a forked child, so everything is forwarded there: the state lies in memory that the kernel wipes
 * in such a child, so that `alive` is false there.
 */
#ifndef BFC_INTERPOSE_PROCESS_H
#define BFC_INTERPOSE_PROCESS_H

#include <stdbool.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/config/log.h"
#include "interpose/config/options.h"

/* While both flags are set, a call need not check the state of the process. */
enum bfc_usual {
    /* Allocations may come from a pool, no trace and no leaks are recorded, and the driver has all
     * that pooling needs. */
    BFC_USUAL_CALLS = 1,
    BFC_USUAL_FREES = 2, /* no allocation of any job waits for what this process frees */
    BFC_USUAL = 3,
};

enum { BFC_COMPLAINTS = 4096 };
struct bfc_process {
    bool alive;  /* false in a forked child, where the kernel has wiped this memory */
    bool active; /* false: a variable disables the library */
    bool serves; /* whether allocations may come from a pool: `alive`, `active` and not `refuse` */
    /* whether allocations fail, because BFC_STRICT=1 is set and a setting was not accepted */
    bool refuse;
    unsigned usual; /* atomic: those flags of BFC_USUAL that are set */
    unsigned configuration_errors;
    struct bfc_options options;
    char complaints[BFC_COMPLAINTS]; /* one line for each setting that was not accepted, cut off */
};

/* The process's state once it is made; wiped in a forked child. Other files read it only by the
 * functions of this file. */
extern struct bfc_process *bfc_process_made HIDDEN;

/* Whether nothing in the process's state forbids pooling or asks for another check, so that only
 * the call itself remains to be checked. */
static inline bool bfc_process_is_usual(void) {
    const struct bfc_process *process = bfc_load_acquire(&bfc_process_made);
    return LIKELY(process && bfc_load_relaxed(&process->usual) == BFC_USUAL);
}

/* Whether this is a forked child. None of our threads run in it, and locks that other threads held
 * at the fork are never released. Also false before the state is made. */
static inline bool bfc_process_is_forked(void) {
    const struct bfc_process *process = bfc_load_acquire(&bfc_process_made);
    return process && !process->alive;
}

/* To be called when the state of the process is no longer usual: from now on every call checks
 * it. */
void bfc_process_no_longer_usual(void);

/* Sets whether frees are watched: while a job waits for memory, each free leaves the fast path. */
void bfc_process_watch_frees(bool watch);

/* Whether frees are watched (bfc_process_watch_frees). */
static inline bool bfc_process_watches_frees(void) {
    const struct bfc_process *process = bfc_load_acquire(&bfc_process_made);
    return process && !(bfc_load_relaxed(&process->usual) & BFC_USUAL_FREES);
}

/* Whether allocations may come from a pool, as far as is known without making the state. */
static inline bool bfc_process_serves(void) {
    const struct bfc_process *process = bfc_load_acquire(&bfc_process_made);
    return process && process->serves;
}

/* The process's state, made now if this is its first call. NULL in a forked child, or when the host
 * has no memory. Thread-safe, lock-free. */
const struct bfc_process *bfc_process(void);

/* False: the C library was not initialised yet, so there are no settings to be read. */
bool bfc_process_has_environment(void);

/* Reads the settings, and makes no state. False: nothing is to be pooled in this process. */
bool bfc_process_read_options(struct bfc_options *options);

/* The process's state. NULL if it was not made yet, and in a forked child. */
static inline const struct bfc_process *bfc_process_if_made(void) {
    const struct bfc_process *process = bfc_load_acquire(&bfc_process_made);
    return process && process->alive ? process : NULL;
}

#endif
