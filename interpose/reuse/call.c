/* An allocation that its pool could not serve. */
#include "interpose/reuse/call.h"

#include "base/atomic.h"
#include "base/numbers.h"
#include "pool/pages.h"
#include "segment/queue.h"

bool bfc_call_try_again(struct bfc_call *call) {
    struct bfc_outcome outcome;
    call->result = bfc_reuse_allocate_again(call->driver, call->arena, call->bytes, call->how,
                                            call->is_first, &outcome);
    call->status = outcome.status;
    if (outcome.status != BFC_OK && outcome.error != CUDA_SUCCESS)
        call->error = outcome.error;
    if (outcome.status != BFC_OK || call->result != CUDA_SUCCESS)
        return false;
    *call->pointer = outcome.pointer;
    return true;
}

uint64_t bfc_call_lacks(const struct bfc_call *call) {
    struct bfc_page_stats pages;
    if (!bfc_pool_page_stats(call->arena->pool, &pages))
        return bfc_pool_least_growth(call->arena->pool, call->bytes);
    return bfc_subtract_saturating(bfc_in_driver_pages(call->bytes), pages.ready);
}

uint64_t bfc_call_device_lacks(const struct bfc_call *call) {
    size_t free_bytes, total;
    if (!call->driver->cuMemGetInfo_v2 ||
        call->driver->cuMemGetInfo_v2(&free_bytes, &total) != CUDA_SUCCESS)
        return call->bytes;
    uint64_t lacks = bfc_in_driver_pages(bfc_call_lacks(call));
    return bfc_subtract_saturating(lacks + call->arena->left_to_others, free_bytes);
}

uint64_t bfc_call_limit_lacks(const struct bfc_call *call) {
    uint64_t reserved = bfc_load_relaxed(&call->arena->on->reserved);
    return bfc_subtract_saturating(bfc_add_saturating(reserved, bfc_call_lacks(call)),
                                   call->arena->limit);
}
