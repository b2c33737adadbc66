/*
 * Splitting, merging, changing state; and the two hot calls, allocate and free.
 *
 * Both are one section under the lock: look up, a few list operations, counters. O(1).
 */
#include "pool/internal.h"

/*
 * Small and large apart. Small blocks strewn among large ones keep their neighbourhood from ever
 * coalescing into room for a large one. So requests of up to SMALL_GRANULES are served from the
 * zone of small blocks; when nothing fits there, a large free block gives them a piece of
 * APART_GRANULES, which becomes small and is cut up. The two zones coalesce each for itself; a free
 * small block that has grown to APART_GRANULES again, or has no small neighbour left, goes back to
 * the large ones.
 */
#define SMALL_GRANULES ((uint64_t)1 << (20 - GRANULE_BITS))
#define APART_GRANULES ((uint64_t)1 << (23 - GRANULE_BITS))

/* How much better a dirty block must fit than a clean one to be taken first: bins, 32 an octave. */
#define DIRTY_ADVANTAGE 4

static void raise_peak(uint64_t *peak, uint64_t now) {
    if (now > *peak)
        *peak = now;
}

/* Cuts a full chapter in two. Without host memory it stays long, and finding is slower. */
static __attribute__((noinline)) void cut_chapter(struct bfc_pool *pool, chapter_index c) {
    struct chapters *chapters = &pool->chapters;
    if (!chapters_make_room(chapters))
        return;
    struct chapter *chapter = &chapters->all[c];
    block_index b = chapter->first;
    uint32_t lower = chapter->count / 2, higher = chapter->count - lower;
    for (uint32_t i = 0; i < lower; i++)
        b = pool->blocks[b].next;
    chapter->count = lower;
    chapter_index added = chapters_add(chapters, pool->blocks, b, higher, chapter->region);
    for (uint32_t i = 0; i < higher; i++, b = pool->blocks[b].next)
        pool->chapter_of[b] = added;
}

/* A chapter of few blocks joins the one before it, if that is short too. */
static __attribute__((noinline)) void join_chapter(struct bfc_pool *pool, chapter_index c) {
    struct chapters *chapters = &pool->chapters;
    struct chapter *chapter = &chapters->all[c];
    block_index b = chapter->first, before = pool->blocks[b].previous;
    if (!before)
        return;
    chapter_index into = pool->chapter_of[before];
    if (chapters->all[into].count + chapter->count > CHAPTER_JOINED_MOST)
        return;
    for (uint32_t i = 0; i < chapter->count; i++, b = pool->blocks[b].next)
        pool->chapter_of[b] = into;
    chapters->all[into].count += chapter->count;
    chapters_remove(chapters, pool->blocks, c);
}

static inline void enter_chapter(struct bfc_pool *pool, block_index b, chapter_index c) {
    pool->chapter_of[b] = c;
    if (UNLIKELY(++pool->chapters.all[c].count > CHAPTER_MOST))
        cut_chapter(pool, c);
}

/* b has left its region's chain already. */
static inline void leave_chapter(struct bfc_pool *pool, block_index b) {
    chapter_index c = pool->chapter_of[b];
    struct chapter *chapter = &pool->chapters.all[c];
    if (UNLIKELY(chapter->count == 1)) {
        chapters_remove(&pool->chapters, pool->blocks, c);
        return;
    }
    if (chapter->first == b)
        chapter->first = pool->blocks[b].next;
    if (UNLIKELY(--chapter->count < CHAPTER_FEW))
        join_chapter(pool, c);
}

/*
 * Cuts b after `granules`. Returns the rest, a record with b's state, in the map but in no list; or
 * 0 when there is no host memory for it.
 */
static inline block_index split(struct bfc_pool *pool, block_index b, uint64_t granules) {
    block_index rest = slot_take(pool);
    if (UNLIKELY(!rest))
        return 0;
    struct block *blocks = pool->blocks, *at = &blocks[b], *after = &blocks[rest];
    after->tagged = at->tagged + (granules << GRANULE_BITS);
    after->last = (uint32_t)(at->last - granules);
    after->previous = b;
    after->next = at->next;
    blocks[at->next].previous = rest; /* record 0 takes what is for none */
    at->next = rest;
    at->last = (uint32_t)(granules - 1);
    map_insert(&pool->map, blocks, rest);
    enter_chapter(pool, rest, pool->chapter_of[b]);
    pool->stats->splits++;
    return rest;
}

/* b takes in its next neighbour. Both are in no list. */
static inline __attribute__((always_inline)) void absorb_next(struct bfc_pool *pool,
                                                              block_index b) {
    struct block *blocks = pool->blocks;
    block_index gone = blocks[b].next;
    map_remove(&pool->map, blocks, gone);
    blocks[b].last += blocks[gone].last + 1;
    blocks[b].next = blocks[gone].next;
    blocks[blocks[b].next].previous = b;
    leave_chapter(pool, gone);
    slot_vacate(pool, gone);
    pool->stats->merges++;
}

/* Takes a clean or dirty block out of its bin and list. */
void pool_unbin(struct bfc_pool *pool, block_index b) {
    if (block_state(&pool->blocks[b]) == BLOCK_CLEAN) {
        bins_remove(&pool->clean[block_zone(&pool->blocks[b])], pool->blocks, b);
        return;
    }
    if (!region_of(pool, b)->shared)
        bins_remove(&pool->dirty, pool->blocks, b);
    marks_remove(pool, b);
}

/* b, in no bin, takes in its neighbours that are clean and of its zone. Returns the whole. */
static inline __attribute__((always_inline)) block_index merge_clean(struct bfc_pool *pool,
                                                                     block_index b) {
    struct block *blocks = pool->blocks;
    struct bins *bins = &pool->clean[block_zone(&blocks[b])];
    block_index next = blocks[b].next, previous = blocks[b].previous;
    if (block_alike(&blocks[next], &blocks[b])) {
        bins_remove(bins, blocks, next);
        absorb_next(pool, b);
    }
    if (block_alike(&blocks[previous], &blocks[b])) {
        bins_remove(bins, blocks, previous);
        absorb_next(pool, previous);
        b = previous;
    }
    return b;
}

/* Is b, free and small, no longer worth keeping apart: large enough, or alone? */
static inline bool outgrown(const struct bfc_pool *pool, block_index b) {
    const struct block *blocks = pool->blocks;
    return block_granules(&blocks[b]) >= APART_GRANULES ||
           (block_zone(&blocks[blocks[b].previous]) != ZONE_SMALL &&
            block_zone(&blocks[blocks[b].next]) != ZONE_SMALL);
}

/* b, which is its whole region, became free. */
static __attribute__((noinline)) void note_idle(struct bfc_pool *pool, block_index b) {
    region_of(pool, b)->idle_since = pool->lookups;
}

static inline __attribute__((always_inline)) void make_clean(struct bfc_pool *pool, block_index b) {
    struct block *blocks = pool->blocks;
    block_set_state(&blocks[b], BLOCK_CLEAN);
    pool->stats->clean += block_size(&blocks[b]);
    b = merge_clean(pool, b);
    if (block_zone(&blocks[b]) == ZONE_SMALL && !pool->rules.exact && outgrown(pool, b)) {
        block_set_zone(&blocks[b], ZONE_LARGE);
        b = merge_clean(pool, b);
    }
    if (UNLIKELY(pool->rules.ages) && !blocks[b].previous && !blocks[b].next)
        note_idle(pool, b);
    bins_insert(&pool->clean[block_zone(&blocks[b])], blocks, b);
}

static bool dirty_with(const struct bfc_pool *pool, block_index b, bfc_mark mark) {
    return block_state(&pool->blocks[b]) == BLOCK_DIRTY && pool->details[b].mark == mark;
}

static void make_dirty(struct bfc_pool *pool, block_index b, bfc_mark mark) {
    struct block *blocks = pool->blocks;
    block_set_state(&blocks[b], BLOCK_DIRTY);
    pool->stats->dirty += block_size(&blocks[b]);
    block_index next = blocks[b].next, previous = blocks[b].previous;
    if (dirty_with(pool, next, mark)) {
        pool_unbin(pool, next);
        absorb_next(pool, b);
    }
    if (dirty_with(pool, previous, mark)) {
        pool_unbin(pool, previous);
        absorb_next(pool, previous);
        b = previous;
    }
    marks_add(pool, b, mark);
    if (!region_of(pool, b)->shared)
        bins_insert(&pool->dirty, blocks, b);
}

static void make_limbo(struct bfc_pool *pool, block_index b) {
    struct block *blocks = pool->blocks;
    block_set_state(&blocks[b], BLOCK_LIMBO);
    pool->stats->limbo += block_size(&blocks[b]);
    block_index next = blocks[b].next, previous = blocks[b].previous;
    if (block_state(&blocks[next]) == BLOCK_LIMBO) {
        limbo_remove(pool, next);
        absorb_next(pool, b);
    }
    if (block_state(&blocks[previous]) == BLOCK_LIMBO) {
        limbo_remove(pool, previous);
        absorb_next(pool, previous);
        b = previous;
    }
    limbo_add(pool, b);
}

/* Of a block in no bin and no list, counted nowhere: makes it free, as its mark says. */
void pool_make_free(struct bfc_pool *pool, block_index b, bfc_mark mark) {
    if (LIKELY(mark <= pool->completed))
        make_clean(pool, b);
    else if (mark == BFC_LIMBO_MARK)
        make_limbo(pool, b);
    else
        make_dirty(pool, b, mark);
}

static __attribute__((noinline)) bool more_ids(struct bfc_pool *pool) {
    static uint64_t given;
    const uint64_t batch = 1 << 16;
    /* Relaxed: only that no number comes twice matters. */
    pool->next_id = __atomic_fetch_add(&given, batch, __ATOMIC_RELAXED) + 1;
    pool->last_id = pool->next_id + batch - 1;
    return true;
}

static inline uint64_t take_id(struct bfc_pool *pool) {
    if (UNLIKELY(pool->next_id > pool->last_id))
        more_ids(pool);
    return pool->next_id++;
}

static inline void make_live(struct bfc_pool *pool, block_index b, const struct request *request,
                             bfc_mark mark) {
    struct block *at = &pool->blocks[b];
    struct bfc_pool_stats *stats = pool->stats;
    block_set_state(at, BLOCK_LIVE);
    at->requested = request->bytes;
    uint64_t id = take_id(pool), size = block_size(at);
    pool->details[b] = (struct block_detail){.id = id, .handed_out = mark};
    stats->in_use += size;
    stats->requested += request->bytes;
    stats->blocks++;
    stats->allocations++;
    raise_peak(&stats->peak_in_use, stats->in_use);
    raise_peak(&stats->peak_requested, stats->requested);
    *request->out = (struct bfc_block_info){.start = block_start(at),
                                            .size = size,
                                            .requested = request->bytes,
                                            .id = id,
                                            .mark = mark,
                                            .live = true};
}

/* Is this block, a larger one, to be cut for the request? */
static inline bool is_cut(const struct bfc_pool *pool, block_index b,
                          const struct request *request) {
    return LIKELY(pool->rules.cuts_all) ||
           policy_splits(pool, request_size(request), block_size(&pool->blocks[b]));
}

/* Cuts a clean block that is in no bin; the rest goes to a bin. */
static inline void cut_clean(struct bfc_pool *pool, block_index b, uint64_t granules) {
    if (block_granules(&pool->blocks[b]) <= granules)
        return;
    block_index rest = split(pool, b, granules);
    if (LIKELY(rest))
        bins_insert(&pool->clean[block_zone(&pool->blocks[rest])], pool->blocks, rest);
}

/* Puts the front of a clean large block, which is in no bin, into the zone of the small ones. */
static __attribute__((noinline)) void set_apart(struct bfc_pool *pool, block_index b) {
    struct block *blocks = pool->blocks;
    cut_clean(pool, b, APART_GRANULES);
    block_set_zone(&blocks[b], ZONE_SMALL);
    block_index next = blocks[b].next;
    if (block_alike(&blocks[next], &blocks[b])) {
        bins_remove(&pool->clean[ZONE_SMALL], blocks, next);
        absorb_next(pool, b);
    }
}

static inline void hand_out_clean(struct bfc_pool *pool, block_index b,
                                  const struct request *request) {
    struct block *at = &pool->blocks[b];
    enum block_zone zone = block_zone(at);
    bins_remove(&pool->clean[zone], pool->blocks, b);
    bool apart = !pool->rules.exact;
    if (zone != ZONE_SMALL && request->granules <= SMALL_GRANULES && apart)
        set_apart(pool, b);
    if (is_cut(pool, b, request))
        cut_clean(pool, b, request->granules);
    pool->stats->clean -= block_size(at);
    if (zone == ZONE_SMALL && request->granules > SMALL_GRANULES && apart)
        block_set_zone(at, ZONE_LARGE);
    make_live(pool, b, request, BFC_NO_MARK);
}

static void hand_out_dirty(struct bfc_pool *pool, block_index b, const struct request *request) {
    bfc_mark mark = pool->details[b].mark;
    block_index rest = 0;
    bins_remove(&pool->dirty, pool->blocks, b);
    if (block_granules(&pool->blocks[b]) > request->granules && is_cut(pool, b, request))
        rest = split(pool, b, request->granules);
    if (rest) {
        marks_replace(pool, b, rest);
        bins_insert(&pool->dirty, pool->blocks, rest);
    } else {
        marks_remove(pool, b);
    }
    pool->stats->dirty -= block_size(&pool->blocks[b]);
    bool complete = mark <= pool->completed;
    pool->stats->dirty_reuses += !complete;
    make_live(pool, b, request, complete ? BFC_NO_MARK : mark);
}

/* The smallest block that fits, if the policy lets the request have it; or 0. */
static __attribute__((noinline)) block_index
pick_exactly(const struct bfc_pool *pool, const struct bins *bins, uint64_t granules) {
    uint64_t size = granules << GRANULE_BITS;
    block_index b = sorted_find(bins->root, pool->blocks, policy_zone(pool, size), granules);
    return b && policy_fits(pool, size, block_size(&pool->blocks[b])) ? b : 0;
}

static inline block_index pick_dirty(const struct bfc_pool *pool, uint64_t granules) {
    if (UNLIKELY(pool->rules.exact))
        return pick_exactly(pool, &pool->dirty, granules);
    return bins_pick(&pool->dirty, pool->blocks, granules);
}

/* A clean block of the request's own zone, else of the other; or 0. */
static inline block_index pick_clean(const struct bfc_pool *pool, uint64_t granules) {
    if (UNLIKELY(pool->rules.exact))
        return pick_exactly(pool, &pool->clean[policy_zone(pool, granules << GRANULE_BITS)],
                            granules);
    enum block_zone zone = granules <= SMALL_GRANULES ? ZONE_SMALL : ZONE_LARGE;
    block_index b = bins_pick(&pool->clean[zone], pool->blocks, granules);
    return LIKELY(b) ? b : bins_pick(&pool->clean[!zone], pool->blocks, granules);
}

/* Takes a clean block; false: none was found that fits. */
static inline bool take_clean(struct bfc_pool *pool, const struct request *request) {
    block_index b = pick_clean(pool, request->granules);
    if (UNLIKELY(!b))
        return false;
    hand_out_clean(pool, b, request);
    return true;
}

/* Clean before dirty, unless the dirty one fits clearly better. */
static bool take_either(struct bfc_pool *pool, const struct request *request) {
    const struct block *blocks = pool->blocks;
    block_index dirty = pick_dirty(pool, request->granules);
    if (!dirty)
        return take_clean(pool, request);
    block_index clean = pick_clean(pool, request->granules);
    if (clean && bin_of(block_granules(&blocks[clean])) <=
                     bin_of(block_granules(&blocks[dirty])) + DIRTY_ADVANTAGE)
        hand_out_clean(pool, clean, request);
    else
        hand_out_dirty(pool, dirty, request);
    return true;
}

static inline bool take_at_once(struct bfc_pool *pool, const struct request *request) {
    if (request->flags & BFC_ALLOCATE_DIRTY)
        return take_either(pool, request);
    return take_clean(pool, request);
}

/* The first of the clean neighbours, of whatever zone, around b, if they are enough; else 0. */
static block_index clean_run(const struct bfc_pool *pool, block_index b, uint64_t granules) {
    const struct block *blocks = pool->blocks;
    while (block_state(&blocks[blocks[b].previous]) == BLOCK_CLEAN)
        b = blocks[b].previous;
    uint64_t run = 0;
    for (block_index at = b; block_state(&blocks[at]) == BLOCK_CLEAN; at = blocks[at].next)
        run += block_granules(&blocks[at]);
    return run >= granules ? b : 0;
}

/* Makes one large block of a clean block and all clean ones after it. */
static void join_clean_run(struct bfc_pool *pool, block_index b) {
    struct block *blocks = pool->blocks;
    pool_unbin(pool, b);
    while (block_state(&blocks[blocks[b].next]) == BLOCK_CLEAN) {
        pool_unbin(pool, blocks[b].next);
        absorb_next(pool, b);
    }
    block_set_zone(&blocks[b], ZONE_LARGE);
    bins_insert(&pool->clean[ZONE_LARGE], blocks, b);
}

/* Joins clean neighbours of different zones, where that makes room. O(clean small blocks). */
static bool join_zones(struct bfc_pool *pool, uint64_t granules) {
    const struct bins *bins = &pool->clean[ZONE_SMALL];
    for (unsigned bin = bins_next(bins, 0); bin < BIN_COUNT; bin = bins_next(bins, bin + 1))
        for (block_index b = bins->first[bin]; b; b = pool->blocks[b].after) {
            block_index first = clean_run(pool, b, granules);
            if (first) {
                join_clean_run(pool, first);
                return true;
            }
        }
    return false;
}

/* As take_at_once, and also by whatever search and joining it takes: not O(1). */
bool pool_take(struct bfc_pool *pool, const struct request *request) {
    if (take_at_once(pool, request))
        return true;
    if (pool->rules.exact)
        return false;
    unsigned bin = bin_of(request->granules);
    block_index b = 0;
    for (int zone = 0; zone < ZONE_COUNT && !b; zone++)
        b = bins_search(&pool->clean[zone], pool->blocks, bin, request->granules, UINT64_MAX);
    if (b) {
        hand_out_clean(pool, b, request);
        return true;
    }
    if (join_zones(pool, request->granules))
        return pool_take(pool, request);
    if (!(request->flags & BFC_ALLOCATE_DIRTY))
        return false;
    b = bins_search(&pool->dirty, pool->blocks, bin, request->granules, UINT64_MAX);
    if (b)
        hand_out_dirty(pool, b, request);
    return b;
}

void pool_take_block(struct bfc_pool *pool, block_index b, const struct request *request) {
    hand_out_clean(pool, b, request);
}

/* Makes one dirty block of a run of clean and dirty ones, joining their marks, and hands it out. */
bool pool_take_run(struct bfc_pool *pool, const struct request *request) {
    bfc_mark mark;
    block_index b = marks_find_run(pool, request->granules, true, &mark);
    if (!b)
        return false;
    struct block *blocks = pool->blocks;
    uint64_t *clean = &pool->stats->clean, *dirty = &pool->stats->dirty;
    for (bool first = true; first || block_granules(&blocks[b]) < request->granules;
         first = false) {
        block_index part = first ? b : blocks[b].next;
        if (block_state(&blocks[part]) == BLOCK_CLEAN) {
            *clean -= block_size(&blocks[part]);
            *dirty += block_size(&blocks[part]);
        }
        pool_unbin(pool, part);
        if (!first)
            absorb_next(pool, b);
    }
    block_set_state(&blocks[b], BLOCK_DIRTY);
    marks_add(pool, b, mark);
    bins_insert(&pool->dirty, blocks, b);
    hand_out_dirty(pool, b, request);
    return true;
}

static __attribute__((noinline)) enum bfc_status allocate_slowly(struct bfc_pool *pool,
                                                                 struct request *request) {
    marks_settle(pool, MARKS_ALL);
    if (pool_take(pool, request)) {
        pool->stats->hits++;
        return BFC_OK;
    }
    if (request->flags & BFC_ALLOCATE_HIT_ONLY) {
        pool->lookups -= pool->rules.ages; /* the caller will ask again */
        return BFC_OUT_OF_MEMORY;
    }
    return serve_miss(pool, request);
}

enum bfc_status bfc_pool_allocate(struct bfc_pool *pool, uint64_t bytes, unsigned flags,
                                  struct bfc_block_info *block) {
    if (UNLIKELY(!bytes))
        return BFC_INVALID_SIZE;
    struct request request = {.bytes = bytes,
                              .granules =
                                  (((bytes - 1) | (2 * BFC_GRANULE - 1)) >> GRANULE_BITS) + 1,
                              .flags = flags,
                              .out = block};
    enum bfc_status status = BFC_OK;
    pool_enter(pool);
    if (UNLIKELY(pool->oldest_mark <= pool->completed))
        marks_settle(pool, MARKS_A_CALL);
    if (UNLIKELY(pool->rules.rounds) && bytes <= LARGEST_BLOCK)
        request.granules = policy_round(pool, bytes) >> GRANULE_BITS;
    pool->lookups += pool->rules.ages;
    if (UNLIKELY(request.granules > LARGEST_BLOCK >> GRANULE_BITS)) {
        pool->stats->out_of_memory++;
        status = BFC_OUT_OF_MEMORY;
    } else if (LIKELY(take_at_once(pool, &request))) {
        pool->stats->hits++;
    } else {
        status = allocate_slowly(pool, &request);
    }
    slots_settle(pool);
    pool_leave(pool);
    return status;
}

static __attribute__((noinline)) enum bfc_status refuse_free(struct bfc_pool *pool,
                                                             bfc_addr start) {
    if (!pool_find_holding(pool, start))
        return BFC_UNKNOWN_POINTER;
    pool->stats->invalid_frees++;
    return BFC_INVALID_POINTER;
}

static inline enum bfc_status take_back(struct bfc_pool *pool, bfc_addr start, bfc_mark mark) {
    /* The address as it stands is the tag of a live block: state 0. */
    block_index b = 0;
    if (LIKELY(!(start & BLOCK_TAG_MASK)))
        b = map_find_live(&pool->map, pool->blocks, start);
    if (UNLIKELY(!b))
        return refuse_free(pool, start);
    struct bfc_pool_stats *stats = pool->stats;
    stats->in_use -= block_size(&pool->blocks[b]);
    stats->requested -= pool->blocks[b].requested;
    stats->blocks--;
    stats->frees++;
    if (LIKELY(mark <= pool->completed))
        make_clean(pool, b);
    else
        pool_make_free(pool, b, mark);
    return BFC_OK;
}

enum bfc_status bfc_pool_free(struct bfc_pool *pool, bfc_addr start, bfc_mark mark) {
    pool_enter(pool);
    if (UNLIKELY(pool->oldest_mark <= pool->completed))
        marks_settle(pool, MARKS_A_CALL);
    enum bfc_status status = take_back(pool, start, mark);
    slots_settle(pool);
    pool_leave(pool);
    return status;
}

/* Cuts b after `granules`, and counts the rest as a block that was handed out. */
static bool split_live(struct bfc_pool *pool, block_index b, uint64_t granules) {
    block_index rest = split(pool, b, granules);
    if (!rest)
        return false;
    struct bfc_pool_stats *stats = pool->stats;
    uint64_t id = take_id(pool);
    pool->details[rest] =
        (struct block_detail){.id = id, .handed_out = pool->details[b].handed_out};
    pool->blocks[rest].requested = block_size(&pool->blocks[rest]);
    stats->requested += pool->blocks[rest].requested;
    stats->blocks++;
    stats->allocations++;
    stats->hits++;
    return true;
}

static enum bfc_status carve(struct bfc_pool *pool, bfc_addr start, uint64_t bytes) {
    block_index b = start & BLOCK_STATE_MASK ? 0 : map_find_live(&pool->map, pool->blocks, start);
    if (!b)
        return pool_find_holding(pool, start) ? BFC_INVALID_POINTER : BFC_UNKNOWN_POINTER;
    uint64_t granules = ((bytes - 1) >> GRANULE_BITS) + 1;
    if (!bytes || granules > block_granules(&pool->blocks[b]))
        return BFC_INVALID_SIZE;
    if (granules < block_granules(&pool->blocks[b]) && !split_live(pool, b, granules))
        return BFC_NO_HOST_MEMORY;
    pool->stats->requested += bytes - pool->blocks[b].requested;
    pool->blocks[b].requested = bytes;
    raise_peak(&pool->stats->peak_requested, pool->stats->requested);
    return BFC_OK;
}

enum bfc_status bfc_pool_carve(struct bfc_pool *pool, bfc_addr start, uint64_t bytes) {
    pool_enter(pool);
    enum bfc_status status = carve(pool, start, bytes);
    slots_settle(pool);
    pool_leave(pool);
    return status;
}
