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

/* The steps that an allocation may try after the device has refused a region. Each policy has its
 * own order of them (policy.c). After each step the allocation searches for a block again. */
enum rung {
    RUNG_END,
    RUNG_WAIT_ENOUGH,  /* waits for fences, the oldest first, until a block fits the request */
    RUNG_RELEASE_EACH, /* gives wholly free regions back one by one, and tries to grow after each */
    /* policy pytorch, if max_split is set: gives back one wholly free region that is large enough,
     * or else several of at least max_split bytes, and tries to grow */
    RUNG_RELEASE_LARGE,
    /* waits for all fences, then for awaited blocks, which were freed in the order of a stream */
    RUNG_WAIT_ALL,
    /* gives all wholly free regions back, if the request would then fit below the configured limit,
     * and tries to grow */
    RUNG_RELEASE_IDLE,
    /* gives all wholly free regions back, even if the request would still be above the configured
     * limit, and tries to grow */
    RUNG_RELEASE_ALL,
};

#define RUNGS_MOST 5

/* The rules by which the pool chooses and splits free blocks, and rounds requests. policy_make
 * computes them from the configuration; later events change a few of them. */
struct rules {
    const enum rung *rungs;
    /* whether free blocks are sorted exactly by size and address, and each region serves either
     * small or large blocks only */
    bool exact;
    /* whether a request may be barred from a free block that is large enough, so that each block
     * must be checked: `exact` is set, small_most is not 0, or a large region is wholly free
     * (whole.h) */
    bool picks_by_rules;
    /* whether requests must be rounded by policy_round, because the policy does not just round up
     * to multiples of BFC_GRANULE, and from BFC_LARGE on to multiples of BFC_ALIGNMENT */
    bool rounds;
    bool cuts_all; /* whether every block that is larger than a request is split */
    /* whether bfc_pool_release_surplus gives wholly free regions back (surplus.c) */
    bool returns_surplus;
    bool ages; /* whether each region records when it became wholly free */
    /* without `exact`: blocks of at most this many bytes lie in regions that hold no larger blocks;
     * 0: all blocks share regions */
    uint64_t small_most;
    /* if small_most is not 0: whether a small request may take a block from a region for large
     * blocks, or the other way round, before the pool grows */
    bool mixes;
    /* For how many more allocations remake_before checks whether the free page that it would use is
     * too large for the request. Always 0 if the rule `exact` is set. */
    uint64_t watched;
    /* whether allocations must call prepare_request: `rounds` is set or `watched` is not 0 */
    bool prepares;
    /* regions of more than this many granules are kept wholly free where possible (whole.h) */
    uint64_t whole_above;
    /* granules of the largest request that the fast path of allocations serves; lower than usual
     * while a large region is wholly free (whole.h). 0: it serves none, because other rules of this
     * struct need checks that the fast path does not make, or a region is set apart */
    uint64_t plain_most;
};

struct region {
    /* the region's first address; in an unused record: the index of the next unused record */
    bfc_addr start;
    uint64_t size;    /* bytes of the region; 0: the record is unused */
    uint64_t bare;    /* in a paged region: bytes of addresses without a page */
    block_index head; /* the record before the region's first block, which links to that block */
    /* whether bfc_pool_share_region was called for the region; its pending blocks are then in no
     * bin, so that no allocation takes them */
    bool shared;
    bool held; /* whether the region must never be given back */
    /* whether the region is set apart (bfc_pool_set_apart): only allocations at a given address or
     * with BFC_ALLOCATE_APART may take its memory */
    bool apart;
    bool planned; /* whether bfc_pool_add_apart made the region */
    /* whether the pool took the region, while it had a planned one, for blocks without a planned
     * place (bfc_pool_gather_overflow) */
    bool overflow;
    /* whether the region is a reservation of addresses, parts of which have pages (pages.h) */
    bool paged;
    /* with rules.ages: the value of the pool's counter `lookups` (allocations) when the region last
     * became wholly free */
    uint64_t idle_since;
    /* the value that idle_since had when bfc_pool_trim_idle last found the region wholly free; if
     * it differs now, the region was used in between */
    uint64_t seen_idle;
    /* the time in nanoseconds since which every call of bfc_pool_trim_idle has found the region
     * wholly free and unused; 0: the last call found it in use, or there was no call yet */
    uint64_t seen_ns;
};

struct paging;

/*
 * Invariants of a pool (checked by bfc_pool_check):
 *
 * - Blocks tile their region without gap or overlap.
 * - No two neighbouring blocks of a region are both ready, both deferred, or both pending with the
 *   same fence.
 * - in_use + ready + pending + deferred = reserved. Each counter is the sum over its blocks;
 *   pending includes the awaited blocks.
 * - Each ready block is in one of four sets of bins: in `apart` if its region is set apart, in
 *   `whole` if it fills a large region, in `small` if its region is for small blocks and free
 *   blocks are not sorted, else in `ready`.
 * - With reuse_pending, each pending block is in the bins `pending`, except those of regions that
 *   are shared or set apart.
 * - Each pending, deferred or bare block is in the list for its state; each bare block is also in
 *   the bins `bare`; each live block is once in `map`, the hash map of addresses.
 * - Each region has a head: a record before its first block.
 * - The address index has a node for each head, and for each block that is_indexed selects.
 * - Each record belongs to a block or a head, or is vacant.
 */
struct bfc_pool {
    /* The first field, because functions in pool.h read `shown` by the pool's address alone. The
     * pool's lock is the field `lock` of `shown`. */
    union {
        struct pool_lock lock;
        struct bfc_pool_shown shown;
    };
    struct bfc_pool_stats *stats;
    struct block *blocks;
    struct block_detail *details;
    struct map map;
    /* first of the list of unused records, which are linked by `next` and `previous`; the value of
     * `previous` in the first one has no meaning */
    block_index vacant;
    uint32_t high;    /* all records in use have a lower index than this */
    uint32_t records; /* how many records are in use; record 0 does not count */
    /* when fewer records than this are in use, slots_settle moves some of them to lower indices, so
     * that memory at the end of the array can go back */
    uint32_t few_records;
    uint64_t next_id, last_id;
    bfc_fence completed; /* the highest fence known to be complete */
    /* the lowest fence of a pending block; UINT64_MAX: no block is pending */
    bfc_fence oldest_fence;
    struct block_list pending_list; /* pending blocks, in the order of their fences */
    struct block_list deferred_list, bare_list;
    /* how many blocks have become deferred, that is, were freed without a fence, since the pool
     * began */
    uint64_t deferred_arrivals;
    uint64_t awaited; /* how many blocks are awaited now (bfc_pool_free_awaited) */
    uint64_t readied; /* how many awaited blocks have become ready since the pool began */
    struct bins ready, pending;
    struct bins apart; /* ready blocks of regions that are set apart */
    /* ready blocks of regions for small blocks, where rules.small_most is not 0 */
    struct bins small;
    struct bins whole; /* ready blocks that fill a large region (whole.h) */
    struct bins bare;  /* blocks of addresses without a page; always sorted */
    struct address_index index;
    struct region *regions;
    region_index region_high, vacant_region;
    /* how many regions are shared with others (bfc_pool_share_region) */
    uint32_t shared_regions;
    /* how many regions are set apart; while there are any, rules.plain_most is 0 */
    uint32_t apart_regions;

    struct host_array block_memory, detail_memory, region_memory;
    struct bfc_pool_config config;
    struct rules rules;
    struct bfc_upstream upstream;
    /* Only the thread that holds this lock asks the upstream for regions and pages. It is taken
     * before `lock`, and never while `lock` is held. */
    pthread_mutex_t growth_lock;
    /* atomic: the thread that holds growth_lock, 0 if none; how often it has locked it again */
    uintptr_t growth_holder;
    unsigned growth_again;
    struct bfc_ask ask; /* what the holder of growth_lock passes to the upstream's functions */
    /* the error code of the upstream's `release` when a region was given back last; 0: no error */
    int release_error;
    /* policies bfc and tf: the number of bytes from which growth_next computes the size of the next
     * region */
    uint64_t step;
    /* policy tf: whether a request above `step` has just raised `step`, so that it is not doubled
     * as well when the region is taken */
    bool step_raised;
    uint64_t releasing; /* bytes of regions and pages that are being given back */
    /* the most bytes that blocks without a planned place have ever taken at one time */
    uint64_t overflow_wanted;
    /* whether the next region is to have overflow_wanted bytes, so that it can hold all blocks
     * without a planned place */
    bool gather_overflow;
    bool preallocated;
    /* whether other jobs have asked for memory; then the pool avoids splitting large wholly free
     * regions even where growing costs much */
    bool wanted_elsewhere;
    bool gives_surplus; /* whether a thread is between the calls that begin and end giving back */
    uint64_t surplus_releases;
    /* how many bytes were reserved, and the value of the counter `frees`, when a free gave regions
     * back last; given_from is 0 once in_vain was changed for that time */
    uint64_t given_from, frees_given;
    uint64_t in_vain; /* how often regions went back in vain (surplus.c) */
    /* how many bytes the next region must have at least, because it replaces smaller ones that were
     * given back to be merged (surplus.c); 0: there is no such need */
    uint64_t merge_bytes;
    /* the value of the counter reserve_calls when idle regions were last merged */
    uint64_t merge_calls;
    uint64_t frees_grown; /* the value of the counter `frees` when the pool last grew */
    /* bytes of the regions that the pool took only so that other regions stay wholly free */
    uint64_t taken_to_keep;
    struct paging *paging; /* state of a pool with pages (paging.h); NULL: the pool has none */
    /* with rules.ages: counts allocations, failed ones included, but not those at a given address
     * nor those with BFC_ALLOCATE_HIT_ONLY that found nothing */
    uint64_t lookups;
    /* the end of the memory that bfc_pool_take_notes was given, into which the pool writes a record
     * of each allocation and free */
    char *notes_end;
    /* how many bytes of the memory that ends at notes_end are still unused, and how many it has in
     * all */
    uint64_t notes_left, notes_wanted;
    struct bfc_pool_stats own_stats;
};

/* Changes the count of deferred bytes by an atomic store, because bfcpreload's free compares the
 * count with BFC_PENDING_BUDGET without the lock. */
static inline void pool_count_deferred(struct bfc_pool *pool, uint64_t change) {
    bfc_store_relaxed(&pool->stats->deferred, pool->stats->deferred + change);
}

/* Writes a record of an allocation of `bytes`, or of a free if `bytes` is 0, into the memory that
 * bfc_pool_take_notes was given. notes_left must not be 0, so that there is room for the record. */
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

/* Sets the id of block b of `size` bytes, and notes how many bytes the program requested and the
 * fence under which b was handed out. */
static inline void block_identify(struct bfc_pool *pool, block_index b, uint64_t size, uint64_t id,
                                  uint64_t requested, bfc_fence handed_out) {
    uint64_t slack = size - requested;
    if (UNLIKELY(slack >= MUCH_SLACK || handed_out != BFC_NO_FENCE)) {
        pool->details[b] = (struct block_detail){.slack = slack, .handed_out = handed_out};
        slack = MUCH_SLACK;
    }
    pool->blocks[b].identity = id << SLACK_BITS | slack;
}

/* Returns the fewest granules that hold `bytes` bytes; `bytes` must not be 0. */
static inline uint64_t granules_to_hold(uint64_t bytes) {
    return ((bytes - 1) >> BFC_GRANULE_BITS) + 1;
}

/* Rounds a size of BFC_LARGE or more up to a multiple of BFC_ALIGNMENT; returns smaller ones as
 * they are. When a block of BFC_LARGE or more is cut off the start of another one, the rest then
 * starts at such a multiple too, so a block of any size can be cut off it. */
static inline uint64_t round_large(uint64_t granules) {
    return granules < LARGE_GRANULES ? granules : (granules + MOST_LEAD) & ~MOST_LEAD;
}

/* Returns how many granules at the start of block b must stay unused if a block of `granules` is
 * cut from b, because the new block must start at a multiple of BFC_ALIGNMENT. Returns 0 if it need
 * not, or if b is the first block of its region. */
static inline uint64_t block_lead(const struct bfc_pool *pool, block_index b, uint64_t granules) {
    const struct block *at = &pool->blocks[b];
    uint64_t lead = -block_start(at) & (BFC_ALIGNMENT - 1);
    if (!bfc_starts_aligned(granules) || block_state(&pool->blocks[at->previous]) == BLOCK_HEAD)
        return 0;
    return lead >> BFC_GRANULE_BITS;
}

static inline bool block_has_room(const struct bfc_pool *pool, block_index b, uint64_t granules) {
    return block_granules(&pool->blocks[b]) >= granules + block_lead(pool, b, granules);
}

/* One allocation: what is requested, the bfc_allocate_flags, and where the result is written. */
struct request {
    uint64_t bytes, granules;
    unsigned flags;
    struct bfc_block_info *out;
};

static inline uint64_t request_size(const struct request *request) {
    return request->granules << BFC_GRANULE_BITS;
}

/* Whether the calling thread holds growth_lock, and so is inside a call of the upstream, in which a
 * tool's callback has called the pool. The pool must not grow or give pages back then. */
static inline bool growth_is_under_way(struct bfc_pool *pool) {
    return bfc_load_relaxed(&pool->growth_holder) == bfc_thread_identity();
}

/* growth_lock takes the lock of that name, which the thread that holds it may take again, and must
 * not be called under `lock`; growth_unlock releases it. */
static inline void growth_lock(struct bfc_pool *pool) {
    if (growth_is_under_way(pool)) {
        pool->growth_again++;
        return;
    }
    pthread_mutex_lock(&pool->growth_lock);
    bfc_store_relaxed(&pool->growth_holder, bfc_thread_identity());
}

static inline void growth_unlock(struct bfc_pool *pool) {
    if (pool->growth_again) {
        pool->growth_again--;
        return;
    }
    bfc_store_relaxed(&pool->growth_holder, 0);
    pthread_mutex_unlock(&pool->growth_lock);
}

static inline void pool_enter(struct bfc_pool *pool) {
    pool_lock(&pool->lock);
    /* Only the holder of the pool's lock writes `sequence`. The barrier makes readers see that it
     * is odd before they see any later change. */
    bfc_add_alone(&pool->stats->sequence, 1);
    bfc_barrier_release();
}

static inline void pool_leave(struct bfc_pool *pool) {
    bfc_add_alone(&pool->stats->sequence, 1);
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

/* Whether an allocation with BFC_ALLOCATE_PENDING may take block b while b is pending. */
static inline bool is_open_pending(const struct bfc_pool *pool, block_index b) {
    return !block_is_apart(&pool->blocks[b]) && !is_shared(pool, b);
}

/* Whether block b is in the bins `pending` while b is pending. */
static inline bool is_reused_pending(const struct bfc_pool *pool, block_index b) {
    return pool->config.reuse_pending && is_open_pending(pool, b);
}

/* Returns the bins to which block b belongs when it is ready. `plain` is a compile-time constant. A
 * caller may pass true only while rules.plain_most is not 0: then all ready blocks are in one set
 * of bins, and the compiler drops the code for the others. */
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

/* Returns the bins to which block b belongs in its present state; NULL: it belongs in none. */
static inline struct bins *bins_of(struct bfc_pool *pool, block_index b) {
    enum block_state state = block_state(&pool->blocks[b]);
    if (state == BLOCK_READY)
        return ready_bins(pool, b, false);
    if (state == BLOCK_PENDING)
        return is_reused_pending(pool, b) ? &pool->pending : NULL;
    return state == BLOCK_BARE ? &pool->bare : NULL;
}

/* Returns the list to which block b belongs in its present state; NULL: it belongs in none. */
static inline struct block_list *list_of(struct bfc_pool *pool, block_index b) {
    enum block_state state = block_state(&pool->blocks[b]);
    if (state == BLOCK_PENDING)
        return &pool->pending_list;
    if (state == BLOCK_DEFERRED)
        return &pool->deferred_list;
    return state == BLOCK_BARE ? &pool->bare_list : NULL;
}

#endif
