#include "pool/blocks/slots.h"

#include "base/numbers.h"

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
    /* for the last block of a region `next` is record 0, which belongs to no block and may be
     * written to */
    blocks[blocks[to].next].previous = to;
}

static bool has_node(const struct bfc_pool *pool, block_index b) {
    return block_state(&pool->blocks[b]) == BLOCK_HEAD || is_indexed(b);
}

/* Updates the address index for a block whose record moves from index `from` to index `to`. Only
 * some blocks have a node there, chosen by a hash of the record's index. So the block may have a
 * node at one index and none at the other. */
static void move_node(struct bfc_pool *pool, block_index from, block_index to,
                      region_index region) {
    address_index_remove(&pool->index, &pool->blocks[from]);
    if (has_node(pool, to))
        address_index_add(&pool->index, &pool->blocks[to], to, region);
}

static void move_record(struct bfc_pool *pool, block_index from, block_index to) {
    struct block *blocks = pool->blocks;
    if (block_state(&blocks[from]) == BLOCK_LIVE)
        map_replace(&pool->map, blocks, from, to);
    blocks[to] = blocks[from];
    if (block_has_detail(&blocks[to]))
        pool->details[to] = pool->details[from];
    if (has_node(pool, from) || is_indexed(to))
        move_node(pool, from, to, (region_index)(region_of(pool, from) - pool->regions));
    move_links(pool, to);
    struct bins *bins = bins_of(pool, to);
    struct block_list *list = list_of(pool, to);
    const struct block_detail *detail = &pool->details[to];
    if (bins)
        bins_replace(bins, blocks, from, to);
    if (list)
        list_link(list, pool->details, detail->older, detail->newer, to, to);
}

static void give_records_back(struct bfc_pool *pool) {
    uint64_t records = pool->high;
    host_array_give_back(&pool->block_memory, records * sizeof(struct block));
    host_array_give_back(&pool->detail_memory, records * sizeof(struct block_detail));
}

/* Lowers the high-water mark, the end of the part of the array that is used, by one record. If that
 * record is in use, it moves to a vacant place first. */
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
    uint64_t most = most_blocks + 1, block = sizeof(struct block);
    uint64_t detail = sizeof(struct block_detail);
    pool->blocks = host_array_open(&pool->block_memory, most * block, block);
    pool->details = host_array_open(&pool->detail_memory, most * detail, detail);
    set_high(pool, 1);
    return pool->blocks && pool->details;
}
