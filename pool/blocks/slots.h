/*
 * Allocation of block records: from a list of unused records, or else at the high-water mark, the
 * end of the part of the array that was ever used. Called under the pool's lock.
 *
 * When less than half of the records below the high-water mark are in use, slots_settle moves a few
 * of the last ones into unused places. So the arrays shrink from their end, and their memory goes
 * back to the host in many small steps. O(1).
 */
#ifndef BFC_POOL_SLOTS_H
#define BFC_POOL_SLOTS_H

#include "pool/blocks/pool_state.h"

/* The memory of the first SLOTS_KEPT records is never given back to the host. The memory of further
 * records goes back in portions of SLOTS_KEPT records. */
#define SLOTS_KEPT 4096

block_index slot_take_fresh(struct bfc_pool *pool);
void slots_move_together(struct bfc_pool *pool);

static inline void slot_unlink_vacant(struct bfc_pool *pool, block_index b) {
    struct block *blocks = pool->blocks;
    block_index next = blocks[b].next, previous = blocks[b].previous;
    /* if b is the last in the list of vacant records, `next` is record 0, which belongs to no block
     * and may be written to */
    blocks[next].previous = previous;
    *(b != pool->vacant ? &blocks[previous].next : &pool->vacant) = next;
}

static inline void slot_vacate(struct bfc_pool *pool, block_index b) {
    struct block *blocks = pool->blocks;
    blocks[b].tagged = BLOCK_VACANT;
    blocks[b].next = pool->vacant;
    blocks[pool->vacant].previous = b;
    pool->vacant = b;
    pool->records--;
}

/* Returns a record with arbitrary contents; 0: the host has no memory for one. */
static inline block_index slot_take(struct bfc_pool *pool) {
    block_index b = pool->vacant;
    pool->records++;
    if (UNLIKELY(!b))
        return slot_take_fresh(pool);
    pool->vacant = pool->blocks[b].next;
    return b;
}

/* If many records are unused, moves a few blocks to other records: the caller must not use a
 * block_index from before this call. */
static inline void slots_settle(struct bfc_pool *pool) {
    if (UNLIKELY(pool->records < pool->few_records))
        slots_move_together(pool);
}

/* Makes sure that the next `count` calls of slot_take succeed. False: the host has no memory for so
 * many records. */
bool slots_prepare(struct bfc_pool *pool, uint64_t count);

bool slots_open(struct bfc_pool *pool, uint64_t most_blocks);

#endif
