/* Allocates, frees and splits blocks for the caller. The usual allocation and the usual free take
 * the lock once, and under it search a few bins and change a few lists and counters: O(1). */
#include "base/compiler.h"
#include "pool/blocks/region.h"
#include "pool/blocks/slots.h"
#include "pool/blocks/surgery.h"
#include "pool/paging/grow.h"
#include "pool/regions/regions.h"
#include "pool/search/place.h"
#include "pool/search/take.h"

static void make_awaited(struct bfc_pool *pool, block_index b) {
    block_set_state(&pool->blocks[b], BLOCK_AWAITED);
    pool->stats->pending += block_size(&pool->blocks[b]);
    pool->awaited++;
}

/* Rounds the request's size as the policy wants. If the block that the request would get has pages
 * that are too large for it, has them replaced by smaller ones (remake_before). False: pages would
 * have to be replaced, but BFC_ALLOCATE_HIT_ONLY forbids it. */
static NOINLINE bool prepare_request(struct bfc_pool *pool, struct request *request) {
    if (pool->rules.rounds && request->bytes <= LARGEST_BLOCK)
        request->granules = policy_round(pool, request->bytes) >> BFC_GRANULE_BITS;
    return !pool->rules.watched || request->granules > MOST_GRANULES ||
           remake_before(pool, request);
}

/* Refuses a request for which the upstream was not asked. There is thus no error code of the
 * upstream to report, so the request's `error` becomes 0. */
static enum bfc_status refuse_request(const struct request *request) {
    request->out->error = 0;
    return BFC_OUT_OF_MEMORY;
}

static NOINLINE enum bfc_status allocate_by_rules(struct bfc_pool *pool, struct request request) {
    if (!pool->config.reuse_pending)
        request.flags &= ~(unsigned)BFC_ALLOCATE_PENDING;
    if (pool->rules.prepares && !prepare_request(pool, &request))
        /* only a request with BFC_ALLOCATE_HIT_ONLY is refused here; its caller repeats it without
         * that flag */
        return refuse_request(&request);
    pool->lookups += pool->rules.ages;
    if (request.granules > MOST_GRANULES) {
        pool->stats->out_of_memory +=
            !(request.flags & (BFC_ALLOCATE_HIT_ONLY | BFC_ALLOCATE_UNCOUNTED));
        return refuse_request(&request);
    }
    if (take_any(pool, &request)) {
        pool->stats->hits++;
        return BFC_OK;
    }
    if (!(request.flags & BFC_ALLOCATE_HIT_ONLY))
        return serve_miss(pool, &request);
    /* The caller will repeat this request without BFC_ALLOCATE_HIT_ONLY. The second call counts as
     * an allocation, so the first one must not. */
    pool->lookups -= pool->rules.ages;
    return refuse_request(&request);
}

/* Makes a request for `bytes` bytes without the policy's own rounding. */
static inline struct request unruled_request(uint64_t bytes, unsigned flags,
                                             struct bfc_block_info *block) {
    return (struct request){.bytes = bytes,
                            .granules = round_large(granules_to_hold(bytes)),
                            .flags = flags,
                            .out = block};
}

/* Serves a request that bfc_pool_allocate and cut_and_leave have left, and drops the lock. */
static NOINLINE enum bfc_status allocate_slowly(struct bfc_pool *pool, uint64_t bytes,
                                                unsigned flags, struct bfc_block_info *block) {
    struct request request = unruled_request(bytes, flags, block);
    enum bfc_status status = BFC_OK;
    block_index b = 0;
    if (UNLIKELY(pool->oldest_fence <= pool->completed))
        settle_completed(pool, FENCES_A_CALL);
    bool ready = !(flags & BFC_ALLOCATE_PENDING) || !pool->pending_list.oldest;
    if (LIKELY(request.granules <= pool->rules.plain_most && ready))
        b = bins_pick(&pool->ready, pool->blocks, request.granules);
    if (LIKELY(b) && starts_well(&pool->blocks[b], request.granules)) {
        hand_out_ready(pool, b, &request, true);
        pool->stats->hits++;
    } else {
        status = allocate_by_rules(pool, request);
    }
    pool_leave(pool);
    return status;
}

/* Whether something that is seldom due is to be done with the next allocation or free: note it, or
 * make blocks ready whose fences are complete. */
static inline bool has_chores(const struct bfc_pool *pool) {
    return UNLIKELY(pool->oldest_fence <= pool->completed) || UNLIKELY(pool->notes_left);
}

/* Makes ready block b, which is in no bin, live for a request, and drops the lock. */
static ALWAYS_INLINE enum bfc_status conclude_hit(struct bfc_pool *pool, block_index b,
                                                  const struct request *request) {
    uint64_t id = pool->next_id++, size = request_size(request);
    pool->stats->hits++;
    pool->stats->ready -= size;
    put_live(pool, b, size, request, id, BFC_NO_FENCE);
    pool_leave(pool);
    return BFC_OK;
}

/* Serves a request for which there may be no block of the same size from the start of a larger one,
 * and drops the lock. Blocks for which the address index or the array of records would change are
 * left to allocate_slowly. */
static NOINLINE enum bfc_status cut_and_leave(struct bfc_pool *pool, uint64_t bytes, unsigned flags,
                                              struct bfc_block_info *out, uint64_t granules,
                                              unsigned bin) {
    const struct request request = {
        .bytes = bytes, .granules = granules, .flags = flags, .out = out};
    struct block *blocks = pool->blocks;
    block_index b = bins_pick_from(&pool->ready, blocks, granules, bin), front = pool->vacant;
    if (UNLIKELY(!b) || UNLIKELY(!starts_well(&blocks[b], granules)) ||
        UNLIKELY(block_granules(&blocks[b]) == granules) || UNLIKELY(!front) ||
        UNLIKELY(is_indexed(b)) || UNLIKELY(is_indexed(front)))
        return allocate_slowly(pool, bytes, flags, out);
    pool->vacant = blocks[front].next;
    pool->records++;
    link_front(pool, b, front, granules);
    bins_end_resize(&pool->ready, pool->blocks, b, true);
    return conclude_hit(pool, front, &request);
}

/*
 * This function and cut_and_leave serve usual requests, allocate_slowly does all that is seldom
 * needed. None of the three calls another except as its last act. So the first two call nothing in
 * between, and the compiler needs to save hardly any registers.
 */
enum bfc_status bfc_pool_allocate(struct bfc_pool *pool, uint64_t bytes, unsigned flags,
                                  struct bfc_block_info *block) {
    if (UNLIKELY(!bytes))
        return BFC_INVALID_SIZE;
    pool_enter(pool);
    if (UNLIKELY(flags & BFC_ALLOCATE_PENDING) && pool->pending_list.oldest)
        return allocate_slowly(pool, bytes, flags, block);
    const struct request request = unruled_request(bytes, flags, block);
    uint64_t granules = request.granules;
    unsigned bin = bin_of(granules);
    struct block *blocks = pool->blocks;
    if (has_chores(pool) || UNLIKELY(granules > pool->rules.plain_most) ||
        UNLIKELY(pool->next_id > pool->last_id) || UNLIKELY(pool->map.count >= pool->map.most))
        return allocate_slowly(pool, bytes, flags, block);
    block_index b = (block_index)pool->ready.heads[bin];
    if (!b || block_granules(&blocks[b]) != granules || !starts_well(&blocks[b], granules))
        return cut_and_leave(pool, bytes, flags, block, granules, bin);
    bins_take_first(&pool->ready, blocks, b, bin);
    return conclude_hit(pool, b, &request);
}

/* To be called after an attempt to take the range at `at` had the result `state`. If a part of the
 * range is pending, asks the upstream which fences are complete by now, and tries again, unless
 * BFC_ALLOCATE_HIT_ONLY forbids it. Returns what bfc_pool_allocate_at returns. */
static NOINLINE enum bfc_status take_after_poll(struct bfc_pool *pool, bfc_addr at,
                                                const struct request *request, bfc_addr *below,
                                                enum place_state state) {
    if (state == PLACE_PENDING && !(request->flags & BFC_ALLOCATE_HIT_ONLY)) {
        wait_poll(pool);
        state = place_take(pool, at, request, below);
    }
    pool->stats->hits += state == PLACE_TAKEN;
    return state == PLACE_PENDING ? BFC_OUT_OF_MEMORY : (enum bfc_status)state;
}

enum bfc_status bfc_pool_allocate_at(struct bfc_pool *pool, bfc_addr at, uint64_t bytes,
                                     unsigned flags, bfc_addr below[BFC_PLACE_HINTS],
                                     struct bfc_block_info *block) {
    if (UNLIKELY(bytes - 1 >= LARGEST_BLOCK))
        return BFC_INVALID_SIZE;
    if (UNLIKELY(at % BFC_GRANULE))
        return BFC_INVALID_POINTER;
    struct request request = unruled_request(bytes, flags, block);
    enum bfc_status status = BFC_OK;
    pool_enter(pool);
    if (UNLIKELY(pool->oldest_fence <= pool->completed))
        settle_completed(pool, FENCES_A_CALL);
    enum place_state state = place_take(pool, at, &request, below);
    if (LIKELY(state == PLACE_TAKEN))
        pool->stats->hits++;
    else
        status = take_after_poll(pool, at, &request, below, state);
    pool_leave(pool);
    return status;
}

enum bfc_status bfc_pool_allocate_apart(struct bfc_pool *pool, uint64_t bytes,
                                        struct bfc_block_info *block) {
    if (bytes - 1 >= LARGEST_BLOCK)
        return BFC_INVALID_SIZE;
    struct request request = unruled_request(bytes, BFC_ALLOCATE_APART, block);
    pool_enter(pool);
    bool taken = apart_spare(pool, &request);
    pool->stats->hits += taken;
    pool_leave(pool);
    return taken ? BFC_OK : BFC_OUT_OF_MEMORY;
}

void bfc_pool_count_out_of_memory(struct bfc_pool *pool) {
    pool_enter(pool);
    pool->stats->out_of_memory++;
    pool_leave(pool);
}

void bfc_pool_count_saved(struct bfc_pool *pool) {
    pool_enter(pool);
    pool->stats->retries++;
    pool_leave(pool);
}

static NOINLINE enum bfc_status refuse_free(struct bfc_pool *pool, bfc_addr start) {
    if (!find_holding(pool, start))
        return BFC_UNKNOWN_POINTER;
    pool->stats->invalid_frees++;
    return BFC_INVALID_POINTER;
}

void bfc_pool_count_invalid_free(struct bfc_pool *pool, bfc_addr start) {
    pool_enter(pool);
    refuse_free(pool, start);
    pool_leave(pool);
}

/* Takes block b, which is being freed, out of the counters of live blocks. */
static ALWAYS_INLINE void count_free(struct bfc_pool *pool, block_index b) {
    struct bfc_pool_stats *stats = pool->stats;
    stats->in_use -= block_size(&pool->blocks[b]);
    stats->requested -= block_requested(pool, b);
    stats->blocks--;
    stats->frees++;
}

/* Returns the link of the map that leads to the live block that starts at `start`, or one that
 * is 0. */
static inline block_index *find_live(struct bfc_pool *pool, bfc_addr start) {
    static block_index none;
    /* A block's `tagged` is its address, with its state and marks of its region in the low bits.
     * The state BLOCK_LIVE is 0, so for a live block it equals the address once the bits
     * BLOCK_REGION_MASK are cleared. An address whose low bits are not 0 is refused here, since it
     * could equal the `tagged` of a free block. */
    return UNLIKELY(start & BLOCK_TAG_MASK) ? &none : map_link_to(&pool->map, pool->blocks, start);
}

/* Removes the live block that starts at `start` from the map and from the counters of live blocks,
 * and returns it; 0: no live block starts there. */
static block_index take_live(struct bfc_pool *pool, bfc_addr start) {
    block_index *link = find_live(pool, start), b = *link;
    if (UNLIKELY(!b))
        return 0;
    map_unlink(&pool->map, pool->blocks, link);
    if (UNLIKELY(pool->map.count < pool->map.fewest))
        map_shrink(&pool->map, pool->blocks);
    count_free(pool, b);
    if (UNLIKELY(pool->notes_left))
        pool_note(pool, block_id(&pool->blocks[b]), 0);
    return b;
}

/* Frees a block that free_and_leave and merge_and_leave have left, and drops the lock. */
static NOINLINE enum bfc_status free_slowly(struct bfc_pool *pool, bfc_addr start,
                                            bfc_fence fence) {
    if (UNLIKELY(pool->oldest_fence <= pool->completed))
        settle_completed(pool, FENCES_A_CALL);
    block_index b = take_live(pool, start);
    enum bfc_status status = LIKELY(b) ? BFC_OK : refuse_free(pool, start);
    if (LIKELY(b && fence <= pool->completed))
        make_ready(pool, b);
    else if (b)
        surgery_make_free(pool, b, fence);
    slots_settle(pool);
    pool_leave(pool);
    return status;
}

/* Does what is seldom due after a free that has made b ready, and drops the lock. */
static NOINLINE enum bfc_status leave_slowly(struct bfc_pool *pool, block_index b) {
    note_size(pool, b);
    slots_settle(pool);
    pool_leave(pool);
    return BFC_OK;
}

/* Removes the block that `link` leads to from the map, makes it ready, and drops the lock. */
static ALWAYS_INLINE enum bfc_status conclude_free(struct bfc_pool *pool, block_index *link,
                                                   struct ready_neighbours ready) {
    struct block *blocks = pool->blocks;
    block_index b = *link;
    map_unlink(&pool->map, blocks, link);
    count_free(pool, b);
    pool->stats->ready += block_size(&blocks[b]);
    b = join_ready(pool, &pool->ready, b, ready, true, false);
    /* Only a merge leaves records unused. */
    bool few = (ready.previous || ready.next) && UNLIKELY(pool->records < pool->few_records);
    if (UNLIKELY(blocks[b].last >= pool->rules.whole_above) || few)
        return leave_slowly(pool, b);
    pool_leave(pool);
    return BFC_OK;
}

/* Makes a block ready that merges with a neighbour, and drops the lock. Blocks for which the
 * address index would change are left to free_slowly. */
static NOINLINE enum bfc_status merge_and_leave(struct bfc_pool *pool, block_index *link) {
    const struct block *blocks = pool->blocks;
    block_index b = *link;
    struct ready_neighbours ready = ready_neighbours(blocks, b);
    if (UNLIKELY(is_indexed(b)) || (ready.next && UNLIKELY(is_indexed(blocks[b].next))))
        return free_slowly(pool, block_start(&blocks[b]), BFC_NO_FENCE);
    return conclude_free(pool, link, ready);
}

/* Makes the block at `start`, to which `link` leads, ready, and drops the lock. Calls other
 * functions only as its last act, as bfc_pool_allocate does. */
static ALWAYS_INLINE enum bfc_status free_and_leave(struct bfc_pool *pool, bfc_addr start,
                                                    block_index *link) {
    if (has_chores(pool) || UNLIKELY(!pool->rules.plain_most) ||
        UNLIKELY(pool->map.count <= pool->map.fewest))
        return free_slowly(pool, start, BFC_NO_FENCE);
    struct ready_neighbours ready = ready_neighbours(pool->blocks, *link);
    if (ready.previous || ready.next)
        return merge_and_leave(pool, link);
    return conclude_free(pool, link, ready);
}

enum bfc_status bfc_pool_free(struct bfc_pool *pool, bfc_addr start, bfc_fence fence) {
    pool_enter(pool);
    if (UNLIKELY(fence > pool->completed))
        return free_slowly(pool, start, fence);
    block_index *link = find_live(pool, start);
    return LIKELY(*link) ? free_and_leave(pool, start, link) : free_slowly(pool, start, fence);
}

enum bfc_status bfc_pool_free_ready(struct bfc_pool *pool, bfc_addr start,
                                    struct bfc_glimpse seen) {
    pool_enter(pool);
    block_index *link = &pool->map.buckets[seen.place], b = *link;
    if (UNLIKELY(b != seen.block) || UNLIKELY(!map_is_at(&pool->blocks[b], start))) {
        link = find_live(pool, start);
        if (!*link)
            return free_slowly(pool, start, BFC_NO_FENCE);
    }
    return free_and_leave(pool, start, link);
}

static NOINLINE struct bfc_glimpse look_under_lock(struct bfc_pool *pool, bfc_addr start) {
    pool_enter(pool);
    struct bfc_glimpse seen = {.block = map_find(&pool->map, pool->blocks, start),
                               .place = map_bucket(&pool->map, start)};
    pool_leave(pool);
    return seen;
}

struct bfc_glimpse bfc_pool_glimpse(struct bfc_pool *pool, bfc_addr start) {
    struct bfc_glimpse seen = {0};
    /* An address whose low bits are not 0 is refused here: no block starts there, but it could
     * equal the `tagged` (address and state) of a free block. */
    if (UNLIKELY(start & BLOCK_TAG_MASK))
        return seen;
    seen.block = map_glimpse(&pool->map, pool->blocks, start, &seen.place);
    return LIKELY(seen.block) ? seen : look_under_lock(pool, start);
}

enum bfc_status bfc_pool_free_awaited(struct bfc_pool *pool, bfc_addr start) {
    pool_enter(pool);
    block_index b = take_live(pool, start);
    enum bfc_status status = b ? BFC_OK : refuse_free(pool, start);
    if (b)
        make_awaited(pool, b);
    pool_leave(pool);
    return status;
}

void bfc_pool_ready(struct bfc_pool *pool, bfc_addr start, bfc_fence fence) {
    pool_enter(pool);
    block_index b = find_holding(pool, start);
    if (b && block_state(&pool->blocks[b]) == BLOCK_AWAITED &&
        block_start(&pool->blocks[b]) == start) {
        pool->stats->pending -= block_size(&pool->blocks[b]);
        pool->awaited--;
        pool->readied++;
        surgery_make_free(pool, b, fence);
    }
    slots_settle(pool);
    pool_leave(pool);
}

/* Splits live block b after its first `granules`. The rest becomes a live block, which is counted
 * as an allocation for which the program requested 0 bytes. `fence` is the one under which b was
 * handed out. False: the host has no memory for a record. */
static bool split_live(struct bfc_pool *pool, block_index b, uint64_t granules, bfc_fence fence) {
    block_index rest = split_back(pool, b, block_granules(&pool->blocks[b]) - granules);
    if (!rest)
        return false;
    block_identify(pool, rest, block_size(&pool->blocks[rest]), take_id(pool), 0, fence);
    map_insert(&pool->map, pool->blocks, rest);
    struct bfc_pool_stats *stats = pool->stats;
    stats->blocks++;
    stats->allocations++;
    stats->hits++;
    return true;
}

static enum bfc_status carve_block(struct bfc_pool *pool, bfc_addr start, uint64_t bytes) {
    block_index b = start & BLOCK_TAG_MASK ? 0 : map_find(&pool->map, pool->blocks, start);
    if (!b)
        return find_holding(pool, start) ? BFC_INVALID_POINTER : BFC_UNKNOWN_POINTER;
    struct block *at = &pool->blocks[b];
    uint64_t granules = granules_to_hold(bytes);
    if (!bytes || granules > block_granules(at) || block_lead(pool, b, granules))
        return BFC_INVALID_SIZE;
    uint64_t requested = block_requested(pool, b);
    bfc_fence fence = block_handed_out(pool, b);
    if (granules < block_granules(at) && !split_live(pool, b, granules, fence))
        return BFC_NO_HOST_MEMORY;
    pool->stats->requested += bytes - requested;
    block_identify(pool, b, block_size(at), block_id(at), bytes, fence);
    raise_peak(&pool->stats->peak_requested, pool->stats->requested);
    return BFC_OK;
}

enum bfc_status bfc_pool_carve(struct bfc_pool *pool, bfc_addr start, uint64_t bytes) {
    pool_enter(pool);
    enum bfc_status status = carve_block(pool, start, bytes);
    pool_leave(pool);
    return status;
}
