/*
 * Growth with pages.
 *
 * Each time the pool makes pages it makes three driver calls or more, however many bytes it makes.
 * But pages that the program then does not use are lost to the device's other users. So the pool
 * makes some bytes beyond the request (the step): a multiple of what was requested, from
 * BFC_GROWTH_SIZE to RAMP_TOP, and beyond that a small part of the reserved bytes.
 *
 * A page that has a byte in use cannot move. So of a free block between two live ones, up to a page
 * at each end cannot move. A page is therefore at most 1 / PAGE_PART of the block that it is made
 * for. Once such a block is free, two pages of it, at most 2 / 64 = 3 %, cannot move, and the usual
 * page_slack of 3 % covers that.
 *
 * That is the page rule `fit`. With the rule `auto`, each step is at first one page, which suffices
 * where lifetimes have a pattern. But smaller pages are more often free as a whole. So the pool
 * makes up to half as many calls again as one page in each step takes: for pages that hold nothing
 * but one large block, and to cut large steps into several pages. Once the pool, though it moves
 * all pages that it can, must reserve SCATTERED times the slack beyond the most that was requested,
 * it chooses the size of pages otherwise. Before each step it examines the free blocks between
 * blocks in use, and finds the largest size of pages at which the parts of them that cannot move
 * would be at most 1 / LOST_PART of the slack. New pages are no larger than that, and larger pages
 * that are ready go back to the device. A page that has a byte in use stays as it is, so a program
 * that fills its memory first and then frees at random holds more than with `fit`.
 *
 * A small block keeps its page from moving, however much free memory lies around the block. While
 * pages hardly move, that costs nothing, and small blocks fill gaps in the pages of large blocks.
 * Once more bytes have moved than were ever requested at one time, the pool takes it that lifetimes
 * follow no pattern, and small blocks get pages of their own. If it cannot get such pages, small
 * and large blocks share pages until pages move again; otherwise each small block would ask the
 * device in vain.
 *
 * The pool looks for pages to remake (pool/paging/remake.c) only while it has large ones, and only
 * during WATCHED allocations for each large page that it makes, and for each later step. Looking
 * takes much less time in all than making the pages took.
 *
 * docs/internals/pages.md has figures.
 */
#include "pool/policy/growth.h"

#include "base/numbers.h"
#include "pool/blocks/paging.h"
#include "pool/policy/policy.h"

#define RAMP_TOP (30 * MIB)
#define RAMP_FACTOR 3
#define STEP_PART 36
#define STEP_TOP (80 * MIB)
#define LARGE_STEP_PART 512
#define PAGE_PART 64
/* A page is too large for a block if it is more than this many times as large as the pages that
 * would be made for that block. */
#define MUCH 8
/* for each large page that the pool makes, and each later step of growth, this many more
 * allocations look for pages that are too large for the request */
#define WATCHED 1024
/* page rule auto: free memory that cannot move may be at most 1 / LOST_PART of the slack, which is
 * what may be reserved beyond what was requested */
#define LOST_PART 6
/* page rule auto: sizes of pages are bounded once this many times the slack was reserved beyond the
 * most that was requested */
#define SCATTERED 2.25
/* page rule auto: a new page has at most 1 / ROOM_PART of the bytes that the limit and the device
 * still allow */
#define ROOM_PART 128
/* page rule auto: a block for which at least this many bytes of pages must be found gets pages that
 * hold nothing else */
#define OWN_PAGE (12 * MIB)
/* page rule auto: steps of at least twice as many bytes are cut into pages of about this size */
#define PIECE (48 * MIB)
/* how many calls a step of one page takes: create, map and allow */
#define STEP_CALLS 3
/* how many calls each further page of a step takes: create and map */
#define PAGE_CALLS 2
/* page rule auto: a step may have more than one page as long as all calls, this step's included,
 * are at most 1.5 times what steps of one page would have taken, and this many more; without these
 * the first step could not have two pages */
#define SPARE_CALLS 2
#define SMALL_PART 2 /* a block of at most 1 / SMALL_PART of the smallest page counts as small */

static uint64_t round_down(const struct bfc_pool *pool, uint64_t bytes) {
    return bytes & ~(pool->paging->calls.granule - 1);
}

static bool preallocates_pages(const struct bfc_pool *pool) {
    return pool->config.growth == BFC_GROWTH_PREALLOCATE && !pool->preallocated;
}

static uint64_t ramp_step(const struct bfc_pool *pool) {
    uint64_t most = bfc_min(pool->stats->peak_requested, RAMP_TOP);
    return bfc_min(bfc_max(most * RAMP_FACTOR, pool->config.growth_size), RAMP_TOP);
}

static uint64_t wanted_step(const struct bfc_pool *pool) {
    const struct bfc_pool_config *config = &pool->config;
    if (config->growth == BFC_GROWTH_EXACT)
        return 0;
    if (config->growth == BFC_GROWTH_FIXED)
        return config->growth_size;
    if (preallocates_pages(pool))
        return config->preallocate;
    uint64_t reserved = pool->stats->reserved;
    uint64_t step = bfc_max(ramp_step(pool), bfc_min(reserved / STEP_PART, STEP_TOP));
    step = bfc_max(step, reserved / LARGE_STEP_PART);
    return bfc_min(step, config->growth_max);
}

uint64_t page_growth_step(const struct bfc_pool *pool) {
    return round_to_pages(pool, bfc_min(wanted_step(pool), pool->paging->step_most));
}

/* Returns by how many bytes `reserved` may exceed `most`, the most bytes that the program ever
 * requested at one time. */
static uint64_t slack_bytes(const struct bfc_pool *pool, uint64_t most) {
    uint64_t slack = (uint64_t)((double)most * pool->config.page_slack);
    bool by_steps = pool->config.growth == BFC_GROWTH_FIXED || preallocates_pages(pool);
    return bfc_max(slack, by_steps ? page_growth_step(pool) : ramp_step(pool));
}

static bool chooses_size(const struct bfc_pool *pool) {
    return pool->config.page_rule == BFC_PAGE_AUTO;
}

/* With page rule auto, returns how many bytes may be reserved whatever the slack is: the most that
 * was in use. That is counted in rounded sizes; the slack is counted in requested ones, and could
 * be used up by rounding alone. Each step of growth would then be only as large as what a request
 * lacks. Returns 0 with other page rules. */
static uint64_t least_budget(const struct bfc_pool *pool, uint64_t bytes) {
    const struct bfc_pool_stats *stats = pool->stats;
    uint64_t most = bfc_max(stats->peak_in_use, bfc_add_saturating(stats->in_use, bytes));
    return chooses_size(pool) ? most : 0;
}

uint64_t page_growth_room(const struct bfc_pool *pool, uint64_t bytes) {
    const struct bfc_pool_stats *stats = pool->stats;
    uint64_t most = bfc_max(stats->peak_requested, bfc_add_saturating(stats->requested, bytes));
    uint64_t budget = bfc_add_saturating(most, slack_bytes(pool, most));
    budget = bfc_max(budget, least_budget(pool, bytes));
    budget = bfc_min(budget, pool->config.gc_threshold);
    return round_down(pool,
                      bfc_subtract_saturating(budget, stats->reserved + pool->paging->moving));
}

/* Free blocks, grouped by size: entry p is for the blocks that hold 2^p to 2^(p+1) - 1 smallest
 * pages. `count` is the number of blocks, `bytes` the sum of their whole pages. */
struct holes {
    uint64_t count[64], bytes[64];
};

/* Whether no neighbour of b is a range of addresses without pages. If one is, b may grow into that
 * range, so it does not count as enclosed by blocks in use. */
static bool is_enclosed(const struct bfc_pool *pool, block_index b) {
    const struct block *blocks = pool->blocks, *at = &blocks[b];
    return block_state(&blocks[at->previous]) != BLOCK_BARE &&
           block_state(&blocks[at->next]) != BLOCK_BARE;
}

static void add_holes(const struct bfc_pool *pool, const struct bins *bins, struct holes *holes) {
    uint64_t granule = pool->paging->calls.granule;
    block_index b = 0;
    while ((b = bins_walk(bins, pool->blocks, b, granule >> BFC_GRANULE_BITS)))
        if (is_enclosed(pool, b)) {
            uint64_t pages = block_size(&pool->blocks[b]) / granule;
            int power = 63 - __builtin_clzll(pages);
            holes->count[power]++;
            holes->bytes[power] += pages * granule;
        }
}

/* Returns the largest size of pages, a power of two times `granule`, at which at most `most` bytes
 * of the free blocks in `holes` cannot move: about a page of each block, or all of a block that is
 * smaller than a page. UINT64_MAX: any size will do. */
static uint64_t largest_losing(const struct holes *holes, uint64_t granule, uint64_t most) {
    uint64_t larger = 0, lost = 0, size = granule;
    for (int power = 0; power < 64; power++)
        larger += holes->count[power];
    for (int power = 0; larger && lost + (granule << power) * larger <= most; power++) {
        size = granule << power;
        lost += holes->bytes[power];
        larger -= holes->count[power];
    }
    return larger || lost > most ? size : UINT64_MAX;
}

static uint64_t bound_by_holes(const struct bfc_pool *pool) {
    struct holes holes = {.count = {0}};
    add_holes(pool, &pool->ready, &holes);
    add_holes(pool, &pool->small, &holes);
    double most = (double)pool->stats->peak_requested * pool->config.page_slack / LOST_PART;
    return largest_losing(&holes, pool->paging->calls.granule, (uint64_t)most);
}

/* Returns how many bytes of new pages the limit and the device allow. */
static uint64_t room_left(const struct bfc_pool *pool) {
    const struct bfc_page_calls *calls = &pool->paging->calls;
    uint64_t left = calls->left ? calls->left(pool->upstream.context) : UINT64_MAX;
    return bfc_min(room_below_limit(pool), left);
}

/* Where memory is short, pages are made small, because a single byte in use keeps all of a page
 * from moving. */
void page_growth_look(struct bfc_pool *pool) {
    uint64_t granule = pool->paging->calls.granule;
    if (!chooses_size(pool))
        return;
    uint64_t bound = pool->paging->scattered ? bound_by_holes(pool) : UINT64_MAX;
    uint64_t short_of = pool->stats->refusals ? granule : room_left(pool) / ROOM_PART;
    pool->paging->page_bound = bfc_min(bound, bfc_max(short_of, granule));
}

void page_growth_judge(struct bfc_pool *pool, uint64_t bytes, uint64_t making) {
    const struct bfc_pool_stats *stats = pool->stats;
    uint64_t most = bfc_max(stats->peak_requested, bfc_add_saturating(stats->requested, bytes));
    double usual = (double)most + SCATTERED * (double)slack_bytes(pool, most);
    double reserved = (double)stats->reserved + (double)making;
    if (!chooses_size(pool) || pool->paging->scattered || making <= page_growth_room(pool, bytes) ||
        reserved <= usual)
        return;
    pool->paging->scattered = true;
    page_growth_look(pool);
}

/* Returns how many pages beyond the first the step that is being planned may make. */
static uint64_t pages_to_spare(const struct bfc_pool *pool) {
    const struct paging *paging = pool->paging;
    uint64_t most = STEP_CALLS * paging->steps * 3 / 2 + SPARE_CALLS;
    return bfc_subtract_saturating(most, paging->made_calls + STEP_CALLS) / PAGE_CALLS;
}

uint64_t page_growth_own(struct bfc_pool *pool, uint64_t lacking) {
    if (!chooses_size(pool) || !lacking)
        return 0;
    pool->paging->steps++;
    return lacking >= OWN_PAGE && pages_to_spare(pool) ? lacking : 0;
}

uint64_t page_growth_piece(const struct bfc_pool *pool, uint64_t making, uint64_t page) {
    if (!chooses_size(pool) || pool->paging->scattered)
        return page;
    uint64_t pieces = bfc_min(pages_to_spare(pool), making / PIECE);
    return pieces ? bfc_min(page, round_to_pages(pool, making / pieces)) : page;
}

uint64_t page_growth_fit(const struct bfc_pool *pool, uint64_t bytes) {
    uint64_t most = pool->config.page_most;
    if (pool->config.page_rule != BFC_PAGE_STEP)
        most = bfc_min(most, bytes / PAGE_PART);
    return bfc_max(round_down(pool, most), pool->paging->calls.granule);
}

uint64_t page_growth_size(const struct bfc_pool *pool, uint64_t block) {
    uint64_t fit = page_growth_fit(pool, block);
    uint64_t bound = bfc_min(pool->paging->page_bound, pool->config.page_most);
    return chooses_size(pool) ? bfc_max(fit, round_down(pool, bound)) : fit;
}

uint64_t page_growth_most(const struct bfc_pool *pool, uint64_t block) {
    return bfc_min(page_growth_size(pool, block), UINT64_MAX / MUCH) * MUCH;
}

void page_growth_refused(struct bfc_pool *pool, uint64_t bytes, uint64_t made) {
    pool->paging->step_most = (made ? made : bytes) / 2;
}

void page_growth_made(struct bfc_pool *pool, uint64_t bytes, uint64_t page, uint64_t count) {
    const struct page_table *table = &pool->paging->table;
    uint64_t *step_most = &pool->paging->step_most;
    if (!count)
        return;
    *step_most = bfc_add_saturating(*step_most, bytes);
    pool->preallocated = true;
    if (table->large)
        policy_watch(pool, pool->rules.watched + (page > table->large_above ? count : 1) * WATCHED);
}

void page_growth_moved(struct bfc_pool *pool, uint64_t bytes) {
    struct paging *paging = pool->paging;
    paging->moved_to_grow += bytes;
    if (bytes)
        pool->rules.mixes = false;
    if (paging->moved_to_grow > pool->stats->peak_requested)
        policy_part_small(pool, paging->calls.granule / SMALL_PART);
}
