/*
 * Splitting, merging, changing state; and the two hot calls, allocate and free.
 *
 * Both are one section under the lock: look up, a few list operations, counters. O(1).
 */
#include "pool/internal.h"

/* How much better a dirty block must fit than a clean one to be taken first: bins, 32 an octave. */
#define DIRTY_ADVANTAGE 4

static void raise_peak(uint64_t *peak, uint64_t now) {
    if (now > *peak)
        *peak = now;
}

/* b, new in its region's chain, may be one of the anchors. */
static __attribute__((noinline)) void drop_anchor(struct bfc_pool *pool, block_index b) {
    const struct block *at = &pool->blocks[b];
    anchor_index before = anchors_find(&pool->anchors, block_start(at));
    anchors_add(&pool->anchors, at, b, pool->anchors.all[before].region);
}

/* b starts so many bytes later, or earlier. */
static inline void move_start(struct bfc_pool *pool, block_index b, uint64_t bytes) {
    struct block *at = &pool->blocks[b];
    at->tagged += bytes;
    if (UNLIKELY(is_anchor(b)))
        anchors_shift(&pool->anchors, block_start(at) - bytes, block_start(at));
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
    blocks[at->previous].next = front;
    at->previous = front;
    move_start(pool, b, granules << pool->granule_bits);
    at->last -= (uint32_t)granules;
    if (UNLIKELY(is_anchor(front)))
        drop_anchor(pool, front);
    pool->stats->splits++;
    return front;
}

static inline void vacate(struct bfc_pool *pool, block_index gone) {
    if (UNLIKELY(is_anchor(gone)))
        anchors_remove(&pool->anchors, &pool->blocks[gone]);
    slot_vacate(pool, gone);
    pool->stats->merges++;
}

/* b takes in its next neighbour, which is in no list. */
static inline void absorb_next(struct bfc_pool *pool, block_index b) {
    struct block *blocks = pool->blocks;
    block_index gone = blocks[b].next;
    blocks[b].last += blocks[gone].last + 1;
    blocks[b].next = blocks[gone].next;
    blocks[blocks[b].next].previous = b; /* record 0 takes what is for none */
    vacate(pool, gone);
}

/* b takes in its previous neighbour, which is in no list. */
static inline void absorb_previous(struct bfc_pool *pool, block_index b) {
    struct block *blocks = pool->blocks;
    block_index gone = blocks[b].previous;
    uint64_t size = block_size(pool, &blocks[gone]);
    blocks[b].last += blocks[gone].last + 1;
    blocks[b].previous = blocks[gone].previous;
    blocks[blocks[b].previous].next = b;
    vacate(pool, gone);
    move_start(pool, b, -size);
}

/* Takes a clean or dirty block out of its bin and list. */
void pool_unbin(struct bfc_pool *pool, block_index b) {
    if (block_state(&pool->blocks[b]) == BLOCK_CLEAN) {
        bins_remove(&pool->clean, pool->blocks, b, false);
        return;
    }
    if (is_reused_dirty(pool, b))
        bins_remove(&pool->dirty, pool->blocks, b, false);
    marks_remove(pool, b);
}

/*
 * Makes b, in no bin, clean, merging it with its clean neighbours; a neighbour's record is what
 * stays. `plain`: under rules with plain_most, for the compiler to see.
 */
static inline __attribute__((always_inline)) block_index merge_clean(struct bfc_pool *pool,
                                                                     block_index b, bool plain) {
    struct block *blocks = pool->blocks;
    struct bins *bins = &pool->clean;
    block_index next = blocks[b].next, previous = blocks[b].previous;
    bool merges_next = block_state(&blocks[next]) == BLOCK_CLEAN;
    if (block_state(&blocks[previous]) == BLOCK_CLEAN) {
        bins_begin_resize(bins, blocks, previous, plain);
        if (merges_next) {
            bins_remove(bins, blocks, next, plain);
            absorb_next(pool, b);
        }
        absorb_next(pool, previous);
        bins_end_resize(bins, blocks, previous, plain);
        return previous;
    }
    if (merges_next) {
        bins_begin_resize(bins, blocks, next, plain);
        absorb_previous(pool, next);
        bins_end_resize(bins, blocks, next, plain);
        return next;
    }
    block_set_state(&blocks[b], BLOCK_CLEAN);
    bins_insert(bins, blocks, b, plain);
    return b;
}

/* As merge_clean, under the rules that are not plain. */
static __attribute__((noinline)) void merge_by_rules(struct bfc_pool *pool, block_index b) {
    b = merge_clean(pool, b, false);
    const struct block *at = &pool->blocks[b];
    if (pool->rules.ages && !at->next && block_state(&pool->blocks[at->previous]) == BLOCK_HEAD)
        region_of(pool, b)->idle_since = pool->lookups; /* the whole region became free */
}

static inline __attribute__((always_inline)) void make_clean(struct bfc_pool *pool, block_index b) {
    pool->stats->clean += block_size(pool, &pool->blocks[b]);
    if (LIKELY(pool->rules.plain_most))
        merge_clean(pool, b, true);
    else
        merge_by_rules(pool, b);
}

static bool dirty_with(const struct bfc_pool *pool, block_index b, bfc_mark mark) {
    return block_state(&pool->blocks[b]) == BLOCK_DIRTY && pool->details[b].mark == mark;
}

static void make_dirty(struct bfc_pool *pool, block_index b, bfc_mark mark) {
    struct block *blocks = pool->blocks;
    block_set_state(&blocks[b], BLOCK_DIRTY);
    pool->stats->dirty += block_size(pool, &blocks[b]);
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
    if (is_reused_dirty(pool, b))
        bins_insert(&pool->dirty, blocks, b, false);
}

static void make_limbo(struct bfc_pool *pool, block_index b) {
    struct block *blocks = pool->blocks;
    block_set_state(&blocks[b], BLOCK_LIMBO);
    pool->stats->limbo += block_size(pool, &blocks[b]);
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

static __attribute__((noinline)) void more_ids(struct bfc_pool *pool) {
    static uint64_t given;
    const uint64_t batch = 1 << 16;
    /* Relaxed: only that no number comes twice matters. */
    pool->next_id = __atomic_fetch_add(&given, batch, __ATOMIC_RELAXED) + 1;
    pool->last_id = pool->next_id + batch - 1;
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
    uint64_t id = take_id(pool), size = block_size(pool, at);
    block_identify(pool, b, id, request->bytes, mark);
    map_insert(&pool->map, pool->blocks, b);
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
           policy_splits(pool, request_size(pool, request), block_size(pool, &pool->blocks[b]));
}

/*
 * Takes what the request wants off a free block that is in these bins. Returns it, in no bin: b
 * itself if that is not cut, or cannot be since the host has no memory for a record. The rest keeps
 * its place in other lists.
 */
static inline __attribute__((always_inline)) block_index take_off(struct bfc_pool *pool,
                                                                  struct bins *bins, block_index b,
                                                                  const struct request *request,
                                                                  bool plain) {
    struct block *blocks = pool->blocks;
    if (block_granules(&blocks[b]) > request->granules && (plain || is_cut(pool, b, request))) {
        bins_begin_resize(bins, blocks, b, plain);
        block_index front = split_front(pool, b, request->granules);
        bins_end_resize(bins, blocks, b, plain);
        if (LIKELY(front))
            return front;
    }
    bins_remove(bins, blocks, b, plain);
    return b;
}

static inline __attribute__((always_inline)) void
hand_out_clean(struct bfc_pool *pool, block_index b, const struct request *request, bool plain) {
    b = take_off(pool, &pool->clean, b, request, plain);
    pool->stats->clean -= block_size(pool, &pool->blocks[b]);
    make_live(pool, b, request, BFC_NO_MARK);
}

static void hand_out_dirty(struct bfc_pool *pool, block_index b, const struct request *request) {
    bfc_mark mark = pool->details[b].mark;
    block_index taken = take_off(pool, &pool->dirty, b, request, false);
    if (taken == b)
        marks_remove(pool, b);
    pool->stats->dirty -= block_size(pool, &pool->blocks[taken]);
    bool complete = mark <= pool->completed;
    pool->stats->dirty_reuses += !complete;
    make_live(pool, taken, request, complete ? BFC_NO_MARK : mark);
}

/* The smallest block that fits, if the policy lets the request have it; or 0. */
static __attribute__((noinline)) block_index
pick_exactly(const struct bfc_pool *pool, const struct bins *bins, uint64_t granules) {
    uint64_t size = granules << pool->granule_bits;
    block_index b = sorted_find(bins->root, pool->blocks, policy_zone(pool, size), granules);
    return b && policy_fits(pool, size, block_size(pool, &pool->blocks[b])) ? b : 0;
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

void pool_take_block(struct bfc_pool *pool, block_index b, const struct request *request) {
    hand_out_clean(pool, b, request, false);
}

/* Takes a clean block, or a dirty one if the request may have that and it fits clearly better. */
static bool take_at_once(struct bfc_pool *pool, const struct request *request) {
    const struct block *blocks = pool->blocks;
    block_index clean = pick_clean(pool, request->granules), dirty = 0;
    if (request->flags & BFC_ALLOCATE_DIRTY)
        dirty = pick_dirty(pool, request->granules);
    if (dirty && (!clean || bin_of(block_granules(&blocks[clean])) >
                                bin_of(block_granules(&blocks[dirty])) + DIRTY_ADVANTAGE))
        hand_out_dirty(pool, dirty, request);
    else if (clean)
        pool_take_block(pool, clean, request);
    return clean || dirty;
}

/* As take_at_once, and also by a search through the request's own bin: not O(1). */
static bool take_by_search(struct bfc_pool *pool, const struct request *request) {
    if (take_at_once(pool, request))
        return true;
    if (pool->rules.exact || (request->flags & BFC_ALLOCATE_HIT_ONLY))
        return false;
    block_index b = bins_search(&pool->clean, pool->blocks, request->granules);
    if (b) {
        pool_take_block(pool, b, request);
        return true;
    }
    if (!(request->flags & BFC_ALLOCATE_DIRTY))
        return false;
    b = bins_search(&pool->dirty, pool->blocks, request->granules);
    if (b)
        hand_out_dirty(pool, b, request);
    return b;
}

/* Completed blocks become clean a few at a time, until one serves. */
bool pool_take(struct bfc_pool *pool, const struct request *request) {
    while (!take_by_search(pool, request)) {
        if (pool->oldest_mark > pool->completed)
            return false;
        marks_settle(pool, MARKS_A_CALL);
    }
    return true;
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
            *clean -= block_size(pool, &blocks[part]);
            *dirty += block_size(pool, &blocks[part]);
        }
        pool_unbin(pool, part);
        if (!first)
            absorb_next(pool, b);
    }
    if (dirty_with(pool, blocks[b].next, mark)) { /* what is left would be its equal */
        pool_unbin(pool, blocks[b].next);
        absorb_next(pool, b);
    }
    block_set_state(&blocks[b], BLOCK_DIRTY);
    marks_add(pool, b, mark);
    bins_insert(&pool->dirty, blocks, b, false);
    hand_out_dirty(pool, b, request);
    return true;
}

/* What an allocation comes to that finds no clean block at once, or is not under plain rules. */
static __attribute__((noinline)) enum bfc_status allocate_by_rules(struct bfc_pool *pool,
                                                                   struct request request) {
    if (!pool->config.reuse_dirty)
        request.flags &= ~(unsigned)BFC_ALLOCATE_DIRTY;
    if (pool->rules.rounds && request.bytes <= largest_block(pool))
        request.granules = policy_round(pool, request.bytes) >> pool->granule_bits;
    pool->lookups += pool->rules.ages;
    if (request.granules > MOST_GRANULES) {
        pool->stats->out_of_memory += !(request.flags & BFC_ALLOCATE_HIT_ONLY);
        return BFC_OUT_OF_MEMORY;
    }
    if (pool_take(pool, &request)) {
        pool->stats->hits++;
        return BFC_OK;
    }
    if (!(request.flags & BFC_ALLOCATE_HIT_ONLY))
        return serve_miss(pool, &request);
    pool->lookups -= pool->rules.ages; /* the caller will ask again */
    return BFC_OUT_OF_MEMORY;
}

enum bfc_status bfc_pool_allocate(struct bfc_pool *pool, uint64_t bytes, unsigned flags,
                                  struct bfc_block_info *block) {
    if (UNLIKELY(!bytes))
        return BFC_INVALID_SIZE;
    struct request request = {.bytes = bytes,
                              .granules = ((bytes - 1) >> pool->granule_bits) + 1,
                              .flags = flags,
                              .out = block};
    enum bfc_status status = BFC_OK;
    block_index b = 0;
    pool_enter(pool);
    if (UNLIKELY(pool->oldest_mark <= pool->completed))
        marks_settle(pool, MARKS_A_CALL);
    bool clean = !(flags & BFC_ALLOCATE_DIRTY) || !pool->oldest;
    if (LIKELY(request.granules <= pool->rules.plain_most && clean))
        b = bins_pick(&pool->clean, pool->blocks, request.granules);
    if (LIKELY(b)) {
        hand_out_clean(pool, b, &request, true);
        pool->stats->hits++;
    } else {
        status = allocate_by_rules(pool, request);
    }
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
    stats->in_use -= block_size(pool, at);
    stats->requested -= block_requested(pool, b);
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
static bool split_live(struct bfc_pool *pool, block_index b, uint64_t granules, bfc_mark mark) {
    block_index rest = slot_take(pool);
    if (!rest)
        return false;
    struct block *blocks = pool->blocks, *at = &blocks[b], *after = &blocks[rest];
    after->tagged = at->tagged + (granules << pool->granule_bits);
    after->last = (uint32_t)(at->last - granules);
    after->previous = b;
    after->next = at->next;
    blocks[at->next].previous = rest;
    at->next = rest;
    at->last = (uint32_t)(granules - 1);
    block_identify(pool, rest, take_id(pool), block_size(pool, after), mark);
    map_insert(&pool->map, blocks, rest);
    if (is_anchor(rest))
        drop_anchor(pool, rest);
    struct bfc_pool_stats *stats = pool->stats;
    stats->splits++;
    stats->requested += block_size(pool, after);
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
    uint64_t granules = ((bytes - 1) >> pool->granule_bits) + 1;
    if (!bytes || granules > block_granules(at))
        return BFC_INVALID_SIZE;
    uint64_t requested = block_requested(pool, b);
    bfc_mark mark = block_handed_out(pool, b);
    if (granules < block_granules(at) && !split_live(pool, b, granules, mark))
        return BFC_NO_HOST_MEMORY;
    pool->stats->requested += bytes - requested;
    block_identify(pool, b, block_id(at), bytes, mark);
    raise_peak(&pool->stats->peak_requested, pool->stats->requested);
    return BFC_OK;
}

enum bfc_status bfc_pool_carve(struct bfc_pool *pool, bfc_addr start, uint64_t bytes) {
    pool_enter(pool);
    enum bfc_status status = carve(pool, start, bytes);
    pool_leave(pool);
    return status;
}
