#include "planner/common/watch.h"

#include "base/atomic.h"

static uint64_t wanted, done; /* atomic */

void watch_begin(uint64_t steps) {
    bfc_store_relaxed(&done, (uint64_t)0);
    bfc_store_relaxed(&wanted, steps);
}

void watch_add(uint64_t steps) {
    bfc_fetch_add_relaxed(&done, steps);
}

double watch_share(void) {
    const uint64_t all = bfc_load_relaxed(&wanted);
    const uint64_t some = bfc_load_relaxed(&done);
    return all == 0 ? 0 : some >= all ? 1 : (double)some / (double)all;
}
