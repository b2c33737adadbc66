/*
 * The state of a pool, and functions that all files of the pool share. Everything here is called
 * under the lock unless a comment says otherwise. docs/internals/HACKING.md describes the folders.
 */
#ifndef BFC_POOL_STATE_H
#define BFC_POOL_STATE_H

#include <pthread.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/sizes.h"
#include "base/thread_identity.h"
#include "pool/pool.h"
#include "pool/structures/address_index.h"
#include "pool/structures/bins.h"
#include "pool/structures/block.h"
#include "pool/structures/host.h"
#include "pool/structures/lock.h"
#include "pool/structures/map.h"

#define ROUND_DOWN(bytes) ((bytes) & ~(BFC_GRANULE - 1))

/* The steps that an allocation tries when the device has refused a region, in the order that the
 * policy sets. After each step the allocation searches for a block again. */
enum rung {
    RUNG_END,
    RUNG_WAIT_ENOUGH,  /* waits for the oldest fences that suffice */
    RUNG_RELEASE_EACH, /* gives idle regions back one by one, and grows after each */
    /* policy pytorch: gives back one idle region that is large enough, or several large ones */
    RUNG_RELEASE_LARGE,
    RUNG_WAIT_ALL,     /* waits for all fences */
    RUNG_RELEASE_IDLE, /* gives all idle regions back, if that can help, then grows */
    RUNG_RELEASE_ALL,  /* gives all idle regions back, even if that cannot help, then grows */
};

#define RUNGS_MOST 5

/* policy_make computes these from the pool's configuration; later events change a few of them. */
struct rules {
    const enum rung *rungs;
    /* whether free blocks are sorted by size and address, and each region belongs to one zone */
    bool exact;
    /* whether a free block may not be picked by its size alone: `exact` is set, small_most is not
     * 0, or a large region is wholly free (whole.h) */
    bool picks_by_rules;
    bool rounds;   /* whether requests are rounded to more than whole granules and BFC_LARGE */
    bool cuts_all; /* whether every block that is larger than a request is split */
    /* whether idle regions go back at frees that wait for the device (surplus.c) */
    bool returns_surplus;
    bool ages;           /* whether regions note when they became idle */
    uint64_t small_most; /* blocks of at most this many bytes have regions of their own; 0: none
                            have, or `exact` is set and the policy decides */
    bool mixes; /* whether a request may take a block of the other zone before the pool grows */
    uint64_t watched;     /* how many more allocations remake_before checks; 0 with `exact` */
    bool prepares;        /* whether `rounds` is set or `watched` is not 0 */
    uint64_t whole_above; /* regions of more than this many granules are kept whole (whole.h) */
    uint64_t plain_most;  /* granules of the largest request that the hot path serves. 0 unless
                             cuts_all is the only rule above that is set, and no region is set
                             apart; less while a large region is wholly free (whole.h) */
};

struct region {
    bfc_addr start;   /* the region's first address; of a vacant record: the next vacant record */
    uint64_t size;    /* bytes of the region; 0: the record is vacant */
    uint64_t bare;    /* bytes of addresses without a page, in a region that is paged */
    block_index head; /* the region's head: the record before its first block */
    /* whether bfc_pool_share_region was called for it; then its pending blocks are in no bin */
    bool shared;
    bool held;  /* whether the region must never be given back */
    bool apart; /* whether ordinary allocations may not take memory from it (bfc_pool_set_apart) */
    bool planned; /* whether bfc_pool_add_apart has made it */
    /* whether it was taken while there was a planned region (bfc_pool_gather_overflow) */
    bool overflow;
    bool paged; /* whether it is a reservation of addresses, some of which have pages (pages.h) */
    /* the value of `lookups` when the region last became wholly free; with rules.ages */
    uint64_t idle_since;
    uint64_t seen_idle; /* the value of idle_since at the last call of bfc_pool_trim_idle */
    uint64_t seen_ns;   /* when bfc_pool_trim_idle first found the region idle since `seen_idle` */
};

struct paging;

/*
 * Invariants (checked by bfc_pool_check):
 *
 * - Blocks tile their region without gap or overlap.
 * - No two neighbours of a region are both ready, both deferred, or both pending with one fence.
 * - in_use + ready + pending + deferred = reserved, each the sum over its blocks; pending counts
 *   the awaited blocks.
 * - Each ready block is in the one bin of its size: of `apart` if its region is set apart, of
 *   `whole` if it is all of a large region, of `small` if its region is for small blocks and free
 *   blocks are not sorted, else of `ready`.
 * - With reuse_pending, each pending block is in the bin of its size of `pending`, except those of
 *   regions that are shared or set apart.
 * - Each pending, deferred or bare block is in the list of its state; each bare block is in the
 *   bins `bare`; each live block is in the map once.
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
                             `previous` of its first is not set */
    uint32_t high;        /* the high-water mark: all records in use have a lower index */
    uint32_t records;     /* how many records are in use, without record 0 */
    uint32_t few_records; /* slots_settle moves records when fewer than these are in use */
    uint64_t next_id, last_id;
    bfc_fence completed;    /* the highest fence known to be complete */
    bfc_fence oldest_fence; /* the lowest fence of a pending block; UINT64_MAX: none is pending */
    struct block_list pending_list; /* pending blocks, in the order of their fences */
    struct block_list deferred_list, bare_list;
    uint64_t deferred_arrivals; /* how many blocks were ever deferred */
    uint64_t awaited;           /* how many blocks are awaited now */
    uint64_t readied;           /* how many awaited blocks have become ready so far */
    struct bins ready, pending;
    struct bins apart; /* ready blocks of regions that are set apart */
    struct bins small; /* with rules.small_most: ready blocks of regions for small blocks */
    struct bins whole; /* ready blocks that are all of a large region (whole.h) */
    struct bins bare;  /* blocks of addresses without a page; always sorted */
    struct address_index index;
    struct region *regions;
    region_index region_high, vacant_region;
    uint32_t shared_regions; /* how many regions have `shared` set */
    /* how many regions are set apart; if there are any, rules.plain_most is 0 */
    uint32_t apart_regions;

    struct host_array block_memory, detail_memory, region_memory;
    struct bfc_pool_config config;
    struct rules rules;
    struct bfc_upstream upstream;
    /* only the thread that holds this lock asks the upstream for regions and pages; it is taken
     * before `lock`, and never while `lock` is held */
    pthread_mutex_t growth_lock;
    struct bfc_ask ask; /* what the allocation that holds growth_lock passes to the upstream */
    int release_error;  /* the upstream's code for the last region that was given back */
    uint64_t step;    /* policies bfc and tf: the next region's size is computed from these bytes */
    bool step_raised; /* policy tf: `step` was raised for the region being asked for */
    uint64_t releasing; /* bytes of regions and pages that are being given back */
    /* the most bytes that blocks outside planned regions have ever taken */
    uint64_t overflow_wanted;
    bool gather_overflow; /* whether the next region is to have overflow_wanted bytes */
    bool preallocated;
    /* whether other jobs have asked for memory; then large regions are kept whole whatever growing
     * costs */
    bool wanted_elsewhere;
    bool has_surplus; /* atomic: whether idle regions may have to go back (surplus.c) */
    uint64_t surplus_releases;
    uint64_t merge_bytes;   /* the least size of the next region, which takes the place of idle
                             * regions that were merged */
    uint64_t merge_calls;   /* reserve_calls when idle regions were merged last */
    uint64_t frees_grown;   /* number of frees when the pool grew last */
    uint64_t taken_to_keep; /* bytes of regions that were taken so that others stay whole */
    struct paging *paging;  /* state of a pool with pages (paging.h); else NULL */
    uint64_t lookups;       /* with rules.ages: allocations, failed ones included, except those with
                               BFC_ALLOCATE_HIT_ONLY that missed or at a given address */
    char *notes_end;        /* the end of the memory that bfc_pool_take_notes was given */
    /* bytes of the notes that are still to be written; bytes of all notes */
    uint64_t notes_left, notes_wanted;
    struct bfc_pool_stats own_stats;
};

/* Changes the count of deferred bytes, which a free compares with BFC_PENDING_BUDGET without the
 * lock. */
static inline void pool_count_deferred(struct bfc_pool *pool, uint64_t change) {
    bfc_store_relaxed(&pool->stats->deferred, pool->stats->deferred + change);
}

/* Writes a note (struct bfc_pool_note); notes_left must not be 0. */
static inline void pool_note(struct bfc_pool *pool, uint64_t id, uint64_t bytes) {
    struct bfc_pool_note *note = (void *)(pool->notes_end - pool->notes_left);
    pool->notes_left -= sizeof *note;
    note->id = id;
    note->bytes = bytes;
    if (bytes)
        note->thread = bfc_thread_identity();
}

static inline uint64_t block_requested(const struct bfc_pool *pool, block_index b) {
    const struct block *at = &pool->blocks[b];
    uint64_t slack = block_slack(at);
    if (UNLIKELY(slack == MUCH_SLACK))
        slack = pool->details[b].slack;
    return block_size(at) - slack;
}

static inline bfc_fence block_handed_out(const struct bfc_pool *pool, block_index b) {
    return block_slack(&pool->blocks[b]) == MUCH_SLACK ? pool->details[b].handed_out : BFC_NO_FENCE;
}

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

/* Returns the fewest granules that hold this many bytes, which must not be 0. */
static inline uint64_t granules_to_hold(uint64_t bytes) {
    return ((bytes - 1) >> BFC_GRANULE_BITS) + 1;
}

/* Rounds large sizes up to BFC_LARGE, so that the rest of a block starts where a large one may. */
static inline uint64_t round_large(uint64_t granules) {
    return granules < LARGE_GRANULES ? granules : (granules + MOST_LEAD) & ~MOST_LEAD;
}

/* Returns how many granules of b lie before a block of this size that is cut from it: a large block
 * starts at a multiple of BFC_LARGE, unless it is the first of its region. */
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
    /* The lock's holder alone writes, so a load and a store are enough. The barrier keeps later
     * writes behind the odd number. */
    bfc_store_relaxed(&stats->sequence, stats->sequence + 1);
    bfc_barrier_release();
}

static inline void pool_leave(struct bfc_pool *pool) {
    struct bfc_pool_stats *stats = pool->stats;
    bfc_store_release(&stats->sequence, stats->sequence + 1);
    pool_unlock(&pool->lock);
}

/* Returns the region of block b. O(log blocks). */
static inline struct region *region_of(const struct bfc_pool *pool, block_index b) {
    bfc_addr start = block_start(&pool->blocks[b]);
    node_index a = address_index_find(&pool->index, start);
    return &pool->regions[pool->index.nodes[a].region];
}

static inline bool is_shared(const struct bfc_pool *pool, block_index b) {
    return pool->shared_regions && region_of(pool, b)->shared;
}

/* Whether any allocation with BFC_ALLOCATE_PENDING may take this block, if it is pending. */
static inline bool is_open_pending(const struct bfc_pool *pool, block_index b) {
    return !block_is_apart(&pool->blocks[b]) && !is_shared(pool, b);
}

/* Whether this block is in a bin if it is pending. */
static inline bool is_reused_pending(const struct bfc_pool *pool, block_index b) {
    return pool->config.reuse_pending && is_open_pending(pool, b);
}

/* Returns the bins for this block if it is ready. `plain` is a constant; true: rules.plain_most is
 * not 0, so the compiler drops the other cases. */
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

/* Returns the bins for block b in its state; NULL: it belongs to none. */
static inline struct bins *bins_of(struct bfc_pool *pool, block_index b) {
    enum block_state state = block_state(&pool->blocks[b]);
    if (state == BLOCK_READY)
        return ready_bins(pool, b, false);
    if (state == BLOCK_PENDING)
        return is_reused_pending(pool, b) ? &pool->pending : NULL;
    return state == BLOCK_BARE ? &pool->bare : NULL;
}

/* Returns the list for block b in its state; NULL: it belongs to none. */
static inline struct block_list *list_of(struct bfc_pool *pool, block_index b) {
    enum block_state state = block_state(&pool->blocks[b]);
    if (state == BLOCK_PENDING)
        return &pool->pending_list;
    if (state == BLOCK_DEFERRED)
        return &pool->deferred_list;
    return state == BLOCK_BARE ? &pool->bare_list : NULL;
}

#endif
