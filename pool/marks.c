/*
 * Dirty and limbo blocks.
 *
 * Dirty blocks stand in one list in rising order of their marks, so what is complete is a front of
 * the list. Marks usually come in order, so adding is O(1); out of order it is O(dirty blocks with
 * a higher mark). Completed blocks become clean a bounded number a call.
 */
#include "pool/internal.h"

static void update_oldest(struct bfc_pool *pool) {
    pool->oldest_mark = pool->oldest ? pool->details[pool->oldest].mark : UINT64_MAX;
}

void marks_add(struct bfc_pool *pool, block_index b, bfc_mark mark) {
    struct block_detail *details = pool->details;
    block_index older = pool->newest;
    while (older && details[older].mark > mark)
        older = details[older].older;
    block_index newer = older ? details[older].newer : pool->oldest;
    details[b] = (struct block_detail){.mark = mark, .older = older, .newer = newer};
    *(older ? &details[older].newer : &pool->oldest) = b;
    *(newer ? &details[newer].older : &pool->newest) = b;
    update_oldest(pool);
}

void marks_remove(struct bfc_pool *pool, block_index b) {
    struct block_detail *details = pool->details;
    block_index older = details[b].older, newer = details[b].newer;
    *(older ? &details[older].newer : &pool->oldest) = newer;
    *(newer ? &details[newer].older : &pool->newest) = older;
    update_oldest(pool);
}

void marks_replace(struct bfc_pool *pool, block_index b, block_index with) {
    struct block_detail *details = pool->details;
    details[with] = details[b];
    block_index older = details[b].older, newer = details[b].newer;
    *(older ? &details[older].newer : &pool->oldest) = with;
    *(newer ? &details[newer].older : &pool->newest) = with;
}

void limbo_add(struct bfc_pool *pool, block_index b) {
    struct block_detail *details = pool->details;
    details[b] = (struct block_detail){.arrivals = ++pool->limbo_arrivals, .newer = pool->limbo};
    if (pool->limbo)
        details[pool->limbo].older = b;
    pool->limbo = b;
}

void limbo_remove(struct bfc_pool *pool, block_index b) {
    struct block_detail *details = pool->details;
    block_index older = details[b].older, newer = details[b].newer;
    *(older ? &details[older].newer : &pool->limbo) = newer;
    if (newer)
        details[newer].older = older;
}

void marks_settle(struct bfc_pool *pool, uint64_t most) {
    while (pool->oldest_mark <= pool->completed && most--) {
        block_index b = pool->oldest;
        pool_unbin(pool, b);
        pool->stats->dirty -= block_size(pool, &pool->blocks[b]);
        pool_make_free(pool, b, BFC_NO_MARK);
    }
}

void marks_complete(struct bfc_pool *pool, bfc_mark mark) {
    if (mark == BFC_LIMBO_MARK)
        mark--; /* limbo blocks have no mark yet, so none of them can be complete */
    if (mark > pool->completed)
        pool->completed = mark;
}

void bfc_pool_complete(struct bfc_pool *pool, bfc_mark mark) {
    pool_enter(pool);
    marks_complete(pool, mark);
    marks_settle(pool, MARKS_A_CALL);
    slots_settle(pool);
    pool_leave(pool);
}

uint64_t bfc_pool_limbo_arrivals(struct bfc_pool *pool) {
    pool_enter(pool);
    uint64_t arrivals = pool->limbo_arrivals;
    pool_leave(pool);
    return arrivals;
}

void bfc_pool_mark_limbo(struct bfc_pool *pool, bfc_mark mark, uint64_t arrivals) {
    if (mark == BFC_LIMBO_MARK)
        return;
    const struct block_detail *details = pool->details;
    pool_enter(pool);
    block_index b = pool->limbo;
    while (b && details[b].arrivals > arrivals)
        b = details[b].newer;
    while (b) {
        block_index before = details[b].newer;
        limbo_remove(pool, b);
        pool->stats->limbo -= block_size(pool, &pool->blocks[b]);
        pool_make_free(pool, b, mark);
        b = before;
    }
    slots_settle(pool);
    pool_leave(pool);
}

/* Could b be part of a run if all marks up to `mark` were complete? */
static bool usable(const struct bfc_pool *pool, block_index b, bfc_mark mark) {
    enum block_state state = block_state(&pool->blocks[b]);
    return state == BLOCK_CLEAN || (state == BLOCK_DIRTY && pool->details[b].mark <= mark);
}

/* The first of enough neighbours, from b on, that are usable at `mark`; or 0. */
static block_index run_at(const struct bfc_pool *pool, block_index b, uint64_t granules,
                          bfc_mark mark) {
    uint64_t run = 0;
    for (block_index first = b; usable(pool, b, UINT64_MAX); b = pool->blocks[b].next) {
        if (!usable(pool, b, mark)) {
            first = pool->blocks[b].next;
            run = 0;
            continue;
        }
        run += block_granules(&pool->blocks[b]);
        if (run >= granules)
            return first;
    }
    return 0;
}

/* The first block of the run of dirty block b, if b is the first dirty one in it; else 0. */
static block_index run_start(const struct bfc_pool *pool, block_index b) {
    block_index before = pool->blocks[b].previous;
    enum block_state state = block_state(&pool->blocks[before]);
    if (state == BLOCK_DIRTY)
        return 0;
    if (state != BLOCK_CLEAN)
        return b;
    block_index earlier = pool->blocks[before].previous;
    return block_state(&pool->blocks[earlier]) == BLOCK_DIRTY ? 0 : before;
}

/* The lowest mark, not above `highest`, at which a run from `start` on is long enough. */
static bfc_mark lowest_mark(const struct bfc_pool *pool, block_index start, uint64_t granules,
                            bfc_mark highest) {
    bfc_mark lowest = pool->oldest_mark;
    while (lowest < highest) {
        bfc_mark middle = lowest + (highest - lowest) / 2;
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
           block_zone(&pool->blocks[b]) != policy_zone(pool, granules << pool->granule_bits);
}

block_index marks_find_run(const struct bfc_pool *pool, uint64_t granules, bool for_reuse,
                           bfc_mark *mark) {
    block_index found = 0;
    bfc_mark best = UINT64_MAX;
    for (block_index b = pool->oldest; b; b = pool->details[b].newer) {
        block_index start = run_start(pool, b);
        if (!start || (for_reuse && is_shared(pool, b)) || wrong_zone(pool, b, granules))
            continue;
        /* What is clean already suffices, so the policy refused it: no mark would change that. */
        if (run_at(pool, start, granules, pool->completed))
            continue;
        if (run_at(pool, start, granules, best - 1)) {
            best = lowest_mark(pool, start, granules, best - 1);
            found = run_at(pool, start, granules, best);
        }
    }
    *mark = best;
    return found;
}
