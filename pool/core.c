/*
 * Splitting, merging, changing state; and the two hot calls, allocate and free.
 *
 * Both are one section under the lock: look up, a few list operations, counters. O(1).
 */
#include "pool/internal.h"

/* Bytes more than were asked for that a block can note: what leaves more is cut, whatever the
 * policy says. */
#define SLACK_MOST UINT32_MAX

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
        pool->blocks[b].chapter = added;
}

/* A chapter of few blocks joins the one before it, if that is short too. */
static __attribute__((noinline)) void join_chapter(struct bfc_pool *pool, chapter_index c) {
    struct chapters *chapters = &pool->chapters;
    struct chapter *chapter = &chapters->all[c];
    block_index b = chapter->first, before = pool->blocks[b].previous;
    if (!before)
        return;
    chapter_index into = pool->blocks[before].chapter;
    if (chapters->all[into].count + chapter->count > CHAPTER_JOINED_MOST)
        return;
    for (uint32_t i = 0; i < chapter->count; i++, b = pool->blocks[b].next)
        pool->blocks[b].chapter = into;
    chapters->all[into].count += chapter->count;
    chapters_remove(chapters, pool->blocks, c);
}

/* b, new in its region's chain, joins the chapter of its neighbour. */
static inline void enter_chapter(struct bfc_pool *pool, block_index b, block_index neighbour) {
    chapter_index c = pool->blocks[neighbour].chapter;
    struct chapter *chapter = &pool->chapters.all[c];
    pool->blocks[b].chapter = c;
    if (chapter->first == pool->blocks[b].next)
        chapter->first = b;
    if (UNLIKELY(++chapter->count > CHAPTER_MOST))
        cut_chapter(pool, c);
}

/* b has left its region's chain already. */
static inline void leave_chapter(struct bfc_pool *pool, block_index b) {
    chapter_index c = pool->blocks[b].chapter;
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
 * Cuts the first `granules` off b, which keeps its state, its place in lists, and the rest. Returns
 * a record for them, in no list; or 0 when there is no host memory for it.
 */
static inline __attribute__((always_inline)) block_index
split_front(struct bfc_pool *pool, block_index b, uint64_t granules) {
    block_index front = slot_take(pool);
    if (UNLIKELY(!front))
        return 0;
    struct block *blocks = pool->blocks, *at = &blocks[b], *before = &blocks[front];
    before->tagged = at->tagged;
    before->last = (uint32_t)(granules - 1);
    before->previous = at->previous;
    before->next = b;
    blocks[at->previous].next = front; /* record 0 takes what is for none */
    at->previous = front;
    at->tagged += granules << GRANULE_BITS;
    at->last -= (uint32_t)granules;
    enter_chapter(pool, front, b);
    pool->stats->splits++;
    return front;
}

static inline void vacate(struct bfc_pool *pool, block_index gone) {
    leave_chapter(pool, gone);
    slot_vacate(pool, gone);
    pool->stats->merges++;
}

/* b takes in its next neighbour, which is in no list. */
static inline void absorb_next(struct bfc_pool *pool, block_index b) {
    struct block *blocks = pool->blocks;
    block_index gone = blocks[b].next;
    blocks[b].last += blocks[gone].last + 1;
    blocks[b].next = blocks[gone].next;
    blocks[blocks[b].next].previous = b;
    vacate(pool, gone);
}

/* b takes in its previous neighbour, which is in no list. */
static inline void absorb_previous(struct bfc_pool *pool, block_index b) {
    struct block *blocks = pool->blocks;
    block_index gone = blocks[b].previous;
    uint64_t size = block_size(&blocks[gone]);
    blocks[b].last += blocks[gone].last + 1;
    blocks[b].previous = blocks[gone].previous;
    blocks[blocks[b].previous].next = b;
    vacate(pool, gone);
    blocks[b].tagged -= size;
}

/* Takes a clean or dirty block out of its bin and list. */
void pool_unbin(struct bfc_pool *pool, block_index b) {
    if (block_state(&pool->blocks[b]) == BLOCK_CLEAN) {
        bins_remove(&pool->clean, pool->blocks, b);
        return;
    }
    if (!region_of(pool, b)->shared)
        bins_remove(&pool->dirty, pool->blocks, b);
    marks_remove(pool, b);
}

/* b, which is its whole region, became free. */
static __attribute__((noinline)) void note_idle(struct bfc_pool *pool, block_index b) {
    region_of(pool, b)->idle_since = pool->lookups;
}

/* Merges b, in no bin, with its clean neighbours; a neighbour's record is what stays. */
static inline __attribute__((always_inline)) block_index merge_clean(struct bfc_pool *pool,
                                                                     block_index b) {
    struct block *blocks = pool->blocks;
    struct bins *bins = &pool->clean;
    block_index next = blocks[b].next, previous = blocks[b].previous;
    bool merges_next = block_state(&blocks[next]) == BLOCK_CLEAN;
    if (block_state(&blocks[previous]) == BLOCK_CLEAN) {
        unsigned bin = bins_begin_resize(bins, blocks, previous);
        if (merges_next) {
            bins_remove(bins, blocks, next);
            absorb_next(pool, b);
        }
        absorb_next(pool, previous);
        bins_end_resize(bins, blocks, previous, bin);
        return previous;
    }
    if (merges_next) {
        unsigned bin = bins_begin_resize(bins, blocks, next);
        absorb_previous(pool, next);
        bins_end_resize(bins, blocks, next, bin);
        return next;
    }
    block_set_state(&blocks[b], BLOCK_CLEAN);
    bins_insert(bins, blocks, b);
    return b;
}

static inline __attribute__((always_inline)) void make_clean(struct bfc_pool *pool, block_index b) {
    pool->stats->clean += block_size(&pool->blocks[b]);
    b = merge_clean(pool, b);
    if (UNLIKELY(pool->rules.ages) && !pool->blocks[b].previous && !pool->blocks[b].next)
        note_idle(pool, b);
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
    uint64_t id = take_id(pool), size = block_size(at);
    at->slack = (uint32_t)(size - request->bytes);
    map_insert(&pool->map, pool->blocks, b);
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
    uint64_t size = block_size(&pool->blocks[b]);
    return LIKELY(pool->rules.cuts_all) || policy_splits(pool, request_size(request), size) ||
           size - request->bytes > SLACK_MOST;
}

/*
 * Takes what the request wants off a free block that is in these bins. Returns it, in no bin: b
 * itself if that is not cut, or cannot be since the host has no memory for a record; or 0, if b is
 * too large then. The rest keeps its place in other lists.
 */
static inline __attribute__((always_inline)) block_index take_off(struct bfc_pool *pool, struct bins *bins, block_index b,
                                   const struct request *request) {
    struct block *blocks = pool->blocks;
    if (block_granules(&blocks[b]) > request->granules && is_cut(pool, b, request)) {
        unsigned bin = bins_begin_resize(bins, blocks, b);
        block_index front = split_front(pool, b, request->granules);
        bins_end_resize(bins, blocks, b, bin);
        if (LIKELY(front) || block_size(&blocks[b]) - request->bytes > SLACK_MOST)
            return front;
    }
    bins_remove(bins, blocks, b);
    return b;
}

static inline __attribute__((always_inline)) bool hand_out_clean(struct bfc_pool *pool, block_index b,
                                  const struct request *request) {
    b = take_off(pool, &pool->clean, b, request);
    if (UNLIKELY(!b))
        return false;
    pool->stats->clean -= block_size(&pool->blocks[b]);
    make_live(pool, b, request, BFC_NO_MARK);
    return true;
}

static bool hand_out_dirty(struct bfc_pool *pool, block_index b, const struct request *request) {
    bfc_mark mark = pool->details[b].mark;
    block_index taken = take_off(pool, &pool->dirty, b, request);
    if (!taken)
        return false;
    if (taken == b)
        marks_remove(pool, b);
    pool->stats->dirty -= block_size(&pool->blocks[taken]);
    bool complete = mark <= pool->completed;
    pool->stats->dirty_reuses += !complete;
    make_live(pool, taken, request, complete ? BFC_NO_MARK : mark);
    return true;
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

static inline block_index pick_clean(const struct bfc_pool *pool, uint64_t granules) {
    if (UNLIKELY(pool->rules.exact))
        return pick_exactly(pool, &pool->clean, granules);
    return bins_pick(&pool->clean, pool->blocks, granules);
}

/* Takes a clean block; false: none was found that fits. */
static inline bool take_clean(struct bfc_pool *pool, const struct request *request) {
    block_index b = pick_clean(pool, request->granules);
    return LIKELY(b) && hand_out_clean(pool, b, request);
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
        return hand_out_clean(pool, clean, request);
    return hand_out_dirty(pool, dirty, request);
}

static inline bool take_at_once(struct bfc_pool *pool, const struct request *request) {
    if (request->flags & BFC_ALLOCATE_DIRTY)
        return take_either(pool, request);
    return take_clean(pool, request);
}

/* As take_at_once, and also by a search through the request's own bin: not O(1). */
bool pool_take(struct bfc_pool *pool, const struct request *request) {
    if (take_at_once(pool, request))
        return true;
    if (pool->rules.exact)
        return false;
    unsigned bin = bin_of(request->granules);
    block_index b =
        bins_search(&pool->clean, pool->blocks, bin, request->granules, UINT64_MAX);
    if (b)
        return hand_out_clean(pool, b, request);
    if (!(request->flags & BFC_ALLOCATE_DIRTY))
        return false;
    b = bins_search(&pool->dirty, pool->blocks, bin, request->granules, UINT64_MAX);
    return b && hand_out_dirty(pool, b, request);
}

bool pool_take_block(struct bfc_pool *pool, block_index b, const struct request *request) {
    return hand_out_clean(pool, b, request);
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
    return hand_out_dirty(pool, b, request);
}

static __attribute__((noinline)) enum bfc_status allocate_slowly(struct bfc_pool *pool,
                                                                 struct request *request) {
    marks_settle(pool, MARKS_ALL);
    if (pool_take(pool, request)) {
        pool->stats->hits++;
        return BFC_OK;
    }
    if (request->flags & BFC_ALLOCATE_HIT_ONLY)
        return BFC_OUT_OF_MEMORY;
    return serve_miss(pool, request);
}

enum bfc_status bfc_pool_allocate(struct bfc_pool *pool, uint64_t bytes, unsigned flags,
                                  struct bfc_block_info *block) {
    if (UNLIKELY(!bytes))
        return BFC_INVALID_SIZE;
    if (flags & BFC_ALLOCATE_HIT_ONLY)
        flags &= ~(unsigned)BFC_ALLOCATE_DIRTY;
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
        b = map_take(&pool->map, pool->blocks, start);
    if (UNLIKELY(!b))
        return refuse_free(pool, start);
    const struct block *at = &pool->blocks[b];
    struct bfc_pool_stats *stats = pool->stats;
    stats->in_use -= block_size(at);
    stats->requested -= block_requested(at);
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

/* Cuts live block b after `granules`, and counts the rest as a block that was handed out. */
static bool split_live(struct bfc_pool *pool, block_index b, uint64_t granules) {
    block_index rest = slot_take(pool);
    if (!rest)
        return false;
    struct block *blocks = pool->blocks, *at = &blocks[b], *after = &blocks[rest];
    after->tagged = at->tagged + (granules << GRANULE_BITS);
    after->last = (uint32_t)(at->last - granules);
    after->previous = b;
    after->next = at->next;
    after->slack = 0;
    blocks[at->next].previous = rest;
    at->next = rest;
    at->last = (uint32_t)(granules - 1);
    map_insert(&pool->map, blocks, rest);
    enter_chapter(pool, rest, b);
    pool->details[rest] = (struct block_detail){.id = take_id(pool),
                                                .handed_out = pool->details[b].handed_out};
    struct bfc_pool_stats *stats = pool->stats;
    stats->splits++;
    stats->requested += block_size(after);
    stats->blocks++;
    stats->allocations++;
    stats->hits++;
    return true;
}

static enum bfc_status carve(struct bfc_pool *pool, bfc_addr start, uint64_t bytes) {
    block_index b = start & BLOCK_TAG_MASK ? 0 : map_find(&pool->map, pool->blocks, start);
    if (!b)
        return pool_find_holding(pool, start) ? BFC_INVALID_POINTER : BFC_UNKNOWN_POINTER;
    struct block *at = &pool->blocks[b];
    uint64_t granules = ((bytes - 1) >> GRANULE_BITS) + 1, asked = block_requested(at);
    if (!bytes || granules > block_granules(at))
        return BFC_INVALID_SIZE;
    if (granules < block_granules(at) && !split_live(pool, b, granules))
        return BFC_NO_HOST_MEMORY;
    pool->stats->requested += bytes - asked;
    at->slack = (uint32_t)(block_size(at) - bytes);
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
