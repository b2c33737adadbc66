/* Blocks that are all of a large region, in bins of their own. */
#include "pool/blocks/whole.h"

uint64_t whole_plain_most(const struct bfc_pool *pool) {
    return pool->whole.words_in_use ? pool->rules.whole_above / WHOLE_PART : MOST_GRANULES;
}

static void move_bins(struct bfc_pool *pool, block_index b, bool whole) {
    struct rules *rules = &pool->rules;
    bins_remove(ready_bins(pool, b, false), pool->blocks, b, false);
    block_set_whole(&pool->blocks[b], whole);
    bins_insert(ready_bins(pool, b, false), pool->blocks, b, false);
    rules->plain_most = rules->plain_most ? whole_plain_most(pool) : 0;
}

void whole_put(struct bfc_pool *pool, block_index b) {
    const struct block *at = &pool->blocks[b];
    bool is_large = block_state(at) == BLOCK_READY && block_granules(at) > pool->rules.whole_above;
    bool is_all = !at->next && block_state(&pool->blocks[at->previous]) == BLOCK_HEAD;
    if (is_large && is_all && !block_is_apart(at) && !pool->paging)
        move_bins(pool, b, true);
}

void whole_open(struct bfc_pool *pool, block_index b) {
    move_bins(pool, b, false);
}
