/*
 * bfc_pool: a best-fit, coalescing pool of device memory.
 *
 * The pool deals in addresses and sizes alone. It never touches the memory that it manages, and
 * knows neither CUDA nor the operating system: whatever it needs from outside comes through
 * struct bfc_source, so tests put made-up addresses and a hand-moved clock there.
 *
 * Regions (taken from the source) are cut into blocks, which tile them without gap or overlap. A
 * block is live (the program holds it) or free; a free one is
 *   clean   safe to hand out at once,
 *   dirty   freed under a mark that is not known to be complete: work under way may still use it,
 *   limbo   freed, but not marked yet (bfc_pool_mark_limbo gives all such blocks a mark).
 *
 * Marks are numbers that the caller draws in rising order, one pool apart from another; 0 is no
 * mark. Completion is of a prefix: once mark m is complete, so is every mark below it. So joining
 * the marks of two merged blocks is taking the higher one, and one number says which blocks are
 * clean.
 *
 * Thread-safety: every function may be called from any thread at any time, except create and
 * destroy. The pool has one lock, held for list surgery only: no function of the source is called
 * under it.
 */
#ifndef BFC_POOL_POOL_H
#define BFC_POOL_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "pool/stats.h"

/* An address on the device. Opaque: the pool only adds to it and compares it. */
typedef uint64_t bfc_addr;

typedef uint64_t bfc_mark;
#define BFC_NO_MARK ((bfc_mark)0)
#define BFC_LIMBO_MARK UINT64_MAX

/* Sizes and addresses of all pools are multiples of this many bytes: the least granule. */
#define BFC_GRANULE ((uint64_t)256)

enum bfc_status {
    BFC_OK = 0,
    BFC_OUT_OF_MEMORY,   /* nothing fits and the device has no more to give */
    BFC_SOURCE_FAILED,   /* the source failed for another reason than a lack of memory */
    BFC_INVALID_POINTER, /* inside one of the pool's regions, but not the start of a live block */
    BFC_UNKNOWN_POINTER, /* in none of the pool's regions */
    BFC_INVALID_SIZE,    /* zero */
    BFC_NO_HOST_MEMORY,  /* the host has no memory for the pool's own records */
};

enum bfc_reserve_result {
    BFC_RESERVED, /* *start is set */
    BFC_REFUSED,  /* not enough memory: a smaller request may succeed */
    BFC_FAILED,   /* anything else: asking again is useless */
};

/*
 * The outside world. Every function gets `context` first, may block, and is called without the
 * pool's lock, possibly by several threads at once. poll, wait and ask_neighbours may be NULL.
 */
struct bfc_source {
    void *context;
    /* Takes `bytes` (a multiple of the granule) from the device; the start must be one too. */
    enum bfc_reserve_result (*reserve)(void *context, uint64_t bytes, bfc_addr *start);
    /* Gives back a whole region, exactly as it was reserved. */
    void (*release)(void *context, bfc_addr start, uint64_t bytes);
    /* The highest mark known to be complete, without blocking, at a bounded cost. NULL: all are. */
    bfc_mark (*poll)(void *context);
    /*
     * Blocks until `mark` is complete or `timeout_ns` has passed (UINT64_MAX: no limit). Returns
     * the highest mark known to be complete.
     */
    bfc_mark (*wait)(void *context, bfc_mark mark, uint64_t timeout_ns);
    /* Asks others on the device to give back `bytes`; returns how many came. */
    uint64_t (*ask_neighbours)(void *context, uint64_t bytes);
    /* Nanoseconds on a clock that never goes back. */
    uint64_t (*now)(void *context);
};

enum bfc_policy { BFC_POLICY_BFC, BFC_POLICY_TF, BFC_POLICY_PYTORCH };
enum bfc_growth { BFC_GROWTH_DOUBLE, BFC_GROWTH_FIXED, BFC_GROWTH_EXACT, BFC_GROWTH_PREALLOCATE };

/* Zero-filled except where bfc_pool_config_default sets otherwise. Sizes in bytes. */
struct bfc_pool_config {
    enum bfc_policy policy;
    enum bfc_growth growth;
    uint64_t growth_size;  /* first (double) or every (fixed) region */
    uint64_t growth_max;   /* largest step of double */
    uint64_t preallocate;  /* what preallocate takes at the first allocation */
    uint64_t limit;        /* most that may be reserved; UINT64_MAX: no limit */
    double split_ratio;    /* a block this many times the request is split; 0: as the policy does */
    uint64_t split_slack;  /* and one that leaves so much; UINT64_MAX: as the policy does */
    uint64_t max_split;    /* larger blocks are not split; UINT64_MAX: all may be */
    uint64_t roundup;      /* divisions of a power of two that sizes are rounded to; 0, 1: none */
    uint64_t gc_threshold; /* reserved bytes above which idle regions go back before the pool grows;
                              UINT64_MAX: never */
    bool track_idle;       /* bfc_pool_trim_idle will be called */
    bool reuse_dirty;      /* allocations may be BFC_ALLOCATE_DIRTY; else that flag means nothing */
    uint64_t dirty_budget; /* lazy: dirty bytes up to which the pool grows rather than waits */
    struct bfc_pool_stats *stats; /* where to count; NULL: in the pool itself. Outlives the pool. */
};

/* The defaults: policy bfc, growth double from 2 MiB to steps of 1 GiB, no limit. */
void bfc_pool_config_default(struct bfc_pool_config *config);

/* What is known of a block. */
struct bfc_block_info {
    bfc_addr start;
    uint64_t size;        /* rounded, in bytes */
    uint64_t requested;   /* as asked, in bytes; 0 when the block is free */
    uint64_t id;          /* unique among all blocks that the process ever allocated; 0 when free */
    uint64_t free_before; /* free bytes just before the block, in its region */
    uint64_t free_after;  /* and just after it */
    bfc_addr region_start;
    uint64_t region_size;
    bfc_mark mark; /* allocate: the mark under which it was handed out dirty, or BFC_NO_MARK */
    bool live;
};

/* How one allocation may be served. */
enum bfc_allocate_flags {
    BFC_ALLOCATE_HIT_ONLY = 1, /* never call the source, nor search for long; if nothing fits,
                                  nothing is counted */
    BFC_ALLOCATE_DIRTY = 2, /* dirty blocks may be handed out; the caller orders later work behind
                               the mark that comes back (ordered mode) */
};

struct bfc_pool;

/*
 * The pool's granule in bytes: sizes are rounded up to it, and blocks aligned to it, if the
 * source's regions are. 256 for policy `tf`, else 512, as cudaMalloc does. A block or region has
 * 2^32 granules at most: 1 TiB for `tf`, else 2 TiB.
 */
uint64_t bfc_pool_granule(const struct bfc_pool *pool);

/*
 * Makes an empty pool; nothing is reserved before the first allocation. A `config` of NULL stands
 * for the defaults; it and the source's functions are copied. Returns BFC_OK or BFC_NO_HOST_MEMORY.
 */
enum bfc_status bfc_pool_create(struct bfc_pool **pool, const struct bfc_pool_config *config,
                                const struct bfc_source *source);

/*
 * Forgets the pool and frees its host memory. With `release`, every region goes back to the source
 * first, live blocks or not; without, the device is not told (its context has ended). NULL is fine.
 */
void bfc_pool_destroy(struct bfc_pool *pool, bool release);

/*
 * Hands out a block of at least `bytes` (1 to UINT64_MAX; rounding is checked for overflow). On
 * success `block` (never NULL) tells about it: start, size, requested, id, mark; else it is
 * untouched. Returns BFC_OK, BFC_INVALID_SIZE, BFC_OUT_OF_MEMORY, BFC_SOURCE_FAILED or
 * BFC_NO_HOST_MEMORY.
 */
enum bfc_status bfc_pool_allocate(struct bfc_pool *pool, uint64_t bytes, unsigned flags,
                                  struct bfc_block_info *block);

/*
 * Takes back the live block that starts at `start`: clean with BFC_NO_MARK (or a mark that is known
 * to be complete), in limbo with BFC_LIMBO_MARK, else dirty.
 * Returns BFC_OK, BFC_INVALID_POINTER or BFC_UNKNOWN_POINTER; in the last two nothing has changed.
 */
enum bfc_status bfc_pool_free(struct bfc_pool *pool, bfc_addr start, bfc_mark mark);

/*
 * Cuts a live block in two: the one at `start` is as if `bytes` had been asked for, what is behind
 * it becomes a live block of its own, handed out under the same mark; there is none if the size
 * fits exactly. Counts as an allocation. Returns BFC_OK, BFC_INVALID_SIZE (0, or more than the
 * block has), BFC_INVALID_POINTER, BFC_UNKNOWN_POINTER or BFC_NO_HOST_MEMORY; but for BFC_OK
 * nothing has changed.
 */
enum bfc_status bfc_pool_carve(struct bfc_pool *pool, bfc_addr start, uint64_t bytes);

/* How many blocks ever came into limbo. To be asked for before a mark for them is recorded. */
uint64_t bfc_pool_limbo_arrivals(struct bfc_pool *pool);

/*
 * Gives this mark to the limbo blocks that had come when there were so many arrivals; not to those
 * that came later, whose last work may be later than the mark. UINT64_MAX: to all. O(limbo blocks)
 * under the lock.
 */
void bfc_pool_mark_limbo(struct bfc_pool *pool, bfc_mark mark, uint64_t arrivals);

/* Says that all marks up to `mark` are complete. */
void bfc_pool_complete(struct bfc_pool *pool, bfc_mark mark);

/* The block, live or free, that holds `address`. False: it is in none of the pool's regions. */
bool bfc_pool_find(struct bfc_pool *pool, bfc_addr address, struct bfc_block_info *block);

/*
 * Says that the region of `address` was shown to others (IPC, dma-buf, registration): its dirty
 * blocks are never handed out by BFC_ALLOCATE_DIRTY, and while `held` it is never given back.
 */
void bfc_pool_share_region(struct bfc_pool *pool, bfc_addr address, bool held);

/*
 * Gives wholly free and clean regions back to the source, largest first, until at least `bytes`
 * went or none is left; returns how many bytes went. UINT64_MAX: all.
 */
uint64_t bfc_pool_trim(struct bfc_pool *pool, uint64_t bytes);

/*
 * Gives back the regions that have been wholly free and clean for `idle_ns`, as far as calls of
 * this function could see: call it at intervals, in a pool made with track_idle. Returns how many
 * bytes went.
 */
uint64_t bfc_pool_trim_idle(struct bfc_pool *pool, uint64_t idle_ns);

/* A consistent copy of the counters, largest_free brought up to date. */
void bfc_pool_read_stats(struct bfc_pool *pool, struct bfc_pool_stats *stats);

/*
 * Looks for a violated invariant. Returns NULL, or a sentence (static storage) that names it.
 * O(blocks) under the lock: for tests and debugging.
 */
const char *bfc_pool_check(struct bfc_pool *pool);

/* Calls `visit` for each block in address order, under the lock: it must not call the pool. */
void bfc_pool_visit(struct bfc_pool *pool,
                    void (*visit)(void *context, const struct bfc_block_info *block),
                    void *context);

#endif
