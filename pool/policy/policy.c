/* The three policies: how each rounds requests, which regions and free blocks serve which requests,
 * when a block is split, and in which order each policy tries its last resorts. */
#include "pool/policy/policy.h"

#include "base/atomic.h"
#include "base/numbers.h"
#include "pool/blocks/whole.h"

#define TF_RATIO 2.0
#define TF_SLACK (128 * MIB)

#define PYTORCH_LARGE_REST (1 * MIB)

/* A request of max_split bytes or more gets a block whole, as it may not be split. So as not to
 * waste much, the block must be larger than the request by less than this many bytes. */
#define NOT_SPLIT_SLACK (20 * MIB)

static const enum rung bfc_rungs[RUNGS_MOST] = {RUNG_WAIT_ENOUGH, RUNG_RELEASE_EACH, RUNG_WAIT_ALL,
                                                RUNG_RELEASE_EACH};
static const enum rung tf_rungs[RUNGS_MOST] = {RUNG_WAIT_ENOUGH, RUNG_WAIT_ALL, RUNG_RELEASE_IDLE};
static const enum rung pytorch_rungs[RUNGS_MOST] = {RUNG_WAIT_ENOUGH, RUNG_RELEASE_LARGE,
                                                    RUNG_WAIT_ALL, RUNG_RELEASE_ALL};

static const enum rung *const rungs_of[] = {
    [BFC_POLICY_BFC] = bfc_rungs,
    [BFC_POLICY_TF] = tf_rungs,
    [BFC_POLICY_PYTORCH] = pytorch_rungs,
};

static bool own_split(const struct bfc_pool_config *config) {
    return config->split_ratio > 0 || config->split_slack != UINT64_MAX;
}

/* Returns the size in granules above which the pool avoids splitting a wholly free region, so that
 * the region can go back to the device. It is at least the configured size of the preallocated
 * region, which must be split, because it is meant to serve all requests. */
static uint64_t whole_above(const struct bfc_pool_config *config) {
    bool preallocates = config->growth == BFC_GROWTH_PREALLOCATE;
    uint64_t bytes = bfc_max(config->keep_whole, preallocates ? config->preallocate : 0);
    return bytes >> BFC_GRANULE_BITS;
}

void policy_make(struct bfc_pool *pool) {
    const struct bfc_pool_config *config = &pool->config;
    bool unsplit = config->max_split != UINT64_MAX;
    bool bfc = config->policy == BFC_POLICY_BFC;
    pool->rules = (struct rules){
        .rungs = rungs_of[config->policy],
        .exact = !bfc || unsplit,
        .rounds = !bfc || config->roundup > 1,
        .cuts_all = bfc && !unsplit && !own_split(config),
        .whole_above = whole_above(config),
        .returns_surplus =
            bfc && config->growth != BFC_GROWTH_PREALLOCATE && config->gc_threshold == UINT64_MAX,
        .ages = config->gc_threshold != UINT64_MAX || config->track_idle,
    };
    policy_set_plain(pool);
}

void policy_set_plain(struct bfc_pool *pool) {
    struct rules *rules = &pool->rules;
    bool plain = rules->cuts_all && !rules->exact && !rules->rounds && !rules->ages;
    plain = plain && !pool->apart_regions && !rules->small_most && !rules->watched;
    whole_set_rules(pool, plain);
    rules->prepares = rules->rounds || rules->watched;
}

void policy_part_small(struct bfc_pool *pool, uint64_t most) {
    if (pool->rules.exact)
        return;
    pool->rules.small_most = most;
    policy_set_plain(pool);
}

void policy_watch(struct bfc_pool *pool, uint64_t allocations) {
    pool->rules.watched = pool->rules.exact ? 0 : allocations;
    policy_set_plain(pool);
}

/* A pool has too many regions once it has reserved more than the most that was ever in use, plus 1
 * / PART_ALLOWED of that, plus ALLOWANCE bytes, so that small pools are left alone. */
enum { PART_ALLOWED = 10 };
#define ALLOWANCE (32 * MIB)

/* Idle regions are merged (surplus.c) only if the pool has taken at least NEW_REGIONS regions since
 * regions were last merged, and the last of them fewer than FREES_WATCHED frees ago: a pool that
 * has not grown for that long is large enough as it is. */
enum { NEW_REGIONS = 4, FREES_WATCHED = 1 << 17 };

uint64_t policy_allowed(const struct bfc_pool *pool) {
    uint64_t most = pool->stats->peak_in_use;
    return most + most / PART_ALLOWED;
}

bool policy_has_surplus(const struct bfc_pool *pool) {
    return pool->rules.returns_surplus && pool->stats->reserved > policy_allowed(pool) + ALLOWANCE;
}

/* After regions went back, others could take their memory before the pool grows again. So nothing
 * is merged where the device has refused memory or other jobs have asked for it. */
bool policy_may_merge(const struct bfc_pool *pool) {
    const struct bfc_pool_stats *stats = pool->stats;
    return pool->rules.returns_surplus && pool->config.growth == BFC_GROWTH_DOUBLE &&
           !stats->refusals && !pool->wanted_elsewhere && !pool->apart_regions &&
           stats->reserve_calls >= pool->merge_calls + NEW_REGIONS &&
           stats->frees - pool->frees_grown < FREES_WATCHED;
}

void policy_note_surplus(struct bfc_pool *pool) {
    bfc_store_relaxed(&pool->shown.has_surplus, policy_has_surplus(pool) || policy_may_merge(pool));
}

/* Rounds up to a multiple of P / `divisions`, where P is the highest power of two that is not above
 * `bytes`. PyTorch's roundup_power2_divisions does the same. */
static uint64_t round_to_division(uint64_t bytes, uint64_t divisions) {
    uint64_t power = (uint64_t)1 << (63 - __builtin_clzll(bytes));
    return power == bytes ? bytes : bfc_round_up(bytes, power / divisions);
}

uint64_t policy_round(const struct bfc_pool *pool, uint64_t bytes) {
    uint64_t divisions = pool->config.roundup;
    if (divisions > 1 && bytes > BFC_GRANULE * divisions)
        bytes = round_to_division(bytes, divisions);
    uint64_t granules = granules_to_hold(bytes);
    return (pool->config.policy == BFC_POLICY_BFC ? round_large(granules) : granules)
           << BFC_GRANULE_BITS;
}

enum block_zone policy_zone(const struct bfc_pool *pool, uint64_t size) {
    bool pytorch = pool->config.policy == BFC_POLICY_PYTORCH;
    return size <= (pytorch ? PYTORCH_SMALL : pool->rules.small_most) ? ZONE_SMALL : ZONE_LARGE;
}

bool policy_fits(const struct bfc_pool *pool, uint64_t size, uint64_t block) {
    uint64_t most = pool->config.max_split;
    if (most == UINT64_MAX)
        return true;
    return size < most ? block < most : block - size < NOT_SPLIT_SLACK;
}

static bool splits_by(uint64_t size, uint64_t block, double ratio, uint64_t slack) {
    return (ratio > 0 && (double)block >= ratio * (double)size) || block - size >= slack;
}

bool policy_splits(const struct bfc_pool *pool, uint64_t size, uint64_t block) {
    const struct bfc_pool_config *config = &pool->config;
    if (block == size || size >= config->max_split)
        return false;
    if (config->policy == BFC_POLICY_TF)
        return splits_by(size, block, config->split_ratio > 0 ? config->split_ratio : TF_RATIO,
                         config->split_slack != UINT64_MAX ? config->split_slack : TF_SLACK);
    if (own_split(config))
        return splits_by(size, block, config->split_ratio, config->split_slack);
    if (config->policy == BFC_POLICY_PYTORCH && policy_zone(pool, size) == ZONE_LARGE)
        return block - size > PYTORCH_LARGE_REST;
    return true;
}
