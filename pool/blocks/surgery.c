#include "pool/blocks/surgery.h"

#include "base/compiler.h"

void surgery_add_to_index(struct bfc_pool *pool, block_index b) {
    const struct block *at = &pool->blocks[b];
    node_index before = address_index_find(&pool->index, block_start(at));
    address_index_add(&pool->index, at, b, pool->index.nodes[before].region);
}

static void update_oldest(struct bfc_pool *pool) {
    block_index oldest = pool->pending_list.oldest;
    pool->oldest_fence = oldest ? pool->details[oldest].fence : UINT64_MAX;
}

void surgery_unfence(struct bfc_pool *pool, block_index b) {
    list_remove(&pool->pending_list, pool->details, b);
    update_oldest(pool);
}

static void add_to_list(struct bfc_pool *pool, block_index b) {
    struct block_list *list = list_of(pool, b);
    if (list)
        list_add(list, pool->details, b);
    if (list == &pool->pending_list)
        update_oldest(pool);
}

void surgery_unlist(struct bfc_pool *pool, block_index b) {
    struct bins *bins = bins_of(pool, b);
    struct block_list *list = list_of(pool, b);
    if (bins)
        bins_remove(bins, pool->blocks, b, false);
    if (list == &pool->pending_list)
        surgery_unfence(pool, b);
    else if (list)
        list_remove(list, pool->details, b);
}

/* Splits block b after its first `granules`, and returns a new block for the first part, which is
 * in no bin. b keeps the second part, and its place in `bins` is updated (NULL: b is in no bins).
 * 0: the host has no memory for a record. */
static inline block_index split_in(struct bfc_pool *pool, struct bins *bins, block_index b,
                                   uint64_t granules) {
    if (bins)
        bins_begin_resize(bins, pool->blocks, b, false);
    block_index front = split_front(pool, b, granules);
    if (bins)
        bins_end_resize(bins, pool->blocks, b, false);
    return front;
}

bool surgery_cut_front(struct bfc_pool *pool, struct bins *bins, block_index b, uint64_t granules) {
    block_index front = split_in(pool, bins, b, granules);
    if (!front)
        return false;
    if (bins)
        bins_insert(bins, pool->blocks, front, false);
    if (block_state(&pool->blocks[b]) != BLOCK_READY) {
        pool->details[front].fence = pool->details[b].fence;
        add_to_list(pool, front);
    }
    return true;
}

block_index surgery_take_front(struct bfc_pool *pool, block_index b, uint64_t granules) {
    if (block_granules(&pool->blocks[b]) > granules)
        return split_in(pool, bins_of(pool, b), b, granules);
    surgery_unlist(pool, b);
    return b;
}

void surgery_merge_by_rules(struct bfc_pool *pool, block_index b) {
    b = merge_ready(pool, ready_bins(pool, b, false), b, false);
    const struct block *at = &pool->blocks[b];
    if (pool->rules.ages && !at->next && block_state(&pool->blocks[at->previous]) == BLOCK_HEAD)
        /* b fills the whole region, so the region has just become idle */
        region_of(pool, b)->idle_since = pool->lookups;
}

static block_index absorb_neighbours(struct bfc_pool *pool, block_index b) {
    block_index next = pool->blocks[b].next, previous = pool->blocks[b].previous;
    if (belongs_with(pool, b, next)) {
        surgery_unlist(pool, next);
        absorb_next(pool, b, true);
    }
    if (!belongs_with(pool, b, previous))
        return b;
    surgery_unlist(pool, previous);
    absorb_next(pool, previous, true);
    return previous;
}

block_index surgery_join(struct bfc_pool *pool, block_index b, enum block_state state,
                         uint64_t key) {
    block_set_state(&pool->blocks[b], state);
    pool->details[b].fence = key;
    b = absorb_neighbours(pool, b);
    pool->details[b].fence = key;
    struct bins *bins = bins_of(pool, b);
    if (bins)
        bins_insert(bins, pool->blocks, b, false);
    add_to_list(pool, b);
    return b;
}

void surgery_make_free(struct bfc_pool *pool, block_index b, bfc_fence fence) {
    uint64_t size = block_size(&pool->blocks[b]);
    if (LIKELY(fence <= pool->completed)) {
        make_ready(pool, b);
    } else if (fence == BFC_DEFERRED_FENCE) {
        pool_count_deferred(pool, size);
        surgery_join(pool, b, BLOCK_DEFERRED, ++pool->deferred_arrivals);
    } else {
        pool->stats->pending += size;
        surgery_join(pool, b, BLOCK_PENDING, fence);
    }
}

void surgery_make_ready(struct bfc_pool *pool, block_index b) {
    uint64_t size = block_size(&pool->blocks[b]);
    if (block_state(&pool->blocks[b]) == BLOCK_DEFERRED)
        pool_count_deferred(pool, -size);
    else
        pool->stats->pending -= size;
    surgery_unlist(pool, b);
    make_ready(pool, b);
}
