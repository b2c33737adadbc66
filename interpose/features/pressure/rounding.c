/* Computes by how much the driver rounds up what pools take from it. */
#include "interpose/features/pressure/pressure.h"

#include "base/numbers.h"
#include "interpose/arena/region_map.h"
#include "segment/queue.h"

/* Returns what the driver adds to the arena's regions. Small regions of a context share pages of
 * the driver, and the last of these pages is partly unused. */
static uint64_t rounded_up_in(const struct bfc_arena *arena) {
    uint64_t start = 0, bytes = 0, sum = 0, small = 0;
    while (!arena->has_pages && bfc_region_next(start + bytes, arena, &start, &bytes)) {
        sum += bfc_in_driver_pages(bytes) - bytes;
        small += bytes <= BFC_DRIVER_PAGE / 2 ? bytes : 0;
    }
    return sum + (BFC_DRIVER_PAGE - small % BFC_DRIVER_PAGE) % BFC_DRIVER_PAGE;
}

uint64_t bfc_rounded_up_on(CUdevice device) {
    struct bfc_arena *arena = NULL;
    uint64_t sum = 0;
    while ((arena = bfc_arena_next_on(device, arena)))
        sum += rounded_up_in(arena);
    return sum;
}

/* Returns the most that the driver can have taken for regions above 1 MiB: it makes each less than
 * twice as large, and less than a page larger. */
uint64_t bfc_rounded_at_most(uint64_t bytes, const struct bfc_other_job *job) {
    return bfc_add_saturating(bytes, bfc_min(bytes, job->regions * BFC_DRIVER_PAGE));
}
