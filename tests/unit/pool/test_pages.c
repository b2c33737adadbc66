/*
 * Pages behind the pool: random programs against a device that knows what is behind each address
 * and a model of what is in use, with the checker after every step; each kind of call refused once
 * at each of its first times; and the promise of pages.h.
 *
 * BFC_TEST_PROGRAMS says how many programs to run; the first argument is the seed of the first.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/pool/fake_pages.h"

#define MIB (UINT64_C(1) << 20)
#define BLOCKS 128
#define BUSY 4096
#define PINS 8
#define STEPS 300
#define CAPACITY (64 * MIB)

struct busy {
    bfc_addr start;
    uint64_t bytes;
    bfc_fence fence; /* freed under it */
};

struct machine {
    struct fake_pages fake;
    struct bfc_pool *pool;
    struct bfc_block_info live[BLOCKS];
    unsigned count;
    struct busy pinned[PINS]; /* live or freed meanwhile */
    unsigned pins;
    struct busy freed[BUSY]; /* what is not known to be complete */
    unsigned freed_count;
    bfc_fence drawn, completed;
    struct busy awaited[BLOCKS];
    unsigned awaited_count;
    uint64_t seed, clock;
    const char *fault;
};

static uint64_t draw(struct machine *m, uint64_t n) {
    m->seed = m->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (m->seed >> 33) % n;
}

static void fail(struct machine *m, const char *fault) {
    if (!m->fault)
        m->fault = fault;
}

static bool meet(bfc_addr a, uint64_t a_bytes, bfc_addr b, uint64_t b_bytes) {
    return a < b + b_bytes && b < a + a_bytes;
}

static bool is_among(const struct busy *list, unsigned count, bfc_addr start, uint64_t bytes) {
    for (unsigned i = 0; i < count; i++)
        if (meet(start, bytes, list[i].start, list[i].bytes))
            return true;
    return false;
}

/* What may not be unmapped now. */
static bool in_use(void *user, bfc_addr start, uint64_t bytes) {
    const struct machine *m = user;
    for (unsigned i = 0; i < m->count; i++)
        if (meet(start, bytes, m->live[i].start, m->live[i].size))
            return true;
    for (unsigned i = 0; i < m->freed_count; i++)
        if (m->freed[i].fence > m->completed &&
            meet(start, bytes, m->freed[i].start, m->freed[i].bytes))
            return true;
    return is_among(m->awaited, m->awaited_count, start, bytes) ||
           is_among(m->pinned, m->pins, start, bytes);
}

static bfc_fence poll(void *context) {
    struct fake_pages *fake = context;
    return ((struct machine *)fake->user)->completed;
}

/* All that is waited for completes, deferred blocks too. */
static bfc_fence wait(void *context, bfc_fence fence, uint64_t timeout_ns) {
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

static uint64_t now(void *context) {
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
        if (!meet(start, bytes, f.start, f.bytes)) {
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
            meet(start, bytes, m->freed[i].start, m->freed[i].bytes))
            return true;
    return false;
}

static enum bfc_status allocate(struct machine *m, uint64_t bytes, unsigned flags) {
    struct bfc_block_info block;
    if (m->count == BLOCKS)
        return BFC_OK;
    enum bfc_status status = bfc_pool_allocate(m->pool, bytes, flags, &block);
    if (status != BFC_OK)
        return status;
    if (!fake_pages_backs(&m->fake, block.start, block.size))
        fail(m, "a block was handed out without pages behind all of it");
    for (unsigned i = 0; i < m->count; i++)
        if (meet(block.start, block.size, m->live[i].start, m->live[i].size))
            fail(m, "two live blocks overlap");
    if (overlaps_freed(m, block.start, block.size, block.fence))
        fail(m, "memory was handed out before its fence was complete");
    forget_freed(m, block.start, block.size);
    m->live[m->count++] = block;
    return BFC_OK;
}

static void free_block(struct machine *m, unsigned i, bfc_fence fence) {
    struct bfc_block_info block = m->live[i];
    m->live[i] = m->live[--m->count];
    if (fence)
        note_freed(m, block.start, block.start + block.size, fence);
    if (bfc_pool_free(m->pool, block.start, fence) != BFC_OK)
        fail(m, "a live block could not be freed");
}

static void free_awaited(struct machine *m, unsigned i) {
    struct bfc_block_info block = m->live[i];
    m->live[i] = m->live[--m->count];
    m->awaited[m->awaited_count++] = (struct busy){block.start, block.size, 0};
    if (bfc_pool_free_awaited(m->pool, block.start) != BFC_OK)
        fail(m, "a live block could not be freed");
}

static void free_some(struct machine *m) {
    if (!m->count)
        return;
    unsigned i = (unsigned)draw(m, m->count);
    switch (draw(m, 8)) {
    case 0:
        free_block(m, i, BFC_DEFERRED_FENCE);
        break;
    case 1:
        if (m->awaited_count < BLOCKS)
            free_awaited(m, i);
        break;
    case 2:
    case 3:
        free_block(m, i, ++m->drawn);
        break;
    default:
        free_block(m, i, BFC_NO_FENCE);
    }
}

static void pin_some(struct machine *m) {
    unsigned i = m->count ? (unsigned)draw(m, m->count) : 0;
    if (m->pins && (m->pins == PINS || draw(m, 2))) {
        struct busy gone = m->pinned[--m->pins];
        bfc_pool_unpin(m->pool, gone.start, gone.bytes);
    } else if (m->count && fake_pages_is_in_region(&m->fake, m->live[i].start)) {
        if (bfc_pool_pin(m->pool, m->live[i].start, m->live[i].size))
            fail(m, "a block without pages could be pinned");
    } else if (m->count) {
        m->pinned[m->pins++] = (struct busy){m->live[i].start, m->live[i].size, 0};
        if (!bfc_pool_pin(m->pool, m->live[i].start, m->live[i].size))
            fail(m, "a live block could not be pinned");
    }
    if (bfc_pool_pin(m->pool, 4096, 4096))
        fail(m, "foreign addresses could be pinned");
}

static void complete(struct machine *m, bfc_fence fence) {
    m->completed = fence > m->completed ? fence : m->completed;
    bfc_pool_complete(m->pool, fence);
}

static uint64_t size_of(struct machine *m) {
    return 1 + draw(m, UINT64_C(1) << (9 + draw(m, 15)));
}

static void step(struct machine *m) {
    static const unsigned flags[] = {0, 0, BFC_ALLOCATE_PENDING, BFC_ALLOCATE_HIT_ONLY};
    switch (draw(m, 16)) {
    case 0:
        complete(m, m->drawn - draw(m, m->drawn - m->completed + 1));
        break;
    case 1:
        bfc_pool_trim(m->pool, draw(m, 2) ? UINT64_MAX : draw(m, 8) * MIB);
        break;
    case 2:
        m->clock += draw(m, 1000);
        bfc_pool_trim_idle(m->pool, draw(m, 1000));
        break;
    case 3:
        pin_some(m);
        break;
    case 4:
        if (draw(m, 4) == 0)
            m->fake.refuse_at[draw(m, PAGE_CALLS)] += (unsigned)draw(m, 20);
        break;
    case 5:
    case 6:
    case 7:
    case 8:
        free_some(m);
        break;
    default:
        allocate(m, size_of(m), flags[draw(m, 4)]);
    }
}

static void check(struct machine *m) {
    struct bfc_page_stats pages;
    struct bfc_pool_stats stats;
    const char *fault = bfc_pool_check(m->pool);
    bfc_pool_read_stats(m->pool, &stats);
    bfc_pool_page_stats(m->pool, &pages);
    if (fault)
        fail(m, fault);
    if (m->fake.fault)
        fail(m, m->fake.fault);
    if (stats.reserved + pages.lost != m->fake.taken)
        fail(m, "what is reserved differs from the device's account");
    uint64_t in_regions = fake_pages_in_regions(&m->fake);
    if (pages.addresses != m->fake.reserved ||
        pages.bare + stats.reserved - in_regions != pages.addresses)
        fail(m, "the addresses differ from the device's account");
    if (pages.created - pages.released != m->fake.taken - in_regions)
        fail(m, "made and given back differ from what there is");
}

static void open_machine(struct machine *m, uint64_t seed) {
    static const uint64_t granules[] = {UINT64_C(1) << 16, UINT64_C(1) << 18, 2 * MIB};
    memset(m, 0, sizeof *m);
    m->seed = seed * 77 + 5;
    struct bfc_pool_config config;
    bfc_pool_config_default(&config);
    fake_pages_init(&m->fake, granules[draw(m, 3)], CAPACITY);
    m->fake.in_use = in_use;
    m->fake.user = m;
    if (draw(m, 4) == 0)
        m->fake.calls.addresses = 4 * MIB;
    config.policy = draw(m, 4) ? BFC_POLICY_BFC : (enum bfc_policy)draw(m, 3);
    config.growth = (enum bfc_growth)draw(m, 4);
    config.preallocate = 8 * MIB;
    config.growth_size = draw(m, 2) ? 2 * MIB : 65536;
    config.page_most = draw(m, 2) ? 512 * MIB : MIB;
    config.page_slack = draw(m, 2) ? 0.03 : 0;
    config.limit = draw(m, 3) ? UINT64_MAX : 40 * MIB;
    config.pending_budget = draw(m, 2) ? 0 : 8 * MIB;
    config.track_idle = draw(m, 2);
    struct bfc_upstream upstream = {
        .context = &m->fake, .poll = poll, .wait = wait, .now = now, .pages = &m->fake.calls};
    m->fake.fail = draw(m, 2);
    m->fake.refuse_on = draw(m, 8) == 0;
    if (draw(m, 2)) {
        upstream.reserve = fake_pages_reserve_region;
        upstream.release = fake_pages_release_region;
    }
    if (bfc_pool_create(&m->pool, &config, &upstream) != BFC_OK)
        abort();
}

static void close_machine(struct machine *m) {
    m->count = m->freed_count = m->awaited_count = m->pins =
        0; /* the pool ends: nothing is in use */
    memset(m->fake.refuse_at, 0, sizeof m->fake.refuse_at);
    bfc_pool_destroy(m->pool, true);
    if (m->fake.fault)
        fail(m, m->fake.fault);
    if (!fake_pages_is_clean(&m->fake))
        fail(m, "pages or addresses were not given back at the end");
}

static const char *run(uint64_t seed, int refused, unsigned at) {
    static struct machine m;
    open_machine(&m, seed);
    if (refused >= 0)
        m.fake.refuse_at[refused] = at;
    for (int i = 0; i < STEPS && !m.fault; i++) {
        step(&m);
        check(&m);
    }
    close_machine(&m);
    return m.fault;
}

/* ---- the promise ---- */

/* Bytes of pages and regions of which a byte is live. */
static uint64_t bytes_held(const struct machine *m) {
    uint64_t bytes = 0;
    for (bfc_page p = 1; p <= m->fake.named; p++) {
        const struct fake_page *page = &m->fake.pages[p];
        bool held = false;
        for (unsigned i = 0; page->start && i < m->count; i++)
            held |= meet(page->start, page->bytes, m->live[i].start, m->live[i].size);
        bytes += held ? page->bytes : 0;
    }
    return bytes;
}

static uint64_t round_up(uint64_t bytes, uint64_t to) {
    return (bytes + to - 1) / to * to;
}

/* What no plan can move: what has a live byte, is mapped for good, or all if nothing is unmapped.
 */
static uint64_t bytes_stuck(struct machine *m) {
    struct bfc_page_stats pages;
    if (m->fake.refuse_on && m->fake.refuse_at[PAGE_UNMAP])
        return m->fake.taken;
    bfc_pool_page_stats(m->pool, &pages);
    return bytes_held(m) + pages.lost;
}

/* With all free blocks ready, or as soon as they are waited for: what fails would not have fitted,
 * whatever had moved. Of the kind `refused` the call `at` and, if the seed is odd, all later ones
 * are refused, for another reason than a lack of memory; then there are regions too. */
static const char *run_promise(uint64_t seed, int refused, unsigned at) {
    static struct machine m;
    struct bfc_pool_config config;
    memset(&m, 0, sizeof m);
    m.seed = seed;
    fake_pages_init(&m.fake, draw(&m, 2) ? UINT64_C(1) << 16 : 2 * MIB, CAPACITY);
    m.fake.in_use = in_use;
    m.fake.user = &m;
    bfc_pool_config_default(&config);
    config.limit = draw(&m, 2) ? UINT64_MAX : 48 * MIB;
    config.page_most = draw(&m, 2) ? 512 * MIB : 2 * MIB;
    uint64_t allowed = config.limit < CAPACITY ? config.limit : CAPACITY;
    bool fenced = draw(&m, 2);
    struct bfc_upstream upstream = {
        .context = &m.fake, .poll = poll, .wait = wait, .pages = &m.fake.calls};
    if (refused >= 0) {
        upstream.reserve = fake_pages_reserve_region;
        upstream.release = fake_pages_release_region;
        m.fake.fail = true;
        m.fake.refuse_on = seed % 2;
        m.fake.refuse_at[refused] = at;
    }
    if (bfc_pool_create(&m.pool, &config, &upstream) != BFC_OK)
        abort();
    for (int i = 0; i < STEPS && !m.fault; i++) {
        if (m.count && draw(&m, 100) < 42)
            free_block(&m, (unsigned)draw(&m, m.count), fenced ? ++m.drawn : BFC_NO_FENCE);
        uint64_t bytes = size_of(&m), held = bytes_stuck(&m);
        enum bfc_status status = allocate(&m, bytes, 0);
        if (status != BFC_OK && held + round_up(bytes, m.fake.calls.granule) <= allowed)
            fail(&m, "an allocation failed that fits beside the pages that are in use");
        check(&m);
    }
    close_machine(&m);
    return m.fault;
}

/* ---- single cases ---- */

#define UNIT BFC_LARGE

/* A pool that makes what is lacking and no more. */
static void open_exactly(struct machine *m, struct bfc_pool_config config, uint64_t addresses) {
    memset(m, 0, sizeof *m);
    fake_pages_init(&m->fake, UNIT, CAPACITY);
    m->fake.calls.addresses = addresses;
    m->fake.in_use = in_use;
    m->fake.user = m;
    config.growth = BFC_GROWTH_EXACT;
    struct bfc_upstream upstream = {.context = &m->fake,
                                    .reserve = fake_pages_reserve_region,
                                    .release = fake_pages_release_region,
                                    .pages = &m->fake.calls};
    if (bfc_pool_create(&m->pool, &config, &upstream) != BFC_OK)
        abort();
}

static void open_exact(struct machine *m, uint64_t limit) {
    struct bfc_pool_config config;
    bfc_pool_config_default(&config);
    config.limit = limit;
    open_exactly(m, config, 4 * CAPACITY);
}

static bfc_addr allocate_units(struct machine *m, uint64_t units) {
    if (allocate(m, units * UNIT, 0) != BFC_OK) {
        fail(m, "an allocation failed");
        return 0;
    }
    check(m);
    return m->live[m->count - 1].start;
}

static void free_at(struct machine *m, bfc_addr start) {
    for (unsigned i = 0; i < m->count; i++)
        if (m->live[i].start == start) {
            free_block(m, i, BFC_NO_FENCE);
            check(m);
            return;
        }
    fail(m, "no such block");
}

static const char *close_case(struct machine *m, bool held, const char *otherwise) {
    if (!held)
        fail(m, otherwise);
    close_machine(m);
    return m->fault;
}

/* The last free block is extended by what it lacks, not replaced. */
static const char *grows_in_place(void) {
    static struct machine m;
    open_exact(&m, UINT64_MAX);
    bfc_addr first = allocate_units(&m, 4), second = allocate_units(&m, 4);
    free_at(&m, second);
    bool held = allocate_units(&m, 7) == first + 4 * UNIT && m.fake.taken == 11 * UNIT;
    return close_case(&m, held, "a free block at the end was not extended in place");
}

/* Two free pages apart from each other serve one request at the limit. */
static const char *stitches(void) {
    static struct machine m;
    open_exact(&m, 8 * UNIT);
    bfc_addr at[4];
    for (int i = 0; i < 4; i++)
        at[i] = allocate_units(&m, 2);
    free_at(&m, at[0]);
    free_at(&m, at[2]);
    allocate_units(&m, 4);
    return close_case(&m, m.fake.taken == 8 * UNIT, "pages were made beyond the limit");
}

/* A gap between two free blocks, which alone have pages to spare: they must not be kept for it. */
static const char *leaves_the_gap(void) {
    static struct machine m;
    open_exact(&m, 23 * UNIT);
    bfc_addr before = allocate_units(&m, 10), gap = allocate_units(&m, 2);
    bfc_addr after = allocate_units(&m, 10);
    free_at(&m, gap);
    allocate_units(&m, 3);
    free_at(&m, before);
    free_at(&m, after);
    allocate_units(&m, 13);
    return close_case(&m, true, "");
}

/* One page goes back from between two that are in use. */
static const char *gives_back_one(void) {
    static struct machine m;
    open_exact(&m, UINT64_MAX);
    allocate_units(&m, 2);
    bfc_addr middle = allocate_units(&m, 3);
    allocate_units(&m, 2);
    free_at(&m, middle);
    bool held = bfc_pool_trim(m.pool, 1) == UNIT && m.fake.taken == 6 * UNIT;
    check(&m);
    bfc_addr gone = middle + 2 * UNIT;
    struct bfc_block_info found;
    held = held && bfc_pool_find(m.pool, gone, &found) && found.bare && !found.live;
    held = held && bfc_pool_free(m.pool, gone, BFC_NO_FENCE) == BFC_INVALID_POINTER;
    return close_case(&m, held, "a free page between two was not given back, or not as bare");
}

/* A page that only some looks find ready stays. */
static const char *gives_back_idle(void) {
    static struct machine m;
    open_exact(&m, UINT64_MAX);
    bfc_addr at = allocate_units(&m, 3);
    bool held = bfc_pool_trim_idle(m.pool, 0) == 0;
    free_at(&m, at);
    held = held && bfc_pool_trim_idle(m.pool, UINT64_MAX) == 0;
    held = held && bfc_pool_trim_idle(m.pool, 0) == 3 * UNIT && m.fake.taken == 0;
    return close_case(&m, held, "idle pages did not go back, or those in use did");
}

struct seen {
    bfc_addr at[4];
    unsigned count;
};

static void see(void *context, const struct bfc_page_info *page) {
    struct seen *seen = context;
    seen->at[seen->count++ % 4] = page->start;
}

static const char *shows_pages(void) {
    static struct machine m;
    open_exact(&m, UINT64_MAX);
    bfc_addr first = allocate_units(&m, 2), second = allocate_units(&m, 2);
    struct seen seen = {.count = 0};
    bool held = bfc_pool_visit_pages(m.pool, second, 1, see, &seen) == 1 && seen.at[0] == second;
    held = held && bfc_pool_visit_pages(m.pool, 0, UINT64_MAX, see, &seen) == 4 &&
           seen.at[1] == first && seen.at[3] == second;
    held = held && !bfc_pool_pin(m.pool, second, 3 * UNIT) && !bfc_pool_pin(m.pool, second, 0);
    return close_case(&m, held, "pages were not shown, or more was pinned than there is");
}

/* A page is at most a 64th of the block that it is made for, and at least a granule. */
static const char *sizes_pages(void) {
    static struct machine m;
    open_exact(&m, UINT64_MAX);
    struct seen seen = {.count = 0};
    bfc_addr large = allocate_units(&m, 200), small = allocate_units(&m, 20);
    bool held = bfc_pool_visit_pages(m.pool, large, 200 * UNIT, see, &seen) == 67;
    held = held && bfc_pool_visit_pages(m.pool, small, 20 * UNIT, see, &seen) == 20;
    return close_case(&m, held, "pages are not of the size that their blocks allow");
}

/* ---- other threads ---- */

/* At the first call of this kind, the block that another thread frees. */
static struct {
    enum page_call call;
    bfc_addr block;
} freed_during;

static void free_meanwhile(void *user, enum page_call call) {
    struct machine *m = user;
    bfc_addr block = freed_during.block;
    if (call != freed_during.call || !block)
        return;
    freed_during.block = 0;
    for (unsigned i = 0; i < m->count; i++)
        if (m->live[i].start == block)
            free_block(m, i, BFC_NO_FENCE);
}

/* What fits as soon as another thread frees is taken, and no more pages are made or moved for it:
 * neither in vain nor, as once happened, for ever. */
static const char *takes_what_others_free(enum page_call call) {
    static struct machine m;
    struct bfc_pool_config config;
    bfc_pool_config_default(&config);
    open_exactly(&m, config, 8 * UNIT);
    m.fake.meanwhile = free_meanwhile;
    freed_during.block = 0;
    bfc_addr block = allocate_units(&m, 6);
    freed_during.call = call;
    freed_during.block = block;
    bfc_addr at = allocate_units(&m, 5);
    bool in_time = call == PAGE_RESERVE;
    bool held = freed_during.block == 0 && (!in_time || (at == block && m.fake.taken == 6 * UNIT));
    return close_case(&m, held, "what another thread freed meanwhile was not taken");
}

static const char *takes_what_is_freed_at_reserve(void) {
    return takes_what_others_free(PAGE_RESERVE);
}

static const char *takes_what_is_freed_at_create(void) {
    return takes_what_others_free(PAGE_CREATE);
}

static const char *takes_what_is_freed_at_allow(void) {
    return takes_what_others_free(PAGE_ALLOW);
}

/* A large block that the policy does not split is no place that needs no pages. */
static const char *passes_the_unsplit(void) {
    static struct machine m;
    struct bfc_pool_config config;
    bfc_pool_config_default(&config);
    config.policy = BFC_POLICY_PYTORCH;
    config.max_split = 4 * MIB;
    open_exactly(&m, config, 4 * CAPACITY);
    free_at(&m, allocate_units(&m, 8 * MIB / UNIT));
    allocate_units(&m, 2 * MIB / UNIT);
    return close_case(&m, true, "");
}

/* Pages fail for good: a region serves, and goes back when it is free. */
static const char *falls_back(void) {
    static struct machine m;
    open_exact(&m, UINT64_MAX);
    bfc_addr paged = allocate_units(&m, 4);
    m.fake.fail = m.fake.refuse_on = true;
    m.fake.refuse_at[PAGE_CREATE] = 1;
    bfc_addr plain = allocate_units(&m, 6);
    bool held = fake_pages_in_regions(&m.fake) == 6 * UNIT;
    free_at(&m, plain);
    held = held && allocate_units(&m, 5) == plain;
    free_at(&m, plain);
    held = held && bfc_pool_trim(m.pool, UINT64_MAX) == 6 * UNIT && m.fake.taken == 4 * UNIT;
    free_at(&m, paged);
    return close_case(&m, held, "pages that failed were not replaced by a region");
}

/* ---- the tests ---- */

static int report(int number, const char *name, uint64_t seed, const char *fault) {
    if (!fault) {
        printf("ok %d - %s\n", number, name);
        return 0;
    }
    printf("not ok %d - %s: seed %llu: %s\n", number, name, (unsigned long long)seed, fault);
    return 1;
}

static int test_programs(uint64_t first, uint64_t programs) {
    const char *fault = NULL;
    uint64_t seed = first;
    for (; seed < first + programs && !(fault = run(seed, -1, 0)); seed++)
        ;
    return report(1, "random programs agree with the model", seed, fault);
}

static int test_refusals(uint64_t first, uint64_t programs) {
    const char *fault = NULL;
    uint64_t seed = first;
    for (; seed < first + programs / 20 + 1 && !fault; seed++)
        for (int call = 0; call < PAGE_CALLS && !fault; call++)
            for (unsigned at = 1; at <= 12 && !fault; at++)
                fault = run(seed, call, at);
    return report(2, "each call refused once, at each of its first 12 times", seed - 1, fault);
}

static int test_promise(uint64_t first, uint64_t programs) {
    const char *fault = NULL;
    uint64_t seed = first;
    for (; seed < first + programs && !(fault = run_promise(seed, -1, 0)); seed++)
        ;
    return report(3, "what fails would not have fitted, whatever had moved", seed, fault);
}

static int test_fallback(uint64_t first, uint64_t programs) {
    static const unsigned moments[] = {1, 2, 5, 13, 34};
    const char *fault = NULL;
    uint64_t seed = first;
    for (; seed < first + programs / 20 + 1 && !fault; seed++)
        for (int call = 0; call < PAGE_CALLS && !fault; call++)
            for (unsigned i = 0; i < sizeof moments / sizeof *moments && !fault; i++)
                fault = run_promise(seed, call, moments[i]);
    return report(4, "nor where calls fail: then regions serve", seed - 1, fault);
}

static const struct {
    const char *name;
    const char *(*run)(void);
} cases[] = {
    {"the last free block grows in place", grows_in_place},
    {"pages apart from each other serve one request", stitches},
    {"what joins two blocks does not keep their pages", leaves_the_gap},
    {"a page between two goes back", gives_back_one},
    {"idle pages go back", gives_back_idle},
    {"pages are shown", shows_pages},
    {"pages are small against their blocks", sizes_pages},
    {"what is freed while addresses are reserved is taken", takes_what_is_freed_at_reserve},
    {"what is freed while a page is made is no harm", takes_what_is_freed_at_create},
    {"what is freed while access is given is no harm", takes_what_is_freed_at_allow},
    {"a block that is not split does not keep an allocation for ever", passes_the_unsplit},
    {"a region takes the place of pages that fail", falls_back},
};
#define CASES ((int)(sizeof cases / sizeof *cases))

static int test_cases(int first) {
    int failed = 0;
    for (int i = 0; i < CASES; i++)
        failed |= report(first + i, cases[i].name, 0, cases[i].run());
    return failed;
}

int main(int argc, char **argv) {
    const char *setting = getenv("BFC_TEST_PROGRAMS");
    uint64_t programs = setting ? strtoull(setting, NULL, 10) : 200;
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    printf("1..%d\n", 4 + CASES);
    int failed = test_programs(first, programs);
    failed |= test_refusals(first, programs);
    failed |= test_promise(first, programs);
    failed |= test_fallback(first, programs);
    return failed | test_cases(5);
}
