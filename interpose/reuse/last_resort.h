/*
 * What is tried for an allocation that its pool could not serve, before the program gets an
 * out-of-memory error (docs/internals/out-of-memory.md): the process's other contexts, and what the
 * features offer (struct bfc_resort), in the order of enum bfc_rung. The pool has tried its own
 * last resorts, the first rung, before (pool/regions/last_resorts.c).
 *
 * Thread-safe; no lock is held.
 */
#ifndef BFC_INTERPOSE_LAST_RESORT_H
#define BFC_INTERPOSE_LAST_RESORT_H

#include "interpose/arena/arena.h"
#include "interpose/reuse/allocate.h"

/* How a wait for other jobs (BFC_WAIT) ended without memory. */
enum bfc_wait_end {
    BFC_WAIT_NOT_BEGUN,
    BFC_WAIT_TIME,   /* the time of BFC_WAIT was over */
    BFC_WAIT_SIGNAL, /* a signal handler of the program ran */
    /* all waiting jobs hold memory that the others want, and this job was the youngest of them */
    BFC_WAIT_STUCK,
    BFC_WAIT_ENDED, /* the context, or the process, is about to end */
};

/* An allocation that its pool could not serve, and what the attempts to serve it have answered so
 * far. */
struct bfc_call {
    const struct bfc_driver *driver;
    /* an arena whose context is current; once the call is served, the block's arena */
    struct bfc_arena *arena;
    size_t bytes;
    enum bfc_reuse_how how;
    CUdeviceptr *pointer;   /* where the block's address is stored when the allocation is served */
    enum bfc_status status; /* the pool's answer; BFC_OK: the allocation is served */
    CUresult result;        /* result of the pool's last attempt */
    uint64_t since_ns;      /* when the pool first refused the allocation, by CLOCK_MONOTONIC */
    enum bfc_wait_end waited;
    uint64_t waited_ns;
    bool in_pool;                         /* whether only a block of the arena's own pool will do */
    bool (*again)(struct bfc_call *call); /* makes another attempt; NULL: the pool is asked */
    bool is_first;  /* whether the call may take memory for which other jobs wait */
    CUresult error; /* what the driver answered last when the pool asked it for memory, or
                       CUDA_SUCCESS */
};

static inline struct bfc_call bfc_call_of(const struct bfc_driver *driver, struct bfc_arena *arena,
                                          size_t bytes, enum bfc_reuse_how how,
                                          CUdeviceptr *pointer, enum bfc_status status,
                                          CUresult error) {
    return (struct bfc_call){.driver = driver,
                             .arena = arena,
                             .bytes = bytes,
                             .how = how,
                             .pointer = pointer,
                             .status = status,
                             .error = error,
                             .result = CUDA_ERROR_OUT_OF_MEMORY};
}

/* Makes `result` the answer to the call, if it is an error after which every call in the context
 * fails. */
static inline void bfc_call_note_fatal(struct bfc_call *call, CUresult result) {
    if (bfc_driver_is_fatal(result))
        call->error = result;
}

/* Asks the pool once more. True: the call is served. If the call is not served, and its status is
 * no longer BFC_OUT_OF_MEMORY, no last resort can help. */
bool bfc_call_try_again(struct bfc_call *call);

/* Returns how many bytes the pool would have to take from the device: with pages, what its ready
 * pages do not cover; else the smallest region that its policy would take. */
uint64_t bfc_call_lacks(const struct bfc_call *call);

/* Returns how many bytes the device lacks to serve the call and to keep BFC_RESERVE free; 0: it
 * lacks none. */
uint64_t bfc_call_device_lacks(const struct bfc_call *call);

/* Returns how many bytes must be given back before the allocation is within BFC_LIMIT. */
uint64_t bfc_call_limit_lacks(const struct bfc_call *call);

/* Tries the resorts that BFC_LAST_RESORT leaves in force, until the allocation is served or its
 * status is not BFC_OUT_OF_MEMORY any more. Returns CUDA_SUCCESS, or the error. The call's status
 * is then the last answer of the pool. */
CUresult bfc_last_resort(struct bfc_call *call);

/* To be called before the program gets an out-of-memory error: counts and notes the failure, and
 * has features explain it. */
void bfc_last_resort_failed(const struct bfc_call *call);

#endif
