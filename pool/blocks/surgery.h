/*
 * Splits, merges and frees blocks, and keeps the counters, lists and bins up to date. The functions
 * that nearly every allocation or free calls are inline. Everything here is called under the lock.
 */
#ifndef BFC_POOL_SURGERY_H
#define BFC_POOL_SURGERY_H

#include "base/compiler.h"
#include "pool/blocks/pool_state.h"
#include "pool/blocks/slots.h"
#include "pool/blocks/whole.h"

/* Adds a node for b to the address index. b is new, and linked to its neighbours already. */
void surgery_add_to_index(struct bfc_pool *pool, block_index b);
/* Makes b, which is in no bin, ready, and merges it with its ready neighbours. For pools that sort
 * free blocks (rules.exact) or whose regions record when they became wholly free (rules.ages). */
void surgery_merge_by_rules(struct bfc_pool *pool, block_index b);
/* Makes block b ready, pending or deferred, according to `fence` (bfc_pool_free). b must be in no
 * bin and no list, and not be counted as live or free. */
void surgery_make_free(struct bfc_pool *pool, block_index b, bfc_fence fence);
/* Makes a pending or deferred block ready. */
void surgery_make_ready(struct bfc_pool *pool, block_index b);
/* Removes a free or bare block from its bins and its list. */
void surgery_unlist(struct bfc_pool *pool, block_index b);
/* Removes a pending block from the list of pending blocks, but leaves it in its bin. */
void surgery_unfence(struct bfc_pool *pool, block_index b);
/* Gives b, which is in no bin and no list, the state BLOCK_PENDING, BLOCK_DEFERRED or BLOCK_BARE,
 * merges it with neighbours of the same state (pending ones only with the same fence), and adds it
 * to bins and list. Returns the merged block. `key`: the fence of a pending block, the count
 * deferred_arrivals for a deferred one, 0 for a bare one. */
block_index surgery_join(struct bfc_pool *pool, block_index b, enum block_state state,
                         uint64_t key);
/* Splits free or bare block b, which is in `bins` (NULL: in none), after its first `granules`. The
 * new block for the first part gets into the bins and the list that b is in. False: the host has no
 * memory for a record. */
bool surgery_cut_front(struct bfc_pool *pool, struct bins *bins, block_index b, uint64_t granules);
/* Removes the first `granules` of free or bare block b, or all of it if it is not larger, from bins
 * and lists, and returns them as a block. The caller has reserved a record with slots_prepare. */
block_index surgery_take_front(struct bfc_pool *pool, block_index b, uint64_t granules);

/* Updates the address index: the start of b, which has a node there, was moved by `bytes`. */
static inline void shift_in_index(struct bfc_pool *pool, block_index b, uint64_t bytes) {
    bfc_addr start = block_start(&pool->blocks[b]);
    address_index_shift(&pool->index, start - bytes, start);
}

/* Makes record `front` the block of the first `granules` of b, which keeps the rest. The address
 * index is not updated. */
static ALWAYS_INLINE void link_front(struct bfc_pool *pool, block_index b, block_index front,
                                     uint64_t granules) {
    struct block *blocks = pool->blocks, *at = &blocks[b], *before = &blocks[front];
    before->tagged = at->tagged;
    before->last = (uint32_t)(granules - 1);
    before->previous = at->previous;
    before->next = b;
    blocks[at->previous].next = front;
    at->previous = front;
    at->tagged += granules << BFC_GRANULE_BITS;
    at->last -= (uint32_t)granules;
    pool->stats->splits++;
}

/*
 * Splits b after its first `granules`. b keeps the second part, and its state, bin and list.
 * Returns a new block with the same state for the first part, which is in no bin and no list. 0:
 * the host has no memory for a record.
 */
static ALWAYS_INLINE block_index split_front(struct bfc_pool *pool, block_index b,
                                             uint64_t granules) {
    block_index front = slot_take(pool);
    if (UNLIKELY(!front))
        return 0;
    link_front(pool, b, front, granules);
    if (UNLIKELY(is_indexed(b)))
        shift_in_index(pool, b, granules << BFC_GRANULE_BITS);
    if (UNLIKELY(is_indexed(front)))
        surgery_add_to_index(pool, front);
    return front;
}

/* Splits b before its last `granules`. b keeps the first part, and its state, bin and list. Returns
 * a new block with the same state for the last part, which is in no bin and no list. 0: the host
 * has no memory for a record. */
static ALWAYS_INLINE block_index split_back(struct bfc_pool *pool, block_index b,
                                            uint64_t granules) {
    block_index back = slot_take(pool);
    if (UNLIKELY(!back))
        return 0;
    struct block *blocks = pool->blocks, *at = &blocks[b], *after = &blocks[back];
    after->last = (uint32_t)(granules - 1);
    at->last -= (uint32_t)granules;
    after->tagged = at->tagged + block_size(at);
    after->previous = b;
    after->next = at->next;
    /* for the last block of a region `next` is record 0, which belongs to no block and may be
     * written to */
    blocks[at->next].previous = back;
    at->next = back;
    if (UNLIKELY(is_indexed(back)))
        surgery_add_to_index(pool, back);
    pool->stats->splits++;
    return back;
}

/*
 * In the following functions `indexed` is a compile-time constant. False means that the caller
 * knows that the address index has no node for any of the blocks (is_indexed), so the compiler
 * drops the code that updates the index.
 */

static ALWAYS_INLINE void vacate_record(struct bfc_pool *pool, block_index gone, bool indexed) {
    if (indexed && UNLIKELY(is_indexed(gone)))
        address_index_remove(&pool->index, &pool->blocks[gone]);
    slot_vacate(pool, gone);
    pool->stats->merges++;
}

/* Merges b with its next neighbour, which is in no bin and no list. The record of b remains. */
static ALWAYS_INLINE void absorb_next(struct bfc_pool *pool, block_index b, bool indexed) {
    struct block *blocks = pool->blocks;
    block_index gone = blocks[b].next;
    blocks[b].last += blocks[gone].last + 1;
    blocks[b].next = blocks[gone].next;
    /* for the last block of a region `next` is record 0, which belongs to no block and may be
     * written to */
    blocks[blocks[b].next].previous = b;
    vacate_record(pool, gone, indexed);
}

/* Merges b with its previous neighbour, which is in no bin and no list. The record of b remains. */
static ALWAYS_INLINE void absorb_previous(struct bfc_pool *pool, block_index b, bool indexed) {
    struct block *blocks = pool->blocks;
    block_index gone = blocks[b].previous;
    uint64_t size = block_size(&blocks[gone]);
    blocks[b].last += blocks[gone].last + 1;
    blocks[b].previous = blocks[gone].previous;
    blocks[blocks[b].previous].next = b;
    vacate_record(pool, gone, indexed);
    blocks[b].tagged -= size;
    if (indexed && UNLIKELY(is_indexed(b)))
        shift_in_index(pool, b, -size);
}

/* To be called after ready block b was made or has grown: if b now fills a large region, moves b to
 * the bins `whole`. */
static ALWAYS_INLINE void note_size(struct bfc_pool *pool, block_index b) {
    if (UNLIKELY(pool->blocks[b].last >= pool->rules.whole_above))
        whole_put(pool, b);
}

/* Which of a block's two neighbours are ready. */
struct ready_neighbours {
    bool previous, next;
};
static inline struct ready_neighbours ready_neighbours(const struct block *blocks, block_index b) {
    return (struct ready_neighbours){
        .previous = block_state(&blocks[blocks[b].previous]) == BLOCK_READY,
        .next = block_state(&blocks[blocks[b].next]) == BLOCK_READY,
    };
}

/* Makes b, which is in no bin and has no ready neighbour, ready. */
static ALWAYS_INLINE void insert_ready(struct bfc_pool *pool, struct bins *bins, block_index b,
                                       bool plain) {
    block_set_state(&pool->blocks[b], BLOCK_READY);
    bins_insert(bins, pool->blocks, b, plain);
}

/*
 * Makes b, which is in no bin, ready, and merges it with its ready neighbours, which are in `bins`.
 * Returns the merged block; if b had a ready neighbour, the neighbour's record remains and b's is
 * vacated. The caller must call note_size for the result, and knows which neighbours are ready.
 * `plain` is a compile-time constant: true means that the bins are not sorted, so the compiler
 * drops the code for sorted ones.
 */
static ALWAYS_INLINE block_index join_ready(struct bfc_pool *pool, struct bins *bins, block_index b,
                                            struct ready_neighbours ready, bool plain,
                                            bool indexed) {
    struct block *blocks = pool->blocks;
    block_index next = blocks[b].next, previous = blocks[b].previous;
    if (ready.previous) {
        bins_begin_resize(bins, blocks, previous, plain);
        if (ready.next) {
            bins_remove(bins, blocks, next, plain);
            absorb_next(pool, b, indexed);
        }
        absorb_next(pool, previous, indexed);
        bins_end_resize(bins, blocks, previous, plain);
        return previous;
    }
    if (ready.next) {
        bins_begin_resize(bins, blocks, next, plain);
        absorb_previous(pool, next, indexed);
        bins_end_resize(bins, blocks, next, plain);
        return next;
    }
    insert_ready(pool, bins, b, plain);
    return b;
}

static ALWAYS_INLINE block_index merge_ready(struct bfc_pool *pool, struct bins *bins,
                                             block_index b, bool plain) {
    b = join_ready(pool, bins, b, ready_neighbours(pool->blocks, b), plain, true);
    note_size(pool, b);
    return b;
}

static inline void make_ready(struct bfc_pool *pool, block_index b) {
    pool->stats->ready += block_size(&pool->blocks[b]);
    if (LIKELY(pool->rules.plain_most))
        merge_ready(pool, &pool->ready, b, true);
    else if (!pool->rules.exact && !pool->rules.ages)
        merge_ready(pool, ready_bins(pool, b, false), b, true);
    else
        surgery_merge_by_rules(pool, b);
}

/* Whether the neighbours a and b must be merged: both are ready, both deferred, both bare, or both
 * pending under the same fence. */
static inline bool belongs_with(const struct bfc_pool *pool, block_index a, block_index b) {
    enum block_state state = block_state(&pool->blocks[a]);
    if (state != block_state(&pool->blocks[b]) || state == BLOCK_LIVE || state == BLOCK_AWAITED)
        return false;
    return state != BLOCK_PENDING || pool->details[a].fence == pool->details[b].fence;
}

#define FENCES_ALL UINT64_MAX
#define FENCES_A_CALL 64

/* Makes up to `most` pending blocks ready whose fences are known to be complete. */
void settle_completed(struct bfc_pool *pool, uint64_t most);

/* Records that all fences up to `fence` are complete, but makes no block ready. */
void settle_note_complete(struct bfc_pool *pool, bfc_fence fence);

#endif
