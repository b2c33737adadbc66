#include "segment/queue.h"

#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/numbers.h"
#include "segment/request.h"

static bool is_before(const struct bfc_waiting *a, const struct bfc_waiting *b) {
    if (a->since_ns != b->since_ns)
        return a->since_ns < b->since_ns;
    return a->pid != b->pid ? a->pid < b->pid : a->slot < b->slot;
}

static bool is_first_of_process(const struct bfc_waiting *all, size_t index) {
    for (size_t i = 0; i < index; i++)
        if (all[i].pid == all[index].pid)
            return false;
    return true;
}

/* Returns `reach`, the bytes that can become free without the waiting processes, plus all bytes
 * that the waiting processes have reserved, but do not use. */
static uint64_t hoped_for(const struct bfc_waiting *all, size_t count, uint64_t reach) {
    for (size_t i = 0; i < count; i++)
        if (is_first_of_process(all, i))
            reach =
                bfc_add_saturating(reach, bfc_subtract_saturating(all[i].reserved, all[i].in_use));
    return reach;
}

/* Returns how many bytes waiter `index` could get if all other processes that began to wait after
 * it gave up their memory: what they have reserved, and `reach`, the bytes that can become free
 * without the waiting processes. */
static uint64_t with_younger(const struct bfc_waiting *all, size_t count, size_t index,
                             uint64_t reach) {
    for (size_t i = 0; i < count; i++)
        if (is_first_of_process(all, i) && all[i].pid != all[index].pid &&
            is_before(&all[index], &all[i]))
            reach = bfc_add_saturating(reach, all[i].reserved);
    return reach;
}

/* Returns the index of the oldest waiter that wants at most `reach` bytes, or, with `any`, of the
 * oldest waiter; `count`: there is no such waiter. */
static size_t first_within(const struct bfc_waiting *all, size_t count, uint64_t reach, bool any) {
    size_t first = count;
    for (size_t i = 0; i < count; i++)
        if ((any || all[i].bytes <= reach) && (first == count || is_before(&all[i], &all[first])))
            first = i;
    return first;
}

static bool would_serve_an_older_one(const struct bfc_waiting *all, size_t count, uint64_t reach) {
    for (size_t i = 0; i < count; i++)
        if (all[i].bytes <= with_younger(all, count, i, reach))
            return true;
    return false;
}

static size_t find_next(const struct bfc_waiting *all, size_t count, uint64_t reach) {
    size_t next = first_within(all, count, hoped_for(all, count, reach), false);
    return next < count ? next : first_within(all, count, reach, true);
}

struct bfc_queue_place bfc_queue_find_place(const struct bfc_waiting *all, size_t count, size_t own,
                                            uint64_t reach) {
    struct bfc_queue_place place = {.position = 1};
    size_t served = first_within(all, count, reach, false), older = 0;
    for (size_t i = 0; i < count; i++)
        older += is_before(&all[i], &all[own]);
    place.position += (uint32_t)older;
    place.is_next = (served < count ? served : find_next(all, count, reach)) == own;
    place.is_stuck =
        served == count && older + 1 == count && would_serve_an_older_one(all, count, reach);
    return place;
}

uint64_t bfc_in_driver_pages(uint64_t bytes) {
    if (bytes <= BFC_DRIVER_PAGE / 2 || bytes > UINT64_MAX - BFC_DRIVER_PAGE)
        return bytes;
    return (bytes + BFC_DRIVER_PAGE - 1) / BFC_DRIVER_PAGE * BFC_DRIVER_PAGE;
}

bool bfc_waiter_is_there(const struct bfc_waiter *waiter, uint64_t now_ns) {
    uint64_t seen = bfc_load_relaxed(&waiter->seen_ns);
    return bfc_load_acquire(&waiter->bytes) && seen <= now_ns + BFC_WAITER_LOST_NS &&
           now_ns <= seen + BFC_WAITER_LOST_NS;
}

void bfc_waiters_wake(struct bfc_segment_header *header) {
    for (unsigned i = 0; i < BFC_WAITERS; i++)
        if (bfc_load_acquire(&header->waiters[i].bytes))
            bfc_segment_wake(&header->waiters[i].wake);
}

/* An earlier announcement (bfc_waiters_announce) that runs out within this time may be over before
 * the job's helper thread looks again. So it does not count, and a new one wakes the helper thread.
 */
#define SOON_NS (UINT64_C(100) * 1000 * 1000)

static bool is_on(const struct bfc_segment_pool *section, const uint8_t device_uuid[16]) {
    return bfc_load_acquire(&section->state) == BFC_POOL_ACTIVE &&
           section->memory == BFC_MEMORY_DEVICE &&
           memcmp(section->device_uuid, device_uuid, sizeof section->device_uuid) == 0;
}

static bool exist_at(const struct bfc_segment_header *header, uint64_t ns) {
    const struct bfc_segment_pool *sections = bfc_segment_sections_of(header);
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS; i++)
        if (ns < bfc_load_acquire(&sections[i].awaited.until_ns))
            return true;
    return false;
}

/* Writes word by word into a job's segment what another job waits for. If the job reads while these
 * words change, it gives back too much or too little memory once. */
static void write_awaited(struct bfc_awaited *to, const struct bfc_awaited *awaited) {
    bfc_store_relaxed(&to->turn_ns, awaited->turn_ns);
    bfc_store_relaxed(&to->bytes, awaited->bytes);
    bfc_store_relaxed(&to->from_here, awaited->from_here);
    bfc_store_release(&to->until_ns, awaited->until_ns);
}

void bfc_waiters_announce(struct bfc_segment_header *header, const uint8_t device_uuid[16],
                          const struct bfc_awaited *awaited, uint64_t now_ns) {
    struct bfc_segment_pool *sections = bfc_segment_sections(header);
    bool known = exist_at(header, now_ns + SOON_NS);
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS; i++)
        if (is_on(&sections[i], device_uuid))
            write_awaited(&sections[i].awaited, awaited);
    if (!known)
        bfc_segment_wake(&header->request);
}

void bfc_waiters_note_given(struct bfc_segment_header *header, const uint8_t device_uuid[16]) {
    struct bfc_segment_pool *sections = bfc_segment_sections(header);
    for (unsigned i = 0; i < BFC_SEGMENT_POOLS; i++)
        if (is_on(&sections[i], device_uuid))
            bfc_store_relaxed(&sections[i].awaited.from_here, UINT64_MAX);
}

bool bfc_waiters_exist(const struct bfc_segment_header *header) {
    return exist_at(header, bfc_kernel_now_ns());
}

struct bfc_awaited bfc_waiters_want(const struct bfc_segment_pool *section) {
    const struct bfc_awaited *awaited = &section->awaited;
    uint64_t until = bfc_load_acquire(&awaited->until_ns);
    if (!until || bfc_kernel_now_ns() >= until)
        return (struct bfc_awaited){0};
    return (struct bfc_awaited){.until_ns = until,
                                .turn_ns = bfc_load_relaxed(&awaited->turn_ns),
                                .bytes = bfc_load_relaxed(&awaited->bytes),
                                .from_here = bfc_load_relaxed(&awaited->from_here)};
}
