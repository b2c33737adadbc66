/*
 * Programs against a model. The model is a plain array of the blocks that are live, and one of the
 * bytes that were freed under fences: it knows nothing of bins, maps or merging.
 */
#include "tests/unit/pool/program.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/pool/fake_upstream.h"

#define MIB (UINT64_C(1) << 20)
#define BLOCKS 256
#define FREED 4096

struct freed {
    bfc_addr start, end;
    bfc_fence fence;
    uint64_t arrivals; /* deferred, when it was freed */
    bool was_deferred;
};

struct machine {
    struct fake_upstream fake;
    struct bfc_pool *pool;
    struct bfc_block_info live[BLOCKS];
    unsigned count;
    struct freed freed[FREED]; /* ranges that may not be handed out before their fence */
    unsigned freed_count;
    bfc_fence last_fence; /* drawn so far */
    bfc_fence completed;  /* that bfc_pool_complete told the pool of */
    bfc_fence handed_out; /* the highest fence under which a block was handed out */
    uint64_t arrivals;    /* deferred, when that was asked for; 0: it was not */
    uint64_t last_id;
    uint64_t requested;
    bool cuts_all;       /* every larger block is split */
    bool reuses_pending; /* config.reuse_pending */
    const char *fault;
};

static void fail(struct machine *m, const char *fault) {
    if (!m->fault)
        m->fault = fault;
}

static uint64_t size_of(uint8_t a, uint8_t b) {
    uint64_t base = UINT64_C(1) << (a % 24);
    return base + base * (b % 16) / 16;
}

static bool overlaps(bfc_addr a, bfc_addr a_end, bfc_addr b, bfc_addr b_end) {
    return a < b_end && b < a_end;
}

/* The ranges under [start, end) must be complete, or the fence that was reported must cover them.
 */
static void reuse(struct machine *m, bfc_addr start, bfc_addr end, bfc_fence reported) {
    m->handed_out = reported > m->handed_out ? reported : m->handed_out;
    for (unsigned i = 0; i < m->freed_count;) {
        struct freed *f = &m->freed[i];
        if (!overlaps(start, end, f->start, f->end)) {
            i++;
            continue;
        }
        if (f->fence > m->fake.told && f->fence > m->completed && f->fence > reported)
            fail(m, "memory was handed out before its fence was complete");
        struct freed below = *f, above = *f;
        below.end = start;
        above.start = end;
        *f = m->freed[--m->freed_count];
        if (below.start < below.end && m->freed_count < FREED)
            m->freed[m->freed_count++] = below;
        if (above.start < above.end && m->freed_count < FREED)
            m->freed[m->freed_count++] = above;
    }
}

static uint64_t granules_of(uint64_t bytes) {
    return (bytes + BFC_GRANULE - 1) / BFC_GRANULE;
}

/* Whether a block of `bytes` may start there: anywhere, at a multiple of 64 KiB, or where a region
 * starts. */
static bool may_start(const struct machine *m, uint64_t bytes, bfc_addr start) {
    bool starts_region = false;
    for (unsigned i = 0; i < m->fake.count; i++)
        starts_region |= m->fake.regions[i].start == start;
    return starts_region || start % 65536 == 0 || !bfc_starts_aligned(granules_of(bytes));
}

static void check_new_block(struct machine *m, const struct bfc_block_info *b, uint64_t bytes,
                            unsigned flags) {
    uint64_t rounding = bytes > BFC_LARGE - BFC_GRANULE ? BFC_ALIGNMENT : BFC_GRANULE;
    if (b->size < bytes || b->size % BFC_GRANULE || b->start % BFC_GRANULE ||
        b->requested != bytes || (m->cuts_all && b->size - bytes >= rounding))
        fail(m, "a block's size or place is wrong");
    if (!may_start(m, bytes, b->start))
        fail(m, "a block is not aligned");
    if (b->id <= m->last_id)
        fail(m, "a block's id is not new");
    if (b->fence && !(m->reuses_pending && (flags & BFC_ALLOCATE_PENDING)))
        fail(m, "a pending block was handed out unasked");
    bool inside = false;
    for (unsigned i = 0; i < m->fake.count; i++)
        inside |= b->start >= m->fake.regions[i].start &&
                  b->start + b->size <= m->fake.regions[i].start + m->fake.regions[i].bytes;
    if (!inside)
        fail(m, "a block is outside all regions");
    for (unsigned i = 0; i < m->count; i++)
        if (overlaps(b->start, b->start + b->size, m->live[i].start,
                     m->live[i].start + m->live[i].size))
            fail(m, "two live blocks overlap");
}

static void allocate(struct machine *m, uint64_t bytes, unsigned flags) {
    struct bfc_block_info block = {.id = 0};
    if (m->count == BLOCKS)
        return;
    enum bfc_status status = bfc_pool_allocate(m->pool, bytes, flags, &block);
    if (status == BFC_OUT_OF_MEMORY || status == BFC_UPSTREAM_FAILED) {
        if (block.id)
            fail(m, "a failed allocation touched its output");
        return;
    }
    if (status != BFC_OK) {
        fail(m, "an allocation failed for no reason");
        return;
    }
    check_new_block(m, &block, bytes, flags);
    reuse(m, block.start, block.start + block.size, block.fence);
    m->last_id = block.id;
    m->requested += bytes;
    m->live[m->count++] = block;
}

static bool is_complete(const struct machine *m, bfc_fence fence) {
    return fence <= m->fake.told || fence <= m->completed;
}

/* By the model, all of it is in this region and ready; nothing is said while something there is
 * pending or was deferred, since the pool joins what is next to it, nor while the fence of a block
 * that was handed out is not complete, since the pool may have joined ready memory with that block,
 * and the rest is then pending under the same fence. */
static bool is_ready(const struct machine *m, const struct fake_region *region, bfc_addr start,
                     bfc_addr end) {
    bfc_addr region_end = region->start + region->bytes;
    bool ready = start >= region->start && end <= region_end && is_complete(m, m->handed_out);
    for (unsigned i = 0; i < m->count; i++)
        ready &= !overlaps(start, end, m->live[i].start, m->live[i].start + m->live[i].size);
    for (unsigned i = 0; i < m->freed_count; i++) {
        const struct freed *f = &m->freed[i];
        ready &= !overlaps(region->start, region_end, f->start, f->end) ||
                 (is_complete(m, f->fence) && !f->was_deferred);
    }
    return ready;
}

/* At an address of some region, or shortly beyond it. */
static void allocate_at(struct machine *m, const uint8_t *s) {
    struct bfc_block_info block = {.id = 0};
    if (m->count == BLOCKS || !m->fake.count)
        return;
    const struct fake_region *region = &m->fake.regions[s[1] % m->fake.count];
    uint64_t bytes = size_of(s[3] >> 3, s[2]), unit = s[1] & 64 ? BFC_GRANULE : BFC_ALIGNMENT;
    bfc_addr at = region->start + s[2] * (region->bytes / 250) / unit * unit;
    bfc_addr below[BFC_PLACE_HINTS] = {s[1] & 128 && m->count ? m->live[s[2] % m->count].start : 0};
    unsigned flags = s[3] & 1 ? BFC_ALLOCATE_PENDING : 0;
    uint64_t round = bytes > BFC_LARGE - BFC_GRANULE ? BFC_ALIGNMENT : BFC_GRANULE;
    bool may = may_start(m, bytes, at);
    bool ready = is_ready(m, region, at, at + (bytes + round - 1) / round * round);
    enum bfc_status status = bfc_pool_allocate_at(m->pool, at, bytes, flags, below, &block);
    if (status != BFC_OK) {
        if (block.id || (ready && may))
            fail(m, "a place that is free was not handed out, or the output was touched");
        return;
    }
    if (block.start != at || !may)
        fail(m, "a block is elsewhere than was asked");
    check_new_block(m, &block, bytes, flags);
    reuse(m, block.start, block.start + block.size, block.fence);
    m->last_id = block.id;
    m->requested += bytes;
    m->live[m->count++] = block;
}

static void set_apart(struct machine *m, const uint8_t *s) {
    bfc_addr start = 0;
    if (s[2] & 1)
        bfc_pool_add_apart(m->pool, (1 + s[2] % 8) * MIB, &start, &(int){0});
    else if (m->count && !bfc_pool_set_apart(m->pool, m->live[s[1] % m->count].start, s[2] & 2))
        fail(m, "a region could not be set apart");
}

static void note_freed(struct machine *m, const struct bfc_block_info *b, bfc_fence fence) {
    if (fence && m->freed_count < FREED)
        m->freed[m->freed_count++] =
            (struct freed){b->start, b->start + b->size, fence, bfc_pool_deferred_arrivals(m->pool),
                           fence == BFC_DEFERRED_FENCE};
}

static void release_block(struct machine *m, unsigned which, bfc_fence fence) {
    if (!m->count)
        return;
    struct bfc_block_info *b = &m->live[which % m->count];
    if (bfc_pool_free(m->pool, b->start, fence) != BFC_OK)
        fail(m, "a live block could not be freed");
    m->requested -= b->requested;
    note_freed(m, b, fence);
    struct bfc_block_info gone = *b;
    *b = m->live[--m->count];
    if (bfc_pool_free(m->pool, gone.start, fence) != BFC_INVALID_POINTER)
        fail(m, "a block could be freed twice");
}

static void free_badly(struct machine *m, unsigned which, uint8_t by) {
    if (bfc_pool_free(m->pool, 8, BFC_NO_FENCE) != BFC_UNKNOWN_POINTER)
        fail(m, "a foreign pointer was not answered as unknown");
    if (!m->count)
        return;
    struct bfc_block_info *b = &m->live[which % m->count];
    uint64_t offset = 1 + ((uint64_t)by << 9) % b->size;
    offset = offset < b->size ? offset : b->size - 1;
    if (bfc_pool_free(m->pool, b->start + offset, BFC_NO_FENCE) != BFC_INVALID_POINTER)
        fail(m, "an interior pointer was not answered as invalid");
}

static void look_up(struct machine *m, unsigned which, uint8_t by) {
    struct bfc_block_info found;
    if (!m->count)
        return;
    struct bfc_block_info *b = &m->live[which % m->count];
    uint64_t offset = by * b->size / 256;
    if (!bfc_pool_find(m->pool, b->start + offset, &found) || found.start != b->start ||
        found.size != b->size || found.id != b->id || found.requested != b->requested ||
        !found.live)
        fail(m, "an address was not found in its block");
}

/* Of those that had come at some moment before: of two calls, the one draws it, the other fences.
 */
static void fence_deferred(struct machine *m, bool all) {
    if (!all && !m->arrivals) {
        m->arrivals = bfc_pool_deferred_arrivals(m->pool);
        return;
    }
    bfc_fence fence = ++m->last_fence;
    uint64_t arrivals = all ? UINT64_MAX : m->arrivals;
    bfc_pool_fence_deferred(m->pool, fence, arrivals);
    for (unsigned i = 0; i < m->freed_count; i++)
        if (m->freed[i].fence == BFC_DEFERRED_FENCE && m->freed[i].arrivals <= arrivals)
            m->freed[i].fence = fence;
    m->arrivals = 0;
}

/* Cuts a live block in two, both of which live on. */
static void carve(struct machine *m, unsigned which, uint8_t by) {
    if (!m->count || m->count == BLOCKS)
        return;
    struct bfc_block_info *b = &m->live[which % m->count], rest;
    uint64_t bytes = 1 + (uint64_t)by * b->size / 256, size = b->size;
    if (bfc_pool_carve(m->pool, b->start, size + 1) != BFC_INVALID_SIZE)
        fail(m, "more than the whole was carved off");
    bool may = may_start(m, bytes, b->start);
    if (bfc_pool_carve(m->pool, b->start, bytes) != (may ? BFC_OK : BFC_INVALID_SIZE))
        fail(m, "a live block could not be cut, or one that may not be was");
    if (!may)
        return;
    m->requested += bytes - b->requested;
    b->requested = bytes;
    b->size = (bytes + BFC_GRANULE - 1) / BFC_GRANULE * BFC_GRANULE;
    if (b->size == size)
        return;
    if (!bfc_pool_find(m->pool, b->start + b->size, &rest) || !rest.live ||
        rest.size != size - b->size || rest.id <= m->last_id)
        fail(m, "what was cut off is not a block of its own");
    m->last_id = rest.id;
    m->requested += rest.requested;
    m->live[m->count++] = rest;
}

static void trim(struct machine *m, const uint8_t *s) {
    if (s[1] & 6)
        bfc_pool_trim(m->pool, s[1] & 1 ? UINT64_MAX : s[2] * MIB);
    else
        bfc_pool_trim_idle(m->pool, s[2] * UINT64_C(1000000));
}

static void complete(struct machine *m, uint8_t back) {
    bfc_fence fence = m->last_fence > back % 8 ? m->last_fence - back % 8 : 0;
    m->completed = fence > m->completed ? fence : m->completed;
    bfc_pool_complete(m->pool, fence);
}

static void upset_device(struct machine *m, uint8_t how, uint8_t by) {
    struct fake_upstream *fake = &m->fake;
    switch (how % 4) {
    case 0:
        fake->refuse_reserve = by % 8;
        break;
    case 1:
        fake->fail_reserve = 1 + by % 3;
        break;
    case 2:
        fake->completed = m->last_fence;
        fake->clock += by * UINT64_C(1000000);
        break;
    default:
        fake->capacity += by * MIB;
    }
}

static void step(struct machine *m, const uint8_t *s) {
    static const unsigned flags[] = {0, 0, BFC_ALLOCATE_PENDING, BFC_ALLOCATE_HIT_ONLY};
    switch (s[0] % 16) {
    case 0:
        fence_deferred(m, s[1] & 1);
        break;
    case 1:
        complete(m, s[1]);
        break;
    case 2:
        trim(m, s);
        break;
    case 3:
        upset_device(m, s[1], s[2]);
        break;
    case 4:
        if ((s[3] & 6) == 6)
            set_apart(m, s);
        else if (s[3] & 6)
            allocate_at(m, s);
        else
            free_badly(m, s[1], s[2]);
        break;
    case 5:
        if (s[2] & 4)
            carve(m, s[1], s[3]);
        else if (m->count)
            bfc_pool_share_region(m->pool, m->live[s[1] % m->count].start, s[2] & 1);
        break;
    case 6:
        release_block(m, s[1], BFC_DEFERRED_FENCE);
        break;
    case 7:
    case 8:
        release_block(m, s[1], ++m->last_fence);
        break;
    case 9:
        release_block(m, s[1], m->last_fence > s[2] % 4 ? m->last_fence - s[2] % 4 : 1);
        break;
    case 10:
    case 11:
        release_block(m, s[1], BFC_NO_FENCE);
        break;
    default:
        allocate(m, size_of(s[1], s[2]), flags[s[3] % 4]);
    }
    look_up(m, s[3], s[2]);
}

static void check(struct machine *m) {
    struct bfc_pool_stats stats;
    const char *fault = bfc_pool_check(m->pool);
    if (fault)
        fail(m, fault);
    bfc_pool_read_stats(m->pool, &stats);
    if (stats.reserved != m->fake.taken || stats.blocks != m->count ||
        stats.requested != m->requested || stats.regions != m->fake.count ||
        stats.reserve_calls != m->fake.reserves || stats.waits != m->fake.waits)
        fail(m, "the counters differ from what happened");
    if (m->fake.bad_releases)
        fail(m, "a region was given back that was not taken");
}

static void open_machine(struct machine *m, uint8_t kind, struct fake_fault fault) {
    fake_upstream_init(&m->fake, 64 * MIB);
    m->fake.fault = fault;
    m->fake.gap = kind & 1 ? MIB : 0;
    struct bfc_pool_config config;
    bfc_pool_config_default(&config);
    config.growth = kind & 2 ? BFC_GROWTH_EXACT : BFC_GROWTH_DOUBLE;
    config.keep_whole = kind & 1 ? 2 * MIB : UINT64_MAX;
    config.release_waits = kind % 3 == 2;
    config.pending_budget = kind & 4 ? 0 : 8 * MIB;
    config.limit = kind & 8 ? 48 * MIB : UINT64_MAX;
    config.policy = (enum bfc_policy)((kind >> 5) % 3);
    m->cuts_all = config.policy == BFC_POLICY_BFC;
    if (kind % 7 == 1) {
        config.max_split = 4 * MIB;
        m->cuts_all = false;
    }
    if (kind % 5 == 1)
        config.gc_threshold = 16 * MIB;
    config.track_idle = kind % 3 == 1;
    config.reuse_pending = m->reuses_pending = kind % 5 != 3;
    struct bfc_upstream upstream = fake_upstream_table(&m->fake);
    if (bfc_pool_create(&m->pool, &config, &upstream) != BFC_OK)
        abort();
}

const char *program_run(const uint8_t *bytes, size_t count, size_t *at) {
    return program_run_with(bytes, count, (struct fake_fault){.at = 0}, NULL, at);
}

const char *program_run_with(const uint8_t *bytes, size_t count, struct fake_fault fault,
                             unsigned *calls, size_t *at) {
    static _Thread_local struct machine m;
    memset(&m, 0, sizeof m);
    open_machine(&m, count ? bytes[0] : 0, fault);
    for (*at = STEP_BYTES; *at + STEP_BYTES <= count && !m.fault; *at += STEP_BYTES) {
        step(&m, bytes + *at);
        check(&m);
    }
    bfc_pool_destroy(m.pool, true);
    if (m.fake.taken)
        fail(&m, "a region was not given back at the end");
    if (calls)
        memcpy(calls,
               (unsigned[FAKE_CALLS]){m.fake.reserves, m.fake.releases, m.fake.polls, m.fake.waits,
                                      m.fake.nows},
               FAKE_CALLS * sizeof *calls);
    return m.fault;
}

void program_make(uint64_t seed, uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        bytes[i] = (uint8_t)(seed >> 56);
    }
}

/* One pass: drops each run of `steps` steps that the failure does not need. */
static size_t shrink_by(uint8_t *bytes, size_t count, size_t steps, uint8_t *room) {
    size_t width = steps * STEP_BYTES, at;
    for (size_t from = STEP_BYTES; from + width <= count;) {
        memcpy(room, bytes, from);
        memcpy(room + from, bytes + from + width, count - from - width);
        if (program_run(room, count - width, &at)) {
            count -= width;
            memcpy(bytes, room, count);
        } else {
            from += width;
        }
    }
    return count;
}

size_t program_shrink(uint8_t *bytes, size_t count) {
    uint8_t *room = malloc(count);
    if (!room)
        return count;
    for (size_t steps = count / STEP_BYTES / 2; steps; steps /= 2)
        count = shrink_by(bytes, count, steps, room);
    free(room);
    return count;
}
