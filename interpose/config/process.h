/*
 * The state of the whole process: its options, and whether the library may serve its allocations.
 * It is made at the first allocation.
 *
 * CUDA is unusable in a forked child, so there all calls are forwarded to the driver. The state
 * lies in memory that the kernel sets to zero in a forked child, so that `alive` becomes false.
 */
#ifndef BFC_INTERPOSE_PROCESS_H
#define BFC_INTERPOSE_PROCESS_H

#include <stdbool.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/config/log.h"
#include "interpose/config/options.h"

/* Flags of struct bfc_process: while both are set, a call need not check the other fields. */
enum bfc_usual {
    /* Allocations may come from a pool, no trace and no leaks are recorded, and the driver has all
     * calls that pooling needs. */
    BFC_USUAL_CALLS = 1,
    BFC_USUAL_FREES = 2, /* no job waits for memory, so a free need not tell anyone */
    BFC_USUAL = 3,
};

enum { BFC_COMPLAINTS = 4096 };
struct bfc_process {
    bool alive;  /* false in a forked child, where the kernel has set this memory to zero */
    bool active; /* false: a setting or a debugging tool disables the library */
    bool serves; /* whether allocations may come from a pool: `alive`, `active` and not `refuse` */
    /* whether allocations fail, because BFC_STRICT=1 is set and a setting was not accepted */
    bool refuse;
    unsigned usual; /* atomic: flags of enum bfc_usual */
    unsigned configuration_errors;
    struct bfc_options options;
    /* one line for each setting that was not accepted; what exceeds the size is cut off */
    char complaints[BFC_COMPLAINTS];
};

/* The process's state; NULL: not made yet. Other files read it only through the functions of this
 * header. */
extern struct bfc_process *bfc_process_made HIDDEN;

/* Whether both flags of enum bfc_usual are set, so that a call need check only its own
 * arguments. */
static inline bool bfc_process_is_usual(void) {
    const struct bfc_process *process = bfc_load_acquire(&bfc_process_made);
    return LIKELY(process && bfc_load_relaxed(&process->usual) == BFC_USUAL);
}

/* Whether this is a forked child; false also if the state is not made yet. In a child, none of the
 * library's threads run, and locks that other threads held at the fork are never released. */
static inline bool bfc_process_is_forked(void) {
    const struct bfc_process *process = bfc_load_acquire(&bfc_process_made);
    return process && !process->alive;
}

/* To be called when BFC_USUAL_CALLS no longer holds: from now on every allocation checks the whole
 * state of the process. */
void bfc_process_no_longer_usual(void);

/* Sets whether frees are watched: while a job waits for memory, each free takes the slow path,
 * which tells that job. */
void bfc_process_watch_frees(bool watch);

/* Whether a job waits for memory, so that frees take the slow path (bfc_process_watch_frees). */
static inline bool bfc_process_watches_frees(void) {
    const struct bfc_process *process = bfc_load_acquire(&bfc_process_made);
    return process && !(bfc_load_relaxed(&process->usual) & BFC_USUAL_FREES);
}

/* Whether allocations may come from a pool. False also if the state is not made yet. */
static inline bool bfc_process_serves(void) {
    const struct bfc_process *process = bfc_load_acquire(&bfc_process_made);
    return process && process->serves;
}

/* The process's state, which is made if there is none yet. NULL in a forked child, or if the host
 * has no memory. Thread-safe, lock-free. */
const struct bfc_process *bfc_process(void);

/* False: the C library has not set `environ` yet, so no settings can be read. */
bool bfc_process_has_environment(void);

/* Reads the settings into `options` without making the process's state. False: nothing is to be
 * pooled in this process. */
bool bfc_process_read_options(struct bfc_options *options);

/* The process's state; NULL if it is not made yet, and in a forked child. */
static inline const struct bfc_process *bfc_process_if_made(void) {
    const struct bfc_process *process = bfc_load_acquire(&bfc_process_made);
    return process && process->alive ? process : NULL;
}

#endif
