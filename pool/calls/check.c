/* Checks the invariants of pool_state.h and paging.h. O(blocks) under the lock. */
#include "pool/blocks/paging.h"
#include "pool/blocks/region.h"
#include "pool/blocks/surgery.h"
#include "pool/paging/victims.h"

struct tally {
    const struct bfc_pool *pool;
    const char *fault;
    uint64_t bytes[BLOCK_BARE + 1];  /* the sum of the bytes of the blocks in each state */
    uint64_t blocks[BLOCK_BARE + 1]; /* the number of blocks in each state */
    uint64_t region_bare;            /* bytes without a page in the region that is being checked */
    uint64_t region_bytes;           /* bytes of all regions that are not paged, summed up so far */
    uint64_t binned_pending, ready_apart, ready_small, ready_whole, requested, regions, nodes,
        shared, apart;
    block_index previous; /* the record before the block that is being checked */
};

static bool note_fault(struct tally *t, const char *fault) {
    if (!t->fault)
        t->fault = fault;
    return false;
}

static bool check_place(struct tally *t, block_index b, const struct region *region) {
    const struct bfc_pool *pool = t->pool;
    const struct block *blocks = pool->blocks, *at = &blocks[b], *previous = &blocks[t->previous];
    if (at->previous != t->previous)
        return note_fault(t, "a block's neighbours do not point back at it");
    bool is_first = t->previous == region->head;
    if (block_start(at) != (is_first ? region->start : block_end(previous)))
        return note_fault(t, "blocks do not tile their region");
    if (!at->next && block_end(at) != region->start + region->size)
        return note_fault(t, "blocks do not fill their region");
    uint64_t requested = block_state(at) == BLOCK_LIVE ? block_requested(pool, b) : 0;
    if (requested && !is_first && block_start(at) % BFC_ALIGNMENT &&
        bfc_starts_aligned(granules_to_hold(requested)))
        return note_fault(t, "a block does not start at a multiple of BFC_ALIGNMENT");
    if (belongs_with(pool, b, at->next))
        return note_fault(t, "two neighbouring free blocks are not merged");
    const struct index_node *node =
        &pool->index.nodes[address_index_find(&pool->index, block_start(at))];
    bool has_node = node->key == block_start(at) + 1;
    if (has_node && node->block != b)
        return note_fault(t, "a node of the index is not of the block that starts there");
    if (has_node != is_indexed(b) && (has_node || !pool->index.refused))
        return note_fault(
            t, "a block should be a node of the index and is none, or the other way round");
    t->nodes += has_node;
    block_index found = map_find(&pool->map, blocks, block_start(at));
    if (found != (block_state(at) == BLOCK_LIVE ? b : 0))
        return note_fault(t, "a live block's address does not map to it, or a free one's does");
    return true;
}

/* Whether all addresses of the block have pages that can be used. */
static bool is_backed(const struct page_table *table, const struct block *at) {
    bfc_addr reached = block_start(at);
    for (uint32_t i = page_table_find(table, reached); reached < block_end(at); i++) {
        if (i == table->pages.count || page_table_at(table, i)->start > reached ||
            page_table_at(table, i)->lost)
            return false;
        reached = page_end(page_table_at(table, i));
    }
    return true;
}

static bool is_stripped(const struct page_table *table, const struct block *at) {
    uint32_t i = page_table_find(table, block_start(at));
    for (; i < table->pages.count && page_table_at(table, i)->start < block_end(at); i++)
        if (!page_table_at(table, i)->lost)
            return false;
    return true;
}

static bool check_pages_behind(struct tally *t, block_index b, const struct region *region) {
    const struct block *at = &t->pool->blocks[b];
    const struct paging *paging = t->pool->paging;
    bool bare = block_state(at) == BLOCK_BARE;
    if (region->paged && !paging)
        return note_fault(t, "a region is of pages in a pool without");
    t->region_bytes += region->paged ? 0 : block_size(at);
    if (!region->paged)
        return !bare || note_fault(t, "a block is bare in a region that is not of pages");
    t->region_bare += bare ? block_size(at) : 0;
    if (bare)
        return is_stripped(&paging->table, at) ||
               note_fault(t, "there is a page behind a bare block");
    return is_backed(&paging->table, at) || note_fault(t, "not all of a block has pages");
}

/* How far a walk through a treap has come, which visits the blocks in the treap's order. */
struct walk {
    const struct block *blocks, *last;
    enum block_state state;
    /* how many more blocks the walk through the treap should meet */
    uint64_t left;
};

static bool walk_treap(struct walk *w, block_index b) {
    const struct block *at = &w->blocks[b];
    if (!b)
        return true;
    if (!w->left-- || block_state(at) != w->state || !walk_treap(w, at->before) ||
        (w->last && !sorted_precede(w->last, at)))
        return false;
    w->last = at;
    return walk_treap(w, at->after);
}

static const char *check_sorted(const struct bfc_pool *pool, block_index root,
                                enum block_state state, uint64_t expected) {
    struct walk w = {.blocks = pool->blocks, .state = state, .left = expected};
    return walk_treap(&w, root) && !w.left
               ? NULL
               : "the sorted blocks are not those of their state, or not in order";
}

static bool is_ready_page(const struct bfc_pool *pool, const struct page *page) {
    const struct block *at = &pool->blocks[find_holding(pool, page->start)];
    return !page->pins && block_state(at) == BLOCK_READY && page_end(page) <= block_end(at);
}

static const char *check_table(const struct tally *t) {
    const struct paging *paging = t->pool->paging;
    uint64_t bytes = 0, ready = 0;
    uint32_t large = 0, uneven = 0, pinned = 0;
    for (uint32_t i = 0; i < paging->table.pages.count; i++) {
        const struct page *page = page_table_at(&paging->table, i);
        if (i && page_end(page_table_at(&paging->table, i - 1)) > page->start)
            return "two pages are behind one address";
        bytes += page->lost ? 0 : page->bytes;
        large += page->bytes > paging->table.large_above;
        uneven += page->bytes > paging->table.granule;
        pinned += page->pins != 0;
        ready += is_ready_page(t->pool, page) ? page->bytes : 0;
    }
    if (bytes + t->region_bytes != t->pool->stats->reserved)
        return "the pages differ from what is reserved";
    if (bytes + t->bytes[BLOCK_BARE] != paging->addresses)
        return "the pages + bare differ from the addresses";
    if (large != paging->table.large || uneven != paging->table.uneven ||
        pinned != paging->table.pinned)
        return "the count of large or of pinned pages is wrong";
    if (ready != victims_ready(t->pool))
        return "the sum of the ready pages is wrong";
    return NULL;
}

static bool should_be_whole(const struct bfc_pool *pool, const struct block *at,
                            const struct region *region) {
    return !pool->paging && !region->apart && block_state(at) == BLOCK_READY &&
           block_granules(at) > pool->rules.whole_above && block_size(at) == region->size;
}

static bool count_block(struct tally *t, block_index b, const struct region *region) {
    const struct block *at = &t->pool->blocks[b];
    enum block_state state = block_state(at);
    if (!check_pages_behind(t, b, region))
        return false;
    if (state == BLOCK_VACANT || state == BLOCK_HEAD)
        return note_fault(t, "a vacant record is in a region");
    if (state == BLOCK_PENDING && t->pool->details[b].fence <= BFC_NO_FENCE)
        return note_fault(t, "a pending block has no fence");
    t->bytes[state] += block_size(at);
    t->blocks[state]++;
    if (block_is_apart(at) != region->apart)
        return note_fault(t,
                          "a block of a region that is set apart is not, or the other way round");
    t->ready_apart += state == BLOCK_READY && region->apart;
    if (block_is_whole(at) != should_be_whole(t->pool, at, region))
        return note_fault(t,
                          "a large region that is wholly free is not marked so, or another one is");
    t->ready_whole += block_is_whole(at);
    t->ready_small += state == BLOCK_READY && !region->apart && block_zone(at) == ZONE_SMALL &&
                      !t->pool->rules.exact && !block_is_whole(at);
    t->binned_pending += state == BLOCK_PENDING && !region->shared && !region->apart &&
                         t->pool->config.reuse_pending;
    t->requested += state == BLOCK_LIVE ? block_requested(t->pool, b) : 0;
    return true;
}

static bool check_region(struct tally *t, const struct index_node *node) {
    const struct bfc_pool *pool = t->pool;
    const struct block *head = &pool->blocks[node->block];
    const struct region *region = &pool->regions[node->region];
    if (region->head != node->block || head->previous != node->region ||
        block_start(head) != region->start || !head->next)
        return note_fault(t, "a region and its head do not agree");
    t->previous = node->block;
    t->region_bare = 0;
    for (block_index b = head->next; b; t->previous = b, b = pool->blocks[b].next)
        if (!check_place(t, b, region) || !count_block(t, b, region))
            return false;
    if (t->region_bare != region->bare)
        return note_fault(t, "the bare bytes of a region are not as many as they should be");
    t->regions++;
    t->nodes++;
    t->shared += region->shared;
    t->apart += region->apart;
    return true;
}

static const char *check_bins(const struct bfc_pool *pool, const struct bins *bins,
                              enum block_state state, uint64_t expected) {
    if (bins->is_sorted)
        return check_sorted(pool, bins->root, state, expected);
    uint64_t found = 0;
    for (unsigned bin = 0; bin < BIN_COUNT; bin++) {
        bool set = bins->words[bin / 64] >> (bin % 64) & 1;
        bool word_set = bins->words_in_use >> (bin / 64) & 1;
        block_index first = (block_index)bins->heads[bin], before = 0;
        if (set != (first != 0) || (set && !word_set))
            return "a bin's bit does not tell whether it is empty";
        if (bins->heads[bin] != (first ? head_of(pool->blocks, first) : NO_HEAD))
            return "a bin does not tell where its first block is";
        for (block_index b = first; b; before = b, b = pool->blocks[b].after) {
            const struct block *at = &pool->blocks[b];
            if (block_state(at) != state || bin_of(block_granules(at)) != bin || at->bin != bin ||
                at->before != before || found++ == expected)
                return "a bin holds a block that does not belong there";
        }
    }
    for (unsigned word = 0; word < BIN_WORDS; word++)
        if ((bins->words_in_use >> word & 1) != (bins->words[word] != 0))
            return "the bins' upper bitmap differs from the lower one";
    return found == expected ? NULL : "a free block is in no bin";
}

static const char *check_list(const struct bfc_pool *pool, const struct block_list *list,
                              enum block_state state, uint64_t expected) {
    const struct block_detail *details = pool->details;
    uint64_t found = 0;
    block_index older = 0;
    for (block_index b = list->oldest; b; older = b, b = details[b].newer) {
        if (block_state(&pool->blocks[b]) != state || details[b].older != older ||
            found++ == expected)
            return "a list of pending, deferred or bare blocks holds one that does not belong "
                   "there";
        if (older && details[older].fence > details[b].fence)
            return "a list of pending, deferred or bare blocks does not rise";
    }
    return found == expected && list->newest == older
               ? NULL
               : "a pending, deferred or bare block is not in its list";
}

static const char *check_records(const struct bfc_pool *pool, uint64_t blocks) {
    uint64_t vacant = 0;
    for (block_index b = pool->vacant; b; b = pool->blocks[b].next)
        if (block_state(&pool->blocks[b]) != BLOCK_VACANT || vacant++ == pool->high)
            return "the list of vacant records holds one in use";
    if (blocks + vacant + 1 != pool->high)
        return "a record is neither a block's nor vacant";
    return pool->records == blocks ? NULL : "the records are not as many as blocks and heads";
}

static const char *check_counters(const struct tally *t) {
    const struct bfc_pool_stats *stats = t->pool->stats;
    if (t->bytes[BLOCK_LIVE] != stats->in_use || t->bytes[BLOCK_READY] != stats->ready ||
        t->bytes[BLOCK_PENDING] + t->bytes[BLOCK_AWAITED] != stats->pending ||
        t->blocks[BLOCK_AWAITED] != t->pool->awaited ||
        t->bytes[BLOCK_DEFERRED] != stats->deferred || t->requested != stats->requested ||
        t->blocks[BLOCK_LIVE] != stats->blocks || t->blocks[BLOCK_LIVE] != t->pool->map.count ||
        t->regions != stats->regions)
        return "the counters differ from the blocks";
    if (stats->in_use + stats->ready + stats->pending + stats->deferred != stats->reserved)
        return "in use + ready + pending + deferred differs from reserved";
    block_index oldest = t->pool->pending_list.oldest;
    if (t->pool->oldest_fence != (oldest ? t->pool->details[oldest].fence : UINT64_MAX))
        return "the oldest fence is not that of the first pending block";
    if (stats->hits + stats->misses != stats->allocations ||
        stats->allocations - stats->frees != stats->blocks)
        return "the counts of allocations and frees do not agree";
    return NULL;
}

static const char *check_all(const struct bfc_pool *pool) {
    struct tally t = {.pool = pool};
    bfc_addr start = 0;
    for (node_index a; (a = address_index_from(&pool->index, start));) {
        const struct index_node *node = &pool->index.nodes[a];
        if (!check_region(&t, node))
            break;
        start = node->key + pool->regions[node->region].size;
    }
    const char *fault = t.fault;
    if (!fault && (t.nodes != pool->index.count || t.shared != pool->shared_regions))
        fault = "the nodes of the index or the shared regions are not as many as they should be";
    if (!fault && (t.apart != pool->apart_regions || (t.apart && pool->rules.plain_most)))
        fault = "the regions that are set apart are not as many as they should be";
    uint64_t ready = t.blocks[BLOCK_READY] - t.ready_apart - t.ready_small - t.ready_whole;
    uint64_t records = t.regions;
    for (int state = 0; state <= BLOCK_BARE; state++)
        records += t.blocks[state];
    bool faulty =
        fault || (fault = check_bins(pool, &pool->ready, BLOCK_READY, ready)) ||
        (fault = check_bins(pool, &pool->small, BLOCK_READY, t.ready_small)) ||
        (fault = check_bins(pool, &pool->whole, BLOCK_READY, t.ready_whole)) ||
        (fault = check_bins(pool, &pool->apart, BLOCK_READY, t.ready_apart)) ||
        (fault = check_bins(pool, &pool->pending, BLOCK_PENDING, t.binned_pending)) ||
        (fault = check_bins(pool, &pool->bare, BLOCK_BARE, t.blocks[BLOCK_BARE])) ||
        (fault = check_list(pool, &pool->bare_list, BLOCK_BARE, t.blocks[BLOCK_BARE])) ||
        (fault = check_list(pool, &pool->pending_list, BLOCK_PENDING, t.blocks[BLOCK_PENDING])) ||
        (fault =
             check_list(pool, &pool->deferred_list, BLOCK_DEFERRED, t.blocks[BLOCK_DEFERRED])) ||
        (fault = check_records(pool, records)) || (pool->paging && (fault = check_table(&t)));
    return faulty ? fault : check_counters(&t);
}

const char *bfc_pool_check(struct bfc_pool *pool) {
    pool_enter(pool);
    const char *fault = check_all(pool);
    pool_leave(pool);
    return fault;
}
