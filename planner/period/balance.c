#include "planner/period/balance.h"

#include "base/numbers.h"

/* The number of live blocks at the ends of repetitions may differ by 1 / DIFFERENT of the number of
 * allocations of one repetition. Some difference must be allowed: there is one even in a real loop
 * if a fifth of its allocations changes from repetition to repetition. */
#define DIFFERENT 2

struct range {
    uint64_t least, most;
};

static void widen_range(struct range *range, uint64_t live) {
    range->least = bfc_min(range->least, live);
    range->most = bfc_max(range->most, live);
}

bool is_balanced(const struct events *events, const uint32_t *ends, uint32_t count) {
    uint64_t allocated = 0, freed = 0, since = 0;
    struct range range = {UINT64_MAX, 0};
    if (count < 2)
        return true;
    for (uint32_t e = 0, end = 0;; e++) {
        if (e == ends[end]) {
            since = end == 0 ? allocated : since;
            widen_range(&range, allocated - freed);
            if (++end == count)
                break;
        }
        freed += events->list[e].is_free;
        allocated += !events->list[e].is_free;
    }
    return (range.most - range.least) * DIFFERENT * (count - 1) <= allocated - since;
}
