/* What is in use, beside a pool with pages. */
#include "tests/unit/pool/page_machine.h"

#include <string.h>

uint64_t machine_draw(struct machine *m, uint64_t n) {
    m->seed = m->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (m->seed >> 33) % n;
}

void machine_fail(struct machine *m, const char *fault) {
    if (!m->fault)
        m->fault = fault;
}

bool machine_meet(bfc_addr a, uint64_t a_bytes, bfc_addr b, uint64_t b_bytes) {
    return a < b + b_bytes && b < a + a_bytes;
}

static bool is_among(const struct busy *list, unsigned count, bfc_addr start, uint64_t bytes) {
    for (unsigned i = 0; i < count; i++)
        if (machine_meet(start, bytes, list[i].start, list[i].bytes))
            return true;
    return false;
}

/* What may not be unmapped now. */
bool machine_in_use(void *user, bfc_addr start, uint64_t bytes) {
    const struct machine *m = user;
    for (unsigned i = 0; i < m->count; i++)
        if (machine_meet(start, bytes, m->live[i].start, m->live[i].size))
            return true;
    for (unsigned i = 0; i < m->freed_count; i++)
        if (m->freed[i].fence > m->completed &&
            machine_meet(start, bytes, m->freed[i].start, m->freed[i].bytes))
            return true;
    return is_among(m->awaited, m->awaited_count, start, bytes) ||
           is_among(m->pinned, m->pins, start, bytes);
}

bfc_fence machine_poll(void *context) {
    struct fake_pages *fake = context;
    return ((struct machine *)fake->user)->completed;
}

/* All that is waited for completes, deferred blocks too. */
bfc_fence machine_wait(void *context, bfc_fence fence, uint64_t timeout_ns) {
    struct fake_pages *fake = context;
    struct machine *m = fake->user;
    (void)timeout_ns;
    if (fence == BFC_NO_FENCE) {
        if (m->awaited_count)
            bfc_pool_ready(m->pool, m->awaited[--m->awaited_count].start, BFC_NO_FENCE);
        return m->completed;
    }
    if (fence == BFC_DEFERRED_FENCE) {
        bfc_fence now = ++m->drawn;
        for (unsigned i = 0; i < m->freed_count; i++)
            if (m->freed[i].fence == BFC_DEFERRED_FENCE)
                m->freed[i].fence = now;
        bfc_pool_fence_deferred(m->pool, now, UINT64_MAX);
        fence = now;
    }
    m->completed = fence > m->completed ? fence : m->completed;
    return m->completed;
}

uint64_t machine_now(void *context) {
    struct fake_pages *fake = context;
    return ((struct machine *)fake->user)->clock;
}

static void note_freed(struct machine *m, bfc_addr start, bfc_addr end, bfc_fence fence) {
    if (start < end && m->freed_count < BUSY)
        m->freed[m->freed_count++] = (struct busy){start, end - start, fence};
}

/* What is handed out again belongs to its new owner, who says when it is ready. */
static void forget_freed(struct machine *m, bfc_addr start, uint64_t bytes) {
    for (unsigned i = 0; i < m->freed_count;) {
        struct busy f = m->freed[i];
        if (!machine_meet(start, bytes, f.start, f.bytes)) {
            i++;
            continue;
        }
        m->freed[i] = m->freed[--m->freed_count];
        note_freed(m, f.start, start, f.fence);
        note_freed(m, start + bytes, f.start + f.bytes, f.fence);
    }
}

static bool overlaps_freed(const struct machine *m, bfc_addr start, uint64_t bytes,
                           bfc_fence reported) {
    for (unsigned i = 0; i < m->freed_count; i++)
        if (m->freed[i].fence > m->completed && m->freed[i].fence > reported &&
            machine_meet(start, bytes, m->freed[i].start, m->freed[i].bytes))
            return true;
    return false;
}

static void note_new(struct machine *m, struct bfc_block_info block) {
    if (!fake_pages_backs(&m->fake, block.start, block.size))
        machine_fail(m, "a block was handed out without pages behind all of it");
    for (unsigned i = 0; i < m->count; i++)
        if (machine_meet(block.start, block.size, m->live[i].start, m->live[i].size))
            machine_fail(m, "two live blocks overlap");
    if (overlaps_freed(m, block.start, block.size, block.fence))
        machine_fail(m, "memory was handed out before its fence was complete");
    forget_freed(m, block.start, block.size);
    m->live[m->count++] = block;
}

enum bfc_status machine_allocate(struct machine *m, uint64_t bytes, unsigned flags) {
    struct bfc_block_info block;
    if (m->count == BLOCKS)
        return BFC_OK;
    enum bfc_status status = bfc_pool_allocate(m->pool, bytes, flags, &block);
    if (status == BFC_OK)
        note_new(m, block);
    return status;
}

static void allocate_planned(struct machine *m, uint64_t bytes) {
    struct bfc_block_info block;
    bfc_addr below[BFC_PLACE_HINTS] = {0};
    if (m->count == BLOCKS || !m->planned)
        return;
    bfc_addr at = m->planned + machine_draw(m, m->planned_bytes) / 65536 * 65536;
    if (bfc_pool_allocate_at(m->pool, at, bytes, 0, below, &block) != BFC_OK)
        return;
    if (block.start != at)
        machine_fail(m, "a block is elsewhere than was asked");
    note_new(m, block);
}

static void add_planned(struct machine *m) {
    uint64_t bytes = (1 + machine_draw(m, 12)) * 1024 * 1024 - machine_draw(m, 3) * 65536;
    bfc_addr start = 0;
    int error;
    if (bfc_pool_add_apart(m->pool, bytes, &start, &error) != BFC_OK)
        return;
    struct bfc_block_info block;
    if (!bfc_pool_find(m->pool, start, &block) || !block.planned || block.region_size < bytes)
        machine_fail(m, "a region that was set apart lacks memory");
    m->planned = start;
    m->planned_bytes = bytes;
}

void machine_plan(struct machine *m, uint64_t bytes) {
    switch (machine_draw(m, 8)) {
    case 0:
        add_planned(m);
        break;
    case 1:
        bfc_pool_set_apart(m->pool, m->planned, machine_draw(m, 2));
        break;
    case 2:
        if (machine_draw(m, 4) == 0)
            bfc_pool_trim_unplanned(m->pool, m->planned);
        break;
    default:
        allocate_planned(m, bytes);
    }
}

void machine_free(struct machine *m, unsigned i, bfc_fence fence) {
    struct bfc_block_info block = m->live[i];
    m->live[i] = m->live[--m->count];
    if (fence)
        note_freed(m, block.start, block.start + block.size, fence);
    if (bfc_pool_free(m->pool, block.start, fence) != BFC_OK)
        machine_fail(m, "a live block could not be freed");
}

void machine_check(struct machine *m) {
    struct bfc_page_stats pages;
    struct bfc_pool_stats stats;
    const char *fault = bfc_pool_check(m->pool);
    bfc_pool_read_stats(m->pool, &stats);
    bfc_pool_page_stats(m->pool, &pages);
    if (fault)
        machine_fail(m, fault);
    if (m->fake.fault)
        machine_fail(m, m->fake.fault);
    if (stats.reserved + pages.lost != m->fake.taken)
        machine_fail(m, "what is reserved differs from the device's account");
    uint64_t in_regions = fake_pages_in_regions(&m->fake);
    if (pages.addresses != m->fake.reserved ||
        pages.bare + stats.reserved - in_regions != pages.addresses)
        machine_fail(m, "the addresses differ from the device's account");
    if (pages.created - pages.released != m->fake.taken - in_regions)
        machine_fail(m, "made and given back differ from what there is");
}

void machine_close(struct machine *m) {
    m->count = m->freed_count = m->awaited_count = m->pins =
        0; /* the pool ends: nothing is in use */
    memset(m->fake.refuse_at, 0, sizeof m->fake.refuse_at);
    bfc_pool_destroy(m->pool, true);
    if (m->fake.fault)
        machine_fail(m, m->fake.fault);
    if (!fake_pages_is_clean(&m->fake))
        machine_fail(m, "pages or addresses were not given back at the end");
}
