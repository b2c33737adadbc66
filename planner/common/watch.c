#include "planner/common/watch.h"

#include "base/atomic.h"

/* The state of the progress counter; all of it is atomic. `wanted` is the number of steps of the
 * part of the work that is under way, and `done` how many of these are done. `first` and `last` say
 * at which percentages of the whole work that part begins and ends. */
static uint64_t wanted, done;
static uint64_t first, last;

static void begin_stretch(uint64_t from, uint64_t to, uint64_t steps) {
    bfc_store_relaxed(&done, (uint64_t)0);
    bfc_store_relaxed(&first, from);
    bfc_store_relaxed(&last, to);
    bfc_store_relaxed(&wanted, steps);
}

void watch_begin(uint64_t steps) {
    begin_stretch(0, steps > 0 ? 100 : 0, steps);
}

void watch_part(uint64_t percent, uint64_t steps) {
    begin_stretch(bfc_load_relaxed(&last), percent, steps);
}

void watch_add(uint64_t steps) {
    bfc_fetch_add_relaxed(&done, steps);
}

double watch_share(void) {
    const uint64_t all = bfc_load_relaxed(&wanted);
    const uint64_t some = bfc_load_relaxed(&done);
    const double part = all == 0 ? 0 : some >= all ? 1 : (double)some / (double)all;
    const uint64_t from = bfc_load_relaxed(&first);
    return ((double)from + part * (double)(bfc_load_relaxed(&last) - from)) / 100;
}
