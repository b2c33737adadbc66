/*
 * An allocation that its pool could not serve, on its way through the last resorts (last_resort.h):
 * the request, and what the attempts so far have answered.
 */
#ifndef BFC_INTERPOSE_CALL_H
#define BFC_INTERPOSE_CALL_H

#include "interpose/arena/arena.h"
#include "interpose/reuse/allocate.h"

/* How a wait for others (BFC_WAIT) ended without memory. */
enum bfc_wait_end {
    BFC_WAIT_NOT_BEGUN,
    BFC_WAIT_TIME,   /* the time of BFC_WAIT was over */
    BFC_WAIT_SIGNAL, /* a signal handler of the program ran */
    BFC_WAIT_STUCK,  /* all waiting jobs hold what the others want, and this one was the youngest */
    BFC_WAIT_ENDED,  /* the context, or the process, is about to end */
};

struct bfc_call {
    const struct bfc_driver *driver;
    struct bfc_arena *arena; /* its context is current; once served, the block's arena */
    size_t bytes;
    enum bfc_reuse_how how;
    CUdeviceptr *pointer;   /* the result, set when the allocation is served */
    enum bfc_status status; /* the pool's answer; BFC_OK: the allocation is served */
    CUresult result;        /* result of the pool's last attempt */
    uint64_t since_ns;      /* when the pool had refused the allocation: CLOCK_MONOTONIC */
    enum bfc_wait_end waited;
    uint64_t waited_ns;
    bool in_pool;   /* only a block of the arena's own pool will do */
    bool is_first;  /* no other job that waits for memory is served before this call */
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

/* Makes `result` the answer to the call, if it is an error after which a context answers nothing
 * else. */
static inline void bfc_call_note_fatal(struct bfc_call *call, CUresult result) {
    if (bfc_driver_is_fatal(result))
        call->error = result;
}

/* Asks the pool once more. True: the call is served. If the call is not served, and its status is
 * no longer BFC_OUT_OF_MEMORY, no last resort can help. */
bool bfc_call_try_again(struct bfc_call *call);

/* Bytes that the pool would have to take from the device: with pages, what its ready pages do not
 * cover; else the smallest region that its policy would take. */
uint64_t bfc_call_lacks(const struct bfc_call *call);

/* Returns how many bytes the device lacks to serve the call and to keep BFC_RESERVE free; 0: it
 * lacks none. */
uint64_t bfc_call_device_lacks(const struct bfc_call *call);

/* Returns how many bytes must be given back before the allocation is within BFC_LIMIT. */
uint64_t bfc_call_limit_lacks(const struct bfc_call *call);

#endif
