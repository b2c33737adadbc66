#include "pool/blocks/whole.h"

void whole_set_rules(struct bfc_pool *pool, bool plain) {
    struct rules *rules = &pool->rules;
    bool any = pool->whole.words_in_use;
    uint64_t most = any ? rules->whole_above / WHOLE_PART : MOST_GRANULES;
    rules->plain_most = plain ? most : 0;
    rules->picks_by_rules = rules->exact || rules->small_most || any;
}

static void move_bins(struct bfc_pool *pool, block_index b, bool whole) {
    bins_remove(ready_bins(pool, b, false), pool->blocks, b, false);
    block_set_bit(&pool->blocks[b], BLOCK_WHOLE_BIT, whole);
    bins_insert(ready_bins(pool, b, false), pool->blocks, b, false);
    whole_set_rules(pool, pool->rules.plain_most);
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
