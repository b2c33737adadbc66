/* The feature `watch`: the helper thread, which answers readers, and the summary at exit. */
#include "interpose/features/watch/watch.h"
#include "interpose/table/feature.h"

static void wake_waiters(struct bfc_arena *arena, CUdeviceptr pointer, CUresult result,
                         bool may_wait) {
    (void)arena, (void)pointer, (void)result, (void)may_wait;
    if (bfc_process_watches_frees())
        bfc_helper_wake_waiters();
}

static const struct bfc_feature watch = {
    .name = "watch",
    .segment_opened = bfc_helper_start,
    .freed = wake_waiters,
    .at_exit = bfc_summary_at_exit,
};
BFC_REGISTER_FEATURE(watch);
