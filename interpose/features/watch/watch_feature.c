/* The feature `watch`: the helper thread, which answers readers, and the summary at exit. */
#include "interpose/features/watch/watching.h"
#include "interpose/table/feature.h"

static const struct bfc_feature watch = {
    .name = "watch",
    .segment_opened = bfc_helper_start,
    .freed = bfc_helper_wake_waiters,
    .at_exit = bfc_summary_at_exit,
};
BFC_REGISTER_FEATURE(watch);
