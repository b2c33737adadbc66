#include "pool/blocks/slots.h"

#include "base/numbers.h"
#include "pool/blocks/paging.h"

#define MOVES_A_CALL 8

static bool commit_records(struct bfc_pool *pool, uint64_t records) {
    return host_array_commit(&pool->block_memory, records * sizeof(struct block)) &&
           host_array_commit(&pool->detail_memory, records * sizeof(struct block_detail));
}

static void set_high(struct bfc_pool *pool, uint32_t high) {
    pool->high = high;
    pool->few_records = high > SLOTS_KEPT ? high / 2 : 0;
}

block_index slot_take_fresh(struct bfc_pool *pool) {
    if (pool->high == UINT32_MAX || !commit_records(pool, (uint64_t)pool->high + 1)) {
        pool->records--;
        return 0;
    }
    block_index b = pool->high;
    set_high(pool, b + 1);
    return b;
}

bool slots_prepare(struct bfc_pool *pool, uint64_t count) {
    uint64_t vacant = pool->high - 1 - pool->records;
    uint64_t wanted = pool->high + bfc_subtract_saturating(count, vacant);
    return wanted <= UINT32_MAX && commit_records(pool, wanted);
}

static void move_links(struct bfc_pool *pool, block_index to) {
    struct block *blocks = pool->blocks;
    if (block_state(&blocks[to]) == BLOCK_HEAD)
        pool->regions[blocks[to].previous].head = to;
    else
        blocks[blocks[to].previous].next = to;
    blocks[blocks[to].next].previous = to; /* a write to record 0 is harmless */
}

static void move_fence_links(struct bfc_pool *pool, block_index from, block_index to) {
    struct block_detail *details = pool->details;
    block_index older = details[to].older, newer = details[to].newer;
    if (older)
        details[older].newer = to;
    if (newer)
        details[newer].older = to;
    if (pool->oldest == from)
        pool->oldest = to;
    if (pool->newest == from)
        pool->newest = to;
    if (pool->deferred == from)
        pool->deferred = to;
}

static bool has_node(const struct bfc_pool *pool, block_index b) {
    return block_state(&pool->blocks[b]) == BLOCK_HEAD || is_indexed(b);
}

/* A hash of its record's index decides whether a block is a node, so moving the record may add or
 * remove the node. */
static void move_node(struct bfc_pool *pool, block_index from, block_index to,
                      region_index region) {
    address_index_remove(&pool->index, &pool->blocks[from]);
    if (has_node(pool, to))
        address_index_add(&pool->index, &pool->blocks[to], to, region);
}

static void move_record(struct bfc_pool *pool, block_index from, block_index to) {
    struct block *blocks = pool->blocks;
    enum block_state state = block_state(&blocks[from]);
    if (state == BLOCK_LIVE)
        map_replace(&pool->map, blocks, from, to);
    blocks[to] = blocks[from];
    if (block_has_detail(&blocks[to]))
        pool->details[to] = pool->details[from];
    if (has_node(pool, from) || is_indexed(to))
        move_node(pool, from, to, (region_index)(region_of(pool, from) - pool->regions));
    move_links(pool, to);
    if (state == BLOCK_READY)
        bins_replace(ready_bins(pool, to, false), blocks, from, to);
    else if (state == BLOCK_PENDING && is_reused_pending(pool, to))
        bins_replace(&pool->pending, blocks, from, to);
    else if (state == BLOCK_BARE)
        bare_replace(pool, from, to);
    if (state == BLOCK_PENDING || state == BLOCK_DEFERRED)
        move_fence_links(pool, from, to);
}

static void give_records_back(struct bfc_pool *pool) {
    uint64_t records = pool->high;
    host_array_give_back(&pool->block_memory, records * sizeof(struct block));
    host_array_give_back(&pool->detail_memory, records * sizeof(struct block_detail));
}

/* Lowers the high-water mark by one, moving the last record to a vacant place if it is in use. */
static void lower_high(struct bfc_pool *pool) {
    block_index top = pool->high - 1, to = pool->vacant;
    if (block_state(&pool->blocks[top]) == BLOCK_VACANT) {
        slot_unlink_vacant(pool, top);
    } else {
        slot_unlink_vacant(pool, to);
        move_record(pool, top, to);
    }
    set_high(pool, top);
    if (top % SLOTS_KEPT == 0)
        give_records_back(pool);
}

void slots_move_together(struct bfc_pool *pool) {
    for (int i = 0; i < MOVES_A_CALL && pool->vacant; i++)
        lower_high(pool);
}

bool slots_open(struct bfc_pool *pool, uint64_t most_blocks) {
    uint64_t most = most_blocks + 1;
    if (!host_array_reserve(&pool->block_memory, most * sizeof(struct block)) ||
        !host_array_reserve(&pool->detail_memory, most * sizeof(struct block_detail)) ||
        !commit_records(pool, 1))
        return false;
    pool->blocks = (struct block *)(void *)pool->block_memory.base;
    pool->details = (struct block_detail *)(void *)pool->detail_memory.base;
    set_high(pool, 1);
    return true;
}

void slots_close(struct bfc_pool *pool) {
    host_array_drop(&pool->block_memory);
    host_array_drop(&pool->detail_memory);
}
