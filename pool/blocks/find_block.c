#include "pool/blocks/find_block.h"

block_index find_holding(const struct bfc_pool *pool, bfc_addr address) {
    block_index b = map_find(&pool->map, pool->blocks, address & ~BLOCK_TAG_MASK);
    if (b)
        return b;
    /* The last node of the index before the address is a few neighbours away from its block. */
    b = pool->index.nodes[address_index_find(&pool->index, address)].block;
    if (block_state(&pool->blocks[b]) == BLOCK_HEAD)
        b = pool->blocks[b].next;
    while (b && address - block_start(&pool->blocks[b]) >= block_size(&pool->blocks[b]))
        b = pool->blocks[b].next;
    return b;
}
