/* The feature `watch`: the helper thread, which answers readers, and the summary at exit. */
#include "interpose/features/watch/helper.h"
#include "interpose/features/watch/summary.h"
#include "interpose/table/feature.h"

static void tell_waiters(struct bfc_arena *arena, CUdeviceptr pointer, CUresult result,
                         bool may_wait) {
    (void)arena, (void)pointer, (void)result, (void)may_wait;
    if (bfc_process_watches_frees())
        bfc_helper_tell_waiters();
}

static const struct bfc_feature watch = {
    .name = "watch",
    .segment_opened = bfc_helper_start,
    .freed = tell_waiters,
    .at_exit = bfc_summary_tell,
};
BFC_REGISTER_FEATURE(watch);
