/* Asking others for memory: how much is lacking, and who may have it. */
#include "interpose/watch/ask_others.h"

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/numbers.h"
#include "interpose/config/log.h"
#include "interpose/config/process.h"
#include "interpose/reuse/give_back.h"
#include "interpose/watch/yield.h"

/* What the device lacks for these bytes, and what is left to others; its context is current. */
static uint64_t device_lacks(const struct bfc_arena *arena, uint64_t bytes) {
    const struct bfc_driver *driver = bfc_driver();
    size_t free_bytes, total;
    if (!driver->cuMemGetInfo_v2 || driver->cuMemGetInfo_v2(&free_bytes, &total) != CUDA_SUCCESS)
        return bytes;
    return bfc_subtract_saturating(bytes + arena->left_to_others, free_bytes);
}

/* What must go before these bytes are within the limit. */
static uint64_t limit_lacks(const struct bfc_arena *arena, uint64_t bytes) {
    return bfc_subtract_saturating(bfc_load_relaxed(&arena->on->reserved) + bytes, arena->limit);
}

/* Our other contexts may have given something back meanwhile, so what is lacking is asked again. */
static uint64_t ask_jobs_and_log(struct bfc_arena *arena, uint64_t bytes) {
    static unsigned seen;
    uint64_t lacking = device_lacks(arena, bytes);
    uint64_t came = bfc_yield_ask(arena, lacking ? lacking : bytes);
    bfc_log_repeated(BFC_LOG_INFO, &seen,
                     "device %d: other jobs were asked for %s and gave back %s", (int)arena->device,
                     BFC_BYTES(bytes), BFC_BYTES(came));
    return came;
}

/* Where nothing seems to be lacking the driver knows better. Other processes do not help against
 * our own limit. */
uint64_t bfc_ask_others(void *context, uint64_t bytes) {
    struct bfc_arena *arena = context;
    const struct bfc_process *process = bfc_process_if_made();
    uint64_t lacking = device_lacks(arena, bytes), over = limit_lacks(arena, bytes);
    if (!lacking && !over)
        lacking = bytes;
    uint64_t came = bfc_give_back_for_sibling(arena, lacking > over ? lacking : over);
    if (came < lacking && process && process->options.yield)
        came += ask_jobs_and_log(arena, bytes);
    return came;
}
