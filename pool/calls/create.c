#include "pool/calls/create.h"

#include <stdlib.h>

#include "base/numbers.h"
#include "pool/blocks/paging.h"
#include "pool/blocks/pool_state.h"
#include "pool/blocks/slots.h"
#include "pool/paging/page_plan.h"
#include "pool/policy/growth.h"
#include "pool/policy/policy.h"
#include "pool/regions/regions.h"

/* A pool reserves host addresses for this many block records; addresses alone take no memory. If
 * the host refuses addresses for MOST_BLOCKS records, the pool tries half as many, and so on down
 * to FEWEST_BLOCKS. */
#define MOST_BLOCKS ((uint64_t)1 << 26)
#define FEWEST_BLOCKS ((uint64_t)1 << 12)
#define MOST_PAGES ((uint64_t)1 << 20)

void bfc_pool_config_default(struct bfc_pool_config *config) {
    *config = (struct bfc_pool_config){
        .policy = BFC_POLICY_BFC,
        .growth = BFC_GROWTH_DOUBLE,
        .growth_size = 2 * MIB,
        .growth_max = 1 * GIB,
        .preallocate = 1 * GIB,
        .split_slack = UINT64_MAX,
        .max_split = UINT64_MAX,
        .gc_threshold = UINT64_MAX,
        .limit = UINT64_MAX,
        .keep_whole = 64 * MIB,
        .reuse_pending = true,
        .pending_budget = 256 * MIB,
        .page_slack = 0.03,
        .page_most = 1 * GIB,
    };
}

static bool open_records(struct bfc_pool *pool, uint64_t most_blocks) {
    if (!slots_open(pool, most_blocks) || !map_open(&pool->map, most_blocks) ||
        !address_index_open(&pool->index, most_blocks))
        return false;
    uint64_t region = sizeof(struct region);
    pool->regions = host_array_open(&pool->region_memory, (most_blocks + 1) * region, region);
    pool->region_high = 1;
    return pool->regions;
}

static void close_paging(struct bfc_pool *pool) {
    if (!pool->paging)
        return;
    host_array_drop(&pool->paging->table.pages.memory);
    host_array_drop(&pool->paging->on_hand.memory);
    free(pool->paging);
}

static bool open_paging(struct bfc_pool *pool, const struct bfc_page_calls *calls) {
    if (!calls)
        return true;
    pool->paging = calloc(1, sizeof *pool->paging);
    if (!pool->paging)
        return false;
    pool->paging->calls = *calls;
    pool->paging->step_most = UINT64_MAX;
    bool opened = page_array_open(&pool->paging->table.pages, MOST_PAGES) &&
                  page_array_open(&pool->paging->on_hand, MOST_PAGES);
    pool->paging->table.granule = pool->paging->calls.granule;
    pool->paging->table.large_above = page_growth_most(pool, 0);
    pool->paging->page_bound = UINT64_MAX;
    return opened;
}

static void close_records(struct bfc_pool *pool) {
    close_paging(pool);
    struct host_array *all[] = {&pool->block_memory, &pool->detail_memory, &pool->region_memory,
                                &pool->map.memory, &pool->index.memory};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        host_array_drop(all[i]);
}

enum bfc_status create_sized(struct bfc_pool **pool, const struct bfc_pool_config *config,
                             const struct bfc_upstream *upstream, uint64_t most_blocks) {
    struct bfc_pool *made = calloc(1, sizeof *made);
    if (!made)
        return BFC_NO_HOST_MEMORY;
    made->config = *config;
    made->upstream = *upstream;
    /* The caller's struct bfc_page_calls need not exist after this call, so the pool must not keep
     * this pointer. open_paging copies the struct. */
    made->upstream.pages = NULL;
    /* With pages, neighbouring free blocks merge into blocks of any size. If blocks of max_split
     * bytes or more could not be split, a small request might get a huge block. So max_split is
     * ignored. */
    if (upstream->pages)
        made->config.max_split = UINT64_MAX;
    if (!open_records(made, most_blocks) || !open_paging(made, upstream->pages)) {
        close_records(made);
        free(made);
        return BFC_NO_HOST_MEMORY;
    }
    made->stats = config->stats ? config->stats : &made->own_stats;
    policy_make(made);
    struct bins *all[] = {&made->ready, &made->apart, &made->whole, &made->small, &made->pending};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        bins_open(all[i], made->rules.exact);
    made->bare.is_sorted = true;
    made->step = growth_first_step(made);
    made->next_id = 1;
    made->oldest_fence = UINT64_MAX;
    pthread_mutex_init(&made->growth_lock, NULL);
    *pool = made;
    return BFC_OK;
}

enum bfc_status bfc_pool_create(struct bfc_pool **pool, const struct bfc_pool_config *config,
                                const struct bfc_upstream *upstream) {
    enum bfc_status status = BFC_NO_HOST_MEMORY;
    struct bfc_pool_config defaults;
    bfc_pool_config_default(&defaults);
    config = config ? config : &defaults;
    for (uint64_t most = MOST_BLOCKS; status != BFC_OK && most >= FEWEST_BLOCKS; most /= 2)
        status = create_sized(pool, config, upstream, most);
    return status;
}

void bfc_pool_destroy(struct bfc_pool *pool, bool release) {
    if (!pool)
        return;
    if (pool->paging && release)
        perform_end(pool);
    if (release)
        regions_end(pool);
    close_records(pool);
    pthread_mutex_destroy(&pool->growth_lock);
    free(pool);
}
