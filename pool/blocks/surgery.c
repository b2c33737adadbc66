#include "pool/blocks/surgery.h"
#include "pool/blocks/pending.h"

#include "base/compiler.h"

void surgery_add_to_index(struct bfc_pool *pool, block_index b) {
    const struct block *at = &pool->blocks[b];
    node_index before = address_index_find(&pool->index, block_start(at));
    address_index_add(&pool->index, at, b, pool->index.nodes[before].region);
}

void surgery_unbin(struct bfc_pool *pool, block_index b) {
    if (block_state(&pool->blocks[b]) == BLOCK_READY) {
        bins_remove(ready_bins(pool, b, false), pool->blocks, b, false);
        return;
    }
    if (is_reused_pending(pool, b))
        bins_remove(&pool->pending, pool->blocks, b, false);
    fences_remove(pool, b);
}

void surgery_merge_by_rules(struct bfc_pool *pool, block_index b) {
    b = merge_ready(pool, ready_bins(pool, b, false), b, false);
    const struct block *at = &pool->blocks[b];
    if (pool->rules.ages && !at->next && block_state(&pool->blocks[at->previous]) == BLOCK_HEAD)
        region_of(pool, b)->idle_since = pool->lookups; /* the whole region became free */
}

/* Block b absorbs its neighbours where `next` and `previous` say so, after `unlist` removed them
 * from their lists. Returns the block that is left. */
static ALWAYS_INLINE block_index absorb_neighbours(struct bfc_pool *pool, block_index b, bool next,
                                                   bool previous,
                                                   void (*unlist)(struct bfc_pool *, block_index)) {
    block_index before = pool->blocks[b].previous;
    if (next) {
        unlist(pool, pool->blocks[b].next);
        absorb_next(pool, b);
    }
    if (!previous)
        return b;
    unlist(pool, before);
    absorb_next(pool, before);
    return before;
}

static void make_pending(struct bfc_pool *pool, block_index b, bfc_fence fence) {
    struct block *blocks = pool->blocks;
    block_set_state(&blocks[b], BLOCK_PENDING);
    pool->stats->pending += block_size(&blocks[b]);
    b = absorb_neighbours(pool, b, pending_with(pool, blocks[b].next, fence),
                          pending_with(pool, blocks[b].previous, fence), surgery_unbin);
    fences_add(pool, b, fence);
    if (is_reused_pending(pool, b))
        bins_insert(&pool->pending, blocks, b, false);
}

static void make_deferred(struct bfc_pool *pool, block_index b) {
    struct block *blocks = pool->blocks;
    block_set_state(&blocks[b], BLOCK_DEFERRED);
    pool_count_deferred(pool, block_size(&blocks[b]));
    b = absorb_neighbours(pool, b, block_state(&blocks[blocks[b].next]) == BLOCK_DEFERRED,
                          block_state(&blocks[blocks[b].previous]) == BLOCK_DEFERRED,
                          deferred_remove);
    deferred_add(pool, b);
}

void surgery_make_free(struct bfc_pool *pool, block_index b, bfc_fence fence) {
    if (LIKELY(fence <= pool->completed))
        make_ready(pool, b);
    else if (fence == BFC_DEFERRED_FENCE)
        make_deferred(pool, b);
    else
        make_pending(pool, b, fence);
}

void surgery_make_ready(struct bfc_pool *pool, block_index b) {
    struct bfc_pool_stats *stats = pool->stats;
    uint64_t size = block_size(&pool->blocks[b]);
    if (block_state(&pool->blocks[b]) == BLOCK_DEFERRED) {
        deferred_remove(pool, b);
        pool_count_deferred(pool, -size);
    } else {
        surgery_unbin(pool, b);
        stats->pending -= size;
    }
    make_ready(pool, b);
}
