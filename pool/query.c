/* What is asked about blocks and counters; creating and destroying. */
#include "pool/internal.h"

#include <stdlib.h>

/* Free neighbours that are counted on each side of a block. */
#define NEIGHBOURS_MOST 64
/* Records for 2^26 blocks are reserved as addresses, not memory: less if the host says no. */
#define MOST_BLOCKS ((uint64_t)1 << 26)
#define FEWEST_BLOCKS ((uint64_t)1 << 12)

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
        .reuse_dirty = true,
        .dirty_budget = 256 * MIB,
    };
}

static bool open_records(struct bfc_pool *pool, uint64_t most_blocks) {
    uint64_t most_regions = most_blocks;
    if (!slots_open(pool, most_blocks) || !map_open(&pool->map, most_blocks) ||
        !anchors_open(&pool->anchors, most_blocks) ||
        !host_array_reserve(&pool->region_memory, (most_regions + 1) * sizeof(struct region)) ||
        !host_array_commit(&pool->region_memory, sizeof(struct region)))
        return false;
    pool->regions = (struct region *)(void *)pool->region_memory.base;
    pool->region_high = 1;
    return true;
}

static void close_records(struct bfc_pool *pool) {
    slots_close(pool);
    map_close(&pool->map);
    anchors_close(&pool->anchors);
    host_array_drop(&pool->region_memory);
}

/* tf without growth begins at what it preallocates. */
static uint64_t first_step(const struct bfc_pool *pool) {
    const struct bfc_pool_config *config = &pool->config;
    bool whole = config->policy == BFC_POLICY_TF && config->growth == BFC_GROWTH_PREALLOCATE;
    uint64_t step = whole ? config->preallocate : config->growth_size;
    step &= ~(pool->rules.unit - 1);
    return step ? step : pool->rules.unit;
}

enum bfc_status pool_create_sized(struct bfc_pool **pool, const struct bfc_pool_config *config,
                                  const struct bfc_source *source, uint64_t most_blocks) {
    struct bfc_pool *made = calloc(1, sizeof *made);
    if (!made)
        return BFC_NO_HOST_MEMORY;
    if (!open_records(made, most_blocks)) {
        close_records(made);
        free(made);
        return BFC_NO_HOST_MEMORY;
    }
    made->config = *config;
    made->source = *source;
    made->stats = config->stats ? config->stats : &made->own_stats;
    policy_make(made);
    bins_open(&made->clean, made->rules.exact);
    bins_open(&made->dirty, made->rules.exact);
    made->step = first_step(made);
    made->next_id = 1;
    made->oldest_mark = UINT64_MAX;
    pthread_mutex_init(&made->growth_turn, NULL);
    *pool = made;
    return BFC_OK;
}

enum bfc_status bfc_pool_create(struct bfc_pool **pool, const struct bfc_pool_config *config,
                                const struct bfc_source *source) {
    enum bfc_status status = BFC_NO_HOST_MEMORY;
    struct bfc_pool_config defaults;
    bfc_pool_config_default(&defaults);
    config = config ? config : &defaults;
    for (uint64_t most = MOST_BLOCKS; status != BFC_OK && most >= FEWEST_BLOCKS; most /= 2)
        status = pool_create_sized(pool, config, source, most);
    return status;
}

void bfc_pool_destroy(struct bfc_pool *pool, bool release) {
    if (!pool)
        return;
    regions_forget(pool, release);
    close_records(pool);
    pthread_mutex_destroy(&pool->growth_turn);
    free(pool);
}

uint64_t bfc_pool_granule(const struct bfc_pool *pool) {
    return pool->rules.unit;
}

block_index pool_find_holding(const struct bfc_pool *pool, bfc_addr address) {
    block_index b = map_find(&pool->map, pool->blocks, address & ~BLOCK_TAG_MASK);
    if (b)
        return b;
    b = pool->anchors.all[anchors_find(&pool->anchors, address)].block;
    if (block_state(&pool->blocks[b]) == BLOCK_HEAD)
        b = pool->blocks[b].next;
    while (b && address - block_start(&pool->blocks[b]) >= block_size(pool, &pool->blocks[b]))
        b = pool->blocks[b].next;
    return b;
}

static uint64_t free_bytes_from(const struct bfc_pool *pool, block_index b, bool onwards) {
    const struct block *blocks = pool->blocks;
    uint64_t bytes = 0;
    for (int i = 0; i < NEIGHBOURS_MOST && block_is_free(&blocks[b]); i++) {
        bytes += block_size(pool, &blocks[b]);
        b = onwards ? blocks[b].next : blocks[b].previous;
    }
    return bytes;
}

static bfc_mark mark_of(const struct bfc_pool *pool, block_index b) {
    enum block_state state = block_state(&pool->blocks[b]);
    if (state == BLOCK_LIVE)
        return block_handed_out(pool, b);
    if (state == BLOCK_LIMBO)
        return BFC_LIMBO_MARK;
    return state == BLOCK_DIRTY ? pool->details[b].mark : BFC_NO_MARK;
}

static void describe(const struct bfc_pool *pool, block_index b, struct bfc_block_info *info) {
    const struct block *at = &pool->blocks[b];
    const struct region *region = region_of(pool, b);
    bool live = block_state(at) == BLOCK_LIVE;
    *info = (struct bfc_block_info){
        .start = block_start(at),
        .size = block_size(pool, at),
        .requested = live ? block_requested(pool, b) : 0,
        .id = live ? block_id(at) : 0,
        .free_before = free_bytes_from(pool, at->previous, false),
        .free_after = free_bytes_from(pool, at->next, true),
        .region_start = region->start,
        .region_size = region->size,
        .mark = mark_of(pool, b),
        .live = live,
    };
}

bool bfc_pool_find(struct bfc_pool *pool, bfc_addr address, struct bfc_block_info *block) {
    pool_enter(pool);
    block_index b = pool_find_holding(pool, address);
    if (b)
        describe(pool, b, block);
    pool_leave(pool);
    return b;
}

/* Dirty blocks of a shared region are not for reuse: they leave their bins, but not the list of
 * marks. */
static void bar_dirty(struct bfc_pool *pool, const struct region *region) {
    for (block_index b = pool->oldest; b; b = pool->details[b].newer)
        if (region_of(pool, b) == region)
            bins_remove(&pool->dirty, pool->blocks, b, false);
}

void bfc_pool_share_region(struct bfc_pool *pool, bfc_addr address, bool held) {
    pool_enter(pool);
    block_index b = pool_find_holding(pool, address);
    if (b) {
        struct region *region = region_of(pool, b);
        if (!region->shared) {
            if (pool->config.reuse_dirty)
                bar_dirty(pool, region);
            pool->shared_regions++;
        }
        region->shared = true;
        region->held = held;
    }
    pool_leave(pool);
}

static uint64_t largest_clean(const struct bfc_pool *pool) {
    const struct bins *bins = &pool->clean;
    const struct block *blocks = pool->blocks;
    if (bins->is_sorted)
        return bins->root ? block_size(pool, &blocks[sorted_last(bins->root, blocks)]) : 0;
    uint64_t largest = 0;
    unsigned bin = BIN_COUNT;
    while (bin > 0 && bins->heads[bin] == NO_HEAD)
        bin--;
    for (block_index b = (block_index)bins->heads[bin]; b; b = blocks[b].after)
        if (block_size(pool, &blocks[b]) > largest)
            largest = block_size(pool, &blocks[b]);
    return largest;
}

static uint64_t largest_free(const struct bfc_pool *pool) {
    uint64_t largest = largest_clean(pool);
    for (block_index b = pool->oldest; b; b = pool->details[b].newer)
        if (block_size(pool, &pool->blocks[b]) > largest)
            largest = block_size(pool, &pool->blocks[b]);
    return largest;
}

void bfc_pool_read_stats(struct bfc_pool *pool, struct bfc_pool_stats *stats) {
    pool_enter(pool);
    marks_settle(pool, MARKS_ALL);
    pool->stats->largest_free = largest_free(pool);
    *stats = *pool->stats;
    stats->sequence++; /* as it will be: even */
    pool_leave(pool);
}

struct visit {
    struct bfc_pool *pool;
    void (*visit)(void *context, const struct bfc_block_info *block);
    void *context;
};

static bool visit_region(void *context, const struct anchor *head) {
    struct visit *v = context;
    const struct block *blocks = v->pool->blocks;
    for (block_index b = blocks[head->block].next; b; b = blocks[b].next) {
        struct bfc_block_info info;
        describe(v->pool, b, &info);
        v->visit(v->context, &info);
    }
    return true;
}

void bfc_pool_visit(struct bfc_pool *pool,
                    void (*visit)(void *context, const struct bfc_block_info *block),
                    void *context) {
    struct visit v = {.pool = pool, .visit = visit, .context = context};
    pool_enter(pool);
    anchors_visit(&pool->anchors, pool->blocks, visit_region, &v);
    pool_leave(pool);
}
