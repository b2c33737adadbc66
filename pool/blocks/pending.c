#include "pool/blocks/pending.h"

static void update_oldest(struct bfc_pool *pool) {
    pool->oldest_fence = pool->oldest ? pool->details[pool->oldest].fence : UINT64_MAX;
}

/* Makes `after` follow block `older`, and `before` precede block `newer`. 0 for `older` or `newer`
 * means the end of the list. */
static ALWAYS_INLINE void link_around(struct bfc_pool *pool, block_index older, block_index newer,
                                      block_index after, block_index before) {
    struct block_detail *details = pool->details;
    *(older ? &details[older].newer : &pool->oldest) = after;
    *(newer ? &details[newer].older : &pool->newest) = before;
}

void fences_add(struct bfc_pool *pool, block_index b, bfc_fence fence) {
    struct block_detail *details = pool->details;
    block_index older = pool->newest;
    while (older && details[older].fence > fence)
        older = details[older].older;
    block_index newer = older ? details[older].newer : pool->oldest;
    details[b] = (struct block_detail){.fence = fence, .older = older, .newer = newer};
    link_around(pool, older, newer, b, b);
    update_oldest(pool);
}

void fences_remove(struct bfc_pool *pool, block_index b) {
    const struct block_detail *at = &pool->details[b];
    link_around(pool, at->older, at->newer, at->newer, at->older);
    update_oldest(pool);
}

void deferred_add(struct bfc_pool *pool, block_index b) {
    struct block_detail *details = pool->details;
    details[b] =
        (struct block_detail){.arrivals = ++pool->deferred_arrivals, .newer = pool->deferred};
    if (pool->deferred)
        details[pool->deferred].older = b;
    pool->deferred = b;
}

void deferred_remove(struct bfc_pool *pool, block_index b) {
    struct block_detail *details = pool->details;
    block_index older = details[b].older, newer = details[b].newer;
    *(older ? &details[older].newer : &pool->deferred) = newer;
    if (newer)
        details[newer].older = older;
}
