/*
 * An allocation on its way from the program's call to its pool and, if that has no memory, to the
 * last resorts (last_resort.h): it carries what was asked for down, and what came of it up.
 */
#ifndef BFC_INTERPOSE_CALL_H
#define BFC_INTERPOSE_CALL_H

#include "interpose/arena/arena.h"
#include "interpose/reuse/allocate.h"

/* How a wait for others (BFC_WAIT) ended without memory. */
enum bfc_wait_end {
    BFC_WAIT_NOT_BEGUN,
    BFC_WAIT_TIME,   /* its time was over */
    BFC_WAIT_SIGNAL, /* a handler of the program's ran */
    BFC_WAIT_STUCK,  /* all who wait hold what the others want, and it was the youngest */
    BFC_WAIT_ENDED,  /* the context, or the process, is about to end */
};

struct bfc_call {
    const struct bfc_driver *driver;
    struct bfc_arena *arena; /* its context is current; once served, the one that the block is of */
    size_t bytes;
    enum bfc_reuse_how how;
    CUdeviceptr *pointer;   /* set when it is served */
    enum bfc_status status; /* the pool's answer; BFC_OK: it is served */
    CUresult result;        /* of the last time that the pool was asked again */
    uint64_t since_ns;      /* when the pool had refused it: the kernel's clock */
    enum bfc_wait_end waited;
    uint64_t waited_ns;
    bool in_pool;   /* only the arena's own pool will do */
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

/*
 * Asks the pool once more, since memory may have come. True: served. False, and the status is no
 * longer BFC_OUT_OF_MEMORY: nothing further can help.
 */
bool bfc_call_try_again(struct bfc_call *call);

/* Bytes that have to be taken for it: ready pages go to wherever they are wanted, and the policy
 * may take a region that is larger. */
uint64_t bfc_call_lacks(const struct bfc_call *call);

/* Bytes by which the device falls short of the allocation and of what is left to others; 0: of
 * none, as far as the driver tells. */
uint64_t bfc_call_device_lacks(const struct bfc_call *call);

/* Bytes that must go before the allocation is within BFC_LIMIT. */
uint64_t bfc_call_limit_lacks(const struct bfc_call *call);

#endif
