/* Asking other jobs for memory: how much is lacking, and who may have it. */
#include "interpose/features/pressure/ask_others.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "interpose/config/log.h"
#include "interpose/config/process.h"
#include "interpose/features/pressure/yield.h"
#include "segment/queue.h"

/* Our other contexts may have given something back meanwhile, so what is lacking is asked again. */
static uint64_t ask_other_jobs(const struct bfc_call *call) {
    static unsigned seen;
    uint64_t lacking = bfc_call_device_lacks(call);
    uint64_t came = bfc_yield_ask(call->arena, lacking ? lacking : call->bytes);
    bfc_log_repeated(BFC_LOG_INFO, &seen,
                     "device %d: other jobs were asked for %s and gave back %s",
                     (int)call->arena->device, BFC_BYTES(call->bytes), BFC_BYTES(came));
    return came;
}

/* What one job gives back another one may take first: then once more, as long as something comes.
 */
#define LONGEST_NS BFC_NS_PER_SECOND

/* It will wait, and others wait already: what is asked for now is theirs. */
static bool waits_behind_others(const struct bfc_process *process, const struct bfc_call *call) {
    return process->options.wait > 0 && (process->options.last_resort >> BFC_RUNG_WAIT & 1) &&
           bfc_waiters_want(call->arena->stats.section).bytes;
}

/* Other processes do not help against our own limit. */
bool bfc_ask_jobs(struct bfc_call *call) {
    const struct bfc_process *process = bfc_process_if_made();
    if (!process || !process->options.yield || bfc_call_limit_lacks(call) ||
        waits_behind_others(process, call))
        return false;
    uint64_t until = bfc_now_ns() + LONGEST_NS;
    while (ask_other_jobs(call)) {
        if (bfc_call_try_again(call))
            return true;
        if (call->status != BFC_OUT_OF_MEMORY || bfc_now_ns() >= until)
            return false;
    }
    return false;
}
