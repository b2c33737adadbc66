/* An allocation that its pool could not serve. */
#include "interpose/features/pressure/want.h"

#include "base/atomic.h"
#include "base/numbers.h"
#include "pool/pages.h"
#include "segment/queue.h"

bool bfc_want_again(struct bfc_want *want) {
    want->result = bfc_reuse_allocate_again(want->driver, want->arena, want->bytes, want->how,
                                            want->pointer, &want->status);
    return want->status == BFC_OK && want->result == CUDA_SUCCESS;
}

uint64_t bfc_want_lacks(const struct bfc_want *want) {
    struct bfc_page_stats pages;
    if (!bfc_pool_page_stats(want->arena->pool, &pages))
        return want->bytes;
    return bfc_subtract_saturating(bfc_in_driver_pages(want->bytes), pages.ready);
}

uint64_t bfc_want_device_lacks(const struct bfc_want *want) {
    size_t free_bytes, total;
    if (!want->driver->cuMemGetInfo_v2 ||
        want->driver->cuMemGetInfo_v2(&free_bytes, &total) != CUDA_SUCCESS)
        return want->bytes;
    uint64_t lacks = bfc_in_driver_pages(bfc_want_lacks(want));
    return bfc_subtract_saturating(lacks + want->arena->left_to_others, free_bytes);
}

uint64_t bfc_want_limit_lacks(const struct bfc_want *want) {
    uint64_t reserved = bfc_load_relaxed(&want->arena->on->reserved);
    return bfc_subtract_saturating(bfc_add_saturating(reserved, bfc_want_lacks(want)),
                                   want->arena->limit);
}
