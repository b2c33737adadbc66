/* Who sees all allocations and frees. */
#include "interpose/config/process.h"
#include "interpose/plan/plan.h"

const struct bfc_plan_watcher *bfc_plan_watcher; /* atomic */

void bfc_plan_watch(const struct bfc_plan_watcher *watcher) {
    bfc_store_release(&bfc_plan_watcher, watcher);
    bfc_process_watch_calls(watcher);
}
