/*
 * Pending and deferred blocks.
 *
 * Pending blocks are in one list in rising order of their fences, so the complete ones are at its
 * front. Fences usually come in order, so adding is O(1); out of order it is O(pending blocks with
 * a higher fence).
 */
#include "pool/internal.h"
#include "pool/policy.h"

static void update_oldest(struct bfc_pool *pool) {
    pool->oldest_fence = pool->oldest ? pool->details[pool->oldest].fence : UINT64_MAX;
}

void fences_add(struct bfc_pool *pool, block_index b, bfc_fence fence) {
    struct block_detail *details = pool->details;
    block_index older = pool->newest;
    while (older && details[older].fence > fence)
        older = details[older].older;
    block_index newer = older ? details[older].newer : pool->oldest;
    details[b] = (struct block_detail){.fence = fence, .older = older, .newer = newer};
    *(older ? &details[older].newer : &pool->oldest) = b;
    *(newer ? &details[newer].older : &pool->newest) = b;
    update_oldest(pool);
}

void fences_remove(struct bfc_pool *pool, block_index b) {
    struct block_detail *details = pool->details;
    block_index older = details[b].older, newer = details[b].newer;
    *(older ? &details[older].newer : &pool->oldest) = newer;
    *(newer ? &details[newer].older : &pool->newest) = older;
    update_oldest(pool);
}

void fences_replace(struct bfc_pool *pool, block_index b, block_index with) {
    struct block_detail *details = pool->details;
    details[with] = details[b];
    block_index older = details[b].older, newer = details[b].newer;
    *(older ? &details[older].newer : &pool->oldest) = with;
    *(newer ? &details[newer].older : &pool->newest) = with;
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

/* Could b be part of a run if all fences up to `fence` were complete? */
static bool usable(const struct bfc_pool *pool, block_index b, bfc_fence fence) {
    enum block_state state = block_state(&pool->blocks[b]);
    return state == BLOCK_READY || (state == BLOCK_PENDING && pool->details[b].fence <= fence);
}

/* The first of enough neighbours, from b on, that are usable at `fence`; or 0. */
static block_index run_at(const struct bfc_pool *pool, block_index b, uint64_t granules,
                          bfc_fence fence) {
    uint64_t run = 0;
    for (block_index first = b; usable(pool, b, UINT64_MAX); b = pool->blocks[b].next) {
        if (!usable(pool, b, fence)) {
            first = pool->blocks[b].next;
            run = 0;
            continue;
        }
        run += block_granules(&pool->blocks[b]);
        if (run >= granules + block_lead(pool, first, granules))
            return first;
    }
    return 0;
}

/* The first block of the run of pending block b, if b is the first pending one in it; else 0. */
static block_index run_start(const struct bfc_pool *pool, block_index b) {
    block_index before = pool->blocks[b].previous;
    enum block_state state = block_state(&pool->blocks[before]);
    if (state == BLOCK_PENDING)
        return 0;
    if (state != BLOCK_READY)
        return b;
    block_index earlier = pool->blocks[before].previous;
    return block_state(&pool->blocks[earlier]) == BLOCK_PENDING ? 0 : before;
}

/* The lowest fence, not above `highest`, at which a run from `start` on is long enough. */
static bfc_fence lowest_fence(const struct bfc_pool *pool, block_index start, uint64_t granules,
                              bfc_fence highest) {
    bfc_fence lowest = pool->oldest_fence;
    while (lowest < highest) {
        bfc_fence middle = lowest + (highest - lowest) / 2;
        if (run_at(pool, start, granules, middle))
            highest = middle;
        else
            lowest = middle + 1;
    }
    return highest;
}

/* Is b in a region from which blocks of this size are not served? */
static bool wrong_zone(const struct bfc_pool *pool, block_index b, uint64_t granules) {
    return pool->rules.exact &&
           block_zone(&pool->blocks[b]) != policy_zone(pool, granules << BFC_GRANULE_BITS);
}

block_index fences_find_run(const struct bfc_pool *pool, uint64_t granules, bool for_reuse,
                            bfc_fence *fence) {
    block_index found = 0;
    bfc_fence best = UINT64_MAX;
    for (block_index b = pool->oldest; b; b = pool->details[b].newer) {
        block_index start = run_start(pool, b);
        if (!start || (for_reuse && is_shared(pool, b)) || wrong_zone(pool, b, granules))
            continue;
        /* The ready blocks already suffice, so the policy refused them: no fence would change that.
         */
        if (run_at(pool, start, granules, pool->completed))
            continue;
        if (run_at(pool, start, granules, best - 1)) {
            best = lowest_fence(pool, start, granules, best - 1);
            found = run_at(pool, start, granules, best);
        }
    }
    *fence = best;
    return found;
}
