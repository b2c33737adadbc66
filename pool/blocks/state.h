/*
 * The inside of the pool: its struct, and what its files share.
 *
 * The pool's rooms, from the top; each may call those below it, and none above (tests/lint/floors):
 *
 * - calls: allocate, free and carve (calls.c, the hot calls), create, query, check
 * - regions: an allocation that finds nothing (serve.c), what it tries before it fails
 *   (last_resorts.c), waits; taking regions in, and giving them back by need and by age
 * - paging: addresses and memory apart: which pages go where, and the device's calls for that
 * - search: finds and takes free blocks for a request
 * - policy: the differences between the policies; growth.c: how large the next region is
 * - blocks: block records, their splitting, merging and change of state; pending and deferred ones
 * - structures: bins, trees, the map, host memory, the lock; none of them knows the pool
 *
 * Everything here is called under the lock unless it says otherwise.
 */
#ifndef BFC_POOL_STATE_H
#define BFC_POOL_STATE_H

#include <pthread.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "pool/blocks/rules.h"
#include "pool/pool.h"
#include "pool/structures/address_index.h"
#include "pool/structures/bins.h"
#include "pool/structures/block.h"
#include "pool/structures/host.h"
#include "pool/structures/lock.h"
#include "pool/structures/map.h"

/* To whole granules. */
#define ROUND_DOWN(bytes) ((bytes) & ~(BFC_GRANULE - 1))

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

struct region {
    bfc_addr start; /* of a vacant one, size is 0 and this is the next vacant one */
    uint64_t size;
    uint64_t bare;       /* bytes of a paged one that have no page */
    block_index head;    /* the record before its first block */
    bool shared;         /* was exported: its pending blocks are in no bin */
    bool held;           /* never given back */
    bool apart;          /* others take from it only instead of growing; no page goes elsewhere */
    bool planned;        /* of bfc_pool_add_apart: in the end it serves what its policy refuses */
    bool overflow;       /* was taken while there was a planned one (pool/regions/overflow.h) */
    bool paged;          /* addresses alone, pages being behind a part of them (pages.h) */
    uint64_t idle_since; /* lookups, when it last became wholly free; with rules.ages */
    uint64_t seen_idle;  /* idle_since at the last look of bfc_pool_trim_idle... */
    uint64_t seen_ns;    /* ...and when it first saw that */
};

struct paging;

/*
 * Invariants (checked by bfc_pool_check):
 *
 * - Blocks tile their region without gap or overlap.
 * - No two neighbours of a region are both ready, both deferred, or both pending with one fence.
 * - in_use + ready + pending + deferred = reserved, each the sum over its blocks; pending counts
 *   the awaited ones.
 * - Each ready block is in the one bin of its size: of `apart` if its region is, of `whole` if it
 * is all of a large region, of `small` if its region is for small blocks and free blocks are not
 *   sorted, else of `ready`.
 *   With reuse_pending so is each pending one, except those of regions that are shared or apart.
 * - Each pending block is in the list of fences, in rising order; each deferred block is in its
 *   list; each live block is in the map once.
 * - Each region has a head before its first block.
 * - Each head, and each block that its hash selects, is an index node.
 * - Each record is a block's, a head, or vacant.
 */
struct bfc_pool {
    struct pool_lock lock;
    struct bfc_pool_stats *stats;
    struct block *blocks;
    struct block_detail *details;
    struct map map;
    block_index vacant;   /* list of vacant records, doubly linked by their neighbour links; the
                             `previous` of its first is not in use */
    uint32_t high;        /* all records in use are below it... */
    uint32_t records;     /* ...and they are so many, without record 0... */
    uint32_t few_records; /* ...which, if they are fewer, are moved together */
    uint64_t next_id, last_id;
    bfc_fence completed;
    bfc_fence oldest_fence; /* of any pending block; UINT64_MAX: there is none */
    block_index oldest, newest;
    block_index deferred;       /* list of deferred blocks, who came last first */
    uint64_t deferred_arrivals; /* blocks that ever came there */
    uint64_t awaited;           /* a count of blocks */
    uint64_t readied;           /* blocks that ever ceased to be awaited */
    struct bins ready, pending;
    struct bins apart; /* ready blocks of regions that are set apart */
    struct bins small; /* with rules.small_most: those of regions for small blocks */
    struct bins whole; /* those that are all of a large region (whole.h) */
    struct address_index index;
    struct region *regions;
    region_index region_high, vacant_region;
    uint32_t shared_regions; /* a count */
    uint32_t apart_regions;  /* a count; unless it is 0, rules.plain_most is */

    struct host_array block_memory, detail_memory, region_memory;
    struct bfc_pool_config config;
    struct rules rules;
    struct bfc_upstream upstream;
    pthread_mutex_t
        growth_lock;    /* not the pool's lock: its holder may ask the upstream for a region */
    struct bfc_ask ask; /* of the allocation whose thread holds growth_lock */
    int release_error;  /* the upstream's code for the last release */
    uint64_t step;      /* bytes of the next region by growth double */
    bool step_raised;   /* tf: for the region that is being asked for */
    uint64_t releasing; /* bytes of regions on their way back to the upstream */
    uint64_t overflow_wanted; /* bytes: beside planned regions, the most at a time */
    bool gather_overflow;     /* the next region there is as large as that */
    bool preallocated;
    bool wanted_elsewhere;  /* others have asked for memory back: large regions are kept whole at
                               any price */
    uint64_t taken_to_keep; /* bytes of regions that were taken so that others stay whole */
    struct paging *paging;  /* with pages (paging.h); NULL: regions */
    uint64_t lookups;       /* with rules.ages: allocations asked for, failed ones too, but for
                               those that were to be hits only, or at a given place */
    char *notes_end;        /* bfc_pool_take_notes: where the memory for them ends... */
    uint64_t notes_left, notes_wanted; /* ...and bytes of it */
    struct bfc_pool_stats own_stats;
};

extern __thread char pool_thread INITIAL_EXEC HIDDEN; /* its address tells threads apart */

/* Notes a call; only with notes_left. Of a block that is taken back `bytes` is 0. */
static inline void pool_note(struct bfc_pool *pool, uint64_t id, uint64_t bytes) {
    struct bfc_pool_note *note = (void *)(pool->notes_end - pool->notes_left);
    pool->notes_left -= sizeof *note;
    note->id = id;
    note->bytes = bytes;
    if (bytes)
        note->thread = (uint64_t)(uintptr_t)&pool_thread;
}

/* Of a live block: the bytes that were asked for. */
static inline uint64_t block_requested(const struct bfc_pool *pool, block_index b) {
    const struct block *at = &pool->blocks[b];
    uint64_t slack = block_slack(at);
    if (UNLIKELY(slack == MUCH_SLACK))
        slack = pool->details[b].slack;
    return block_size(at) - slack;
}

/* Of a live block: the fence under which it was handed out. */
static inline bfc_fence block_handed_out(const struct bfc_pool *pool, block_index b) {
    return block_slack(&pool->blocks[b]) == MUCH_SLACK ? pool->details[b].handed_out : BFC_NO_FENCE;
}

/* Of a live block. */
static inline void block_identify(struct bfc_pool *pool, block_index b, uint64_t id,
                                  uint64_t requested, bfc_fence handed_out) {
    struct block *at = &pool->blocks[b];
    uint64_t slack = block_size(at) - requested;
    if (UNLIKELY(slack >= MUCH_SLACK || handed_out != BFC_NO_FENCE)) {
        pool->details[b] = (struct block_detail){.slack = slack, .handed_out = handed_out};
        slack = MUCH_SLACK;
    }
    at->identity = id << SLACK_BITS | slack;
}

/* The fewest granules that hold this many bytes, at least 1. */
static inline uint64_t granules_to_hold(uint64_t bytes) {
    return ((bytes - 1) >> BFC_GRANULE_BITS) + 1;
}

/* Large sizes are rounded up, so that the rest of a block also starts where a large block may. */
static inline uint64_t round_large(uint64_t granules) {
    return granules < LARGE_GRANULES ? granules : (granules + MOST_LEAD) & ~MOST_LEAD;
}

/*
 * The granules of b that lie before a block of this size in it: for a large block, those up to the
 * next address where it may start; except that a region's first block starts where the upstream put
 * it.
 */
static inline uint64_t block_lead(const struct bfc_pool *pool, block_index b, uint64_t granules) {
    const struct block *at = &pool->blocks[b];
    uint64_t lead = -block_start(at) & (BFC_LARGE - 1);
    if (granules < LARGE_GRANULES || block_state(&pool->blocks[at->previous]) == BLOCK_HEAD)
        return 0;
    return lead >> BFC_GRANULE_BITS;
}

static inline bool block_has_room(const struct bfc_pool *pool, block_index b, uint64_t granules) {
    return block_granules(&pool->blocks[b]) >= granules + block_lead(pool, b, granules);
}

/* One allocation: what is requested, and where the answer goes. */
struct request {
    uint64_t bytes, granules;
    unsigned flags;
    struct bfc_block_info *out;
};

static inline uint64_t request_size(const struct request *request) {
    return request->granules << BFC_GRANULE_BITS;
}

static inline void pool_enter(struct bfc_pool *pool) {
    pool_lock(&pool->lock);
    struct bfc_pool_stats *stats = pool->stats;
    /* One writer, so a load and a store will do; the fence keeps later writes behind the odd
     * number. */
    bfc_store_relaxed(&stats->sequence, stats->sequence + 1);
    bfc_barrier_release();
}

static inline void pool_leave(struct bfc_pool *pool) {
    struct bfc_pool_stats *stats = pool->stats;
    bfc_store_release(&stats->sequence, stats->sequence + 1);
    pool_unlock(&pool->lock);
}

/* O(log blocks). */
static inline struct region *region_of(const struct bfc_pool *pool, block_index b) {
    bfc_addr start = block_start(&pool->blocks[b]);
    node_index a = address_index_find(&pool->index, start);
    return &pool->regions[pool->index.nodes[a].region];
}

static inline bool is_shared(const struct bfc_pool *pool, block_index b) {
    return pool->shared_regions && region_of(pool, b)->shared;
}

/* May this block, when it is pending, be part of what any allocation is handed? */
static inline bool is_open_pending(const struct bfc_pool *pool, block_index b) {
    return !block_is_apart(&pool->blocks[b]) && !is_shared(pool, b);
}

/* Is this block, when it is pending, in a bin? */
static inline bool is_reused_pending(const struct bfc_pool *pool, block_index b) {
    return pool->config.reuse_pending && is_open_pending(pool, b);
}

/* The bins that this block, when it is ready, is in. `plain`: under rules with plain_most, so that
 * the compiler can drop the other case. */
static inline struct bins *ready_bins(struct bfc_pool *pool, block_index b, bool plain) {
    const struct block *at = &pool->blocks[b];
    if (plain || LIKELY(!block_region_bits(at)))
        return &pool->ready;
    if (block_is_apart(at))
        return &pool->apart;
    if (block_is_whole(at))
        return &pool->whole;
    return pool->rules.exact ? &pool->ready : &pool->small;
}

#endif
