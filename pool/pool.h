/*
 * bfc_pool: a best-fit, coalescing pool of device memory.
 *
 * The pool never touches the memory that it manages, and knows neither CUDA nor the operating
 * system: whatever it needs from outside comes through struct bfc_upstream.
 *
 * Regions (taken from the upstream) are cut into blocks, which tile them without gap or overlap. A
 * block is live (the program holds it) or free; a free one is
 * - ready: safe to hand out at once,
 * - pending: freed under a fence that is not known to be complete, so work may still use the block,
 * - deferred: freed without a fence yet (bfc_pool_fence_deferred gives all such blocks one),
 * - awaited: freed in the order of a stream, under no fence, until the caller calls bfc_pool_ready.
 *
 * Fences are numbers that the caller draws in rising order, for each pool by itself; 0 is no fence.
 * Fences complete in order: once fence m is complete, so is every fence below it.
 *
 * Thread-safety: every function may be called from any thread at any time, except create and
 * destroy. No function of the upstream is called under the pool's lock.
 */
#ifndef BFC_POOL_POOL_H
#define BFC_POOL_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "pool/stats.h"

/* An address on the device. Opaque: the pool only adds to it and compares it. */
typedef uint64_t bfc_addr;

typedef uint64_t bfc_fence;
#define BFC_NO_FENCE ((bfc_fence)0)
#define BFC_DEFERRED_FENCE UINT64_MAX

/* Sizes and addresses are multiples of this many bytes, as cudaMalloc's are, for textures. */
#define BFC_GRANULE_BITS 9
#define BFC_GRANULE ((uint64_t)1 << BFC_GRANULE_BITS)

/* Blocks of at least this many bytes start at a multiple of it, since a dma-buf consists of whole
 * pages of the host. Only the first block of a region starts where the upstream has put the
 * region. */
#define BFC_LARGE ((uint64_t)1 << 16)

enum bfc_status {
    BFC_OK = 0,
    BFC_OUT_OF_MEMORY,   /* no free block fits, and the device has no more to give */
    BFC_UPSTREAM_FAILED, /* the upstream failed for another reason than a lack of memory */
    BFC_INVALID_POINTER, /* inside one of the pool's regions, but not the start of a live block */
    BFC_UNKNOWN_POINTER, /* the address is in none of the pool's regions */
    BFC_INVALID_SIZE,    /* the size is zero */
    BFC_NO_HOST_MEMORY,  /* the host has no memory for the pool's own records */
    BFC_ASLEEP,          /* the pages are frozen, and could not be thawed (pool/pages.h) */
};

enum bfc_reserve_result {
    BFC_RESERVED, /* memory was reserved; its address is in *start */
    BFC_REFUSED,  /* not enough memory: a smaller request may succeed */
    BFC_FAILED,   /* anything else: asking again is useless */
};

struct bfc_page_calls;

/* Passed from an allocation to the upstream while the allocation makes its pool grow. */
struct bfc_ask {
    bool is_first; /* the allocation had BFC_ALLOCATE_FIRST */
    int error;     /* the code that the allocation returns; the upstream sets it when it refuses */
};

/*
 * The outside world. Every function gets `context` first, may block, and is called without the
 * pool's lock, possibly by several threads at once. poll and wait may be NULL.
 */
struct bfc_upstream {
    void *context;
    /* Takes `bytes` from the device; `bytes` and the start are multiples of the granule. */
    enum bfc_reserve_result (*reserve)(void *context, uint64_t bytes, bfc_addr *start,
                                       struct bfc_ask *ask);
    /* Gives a whole region back, exactly as it was reserved. False: the region stays the pool's.
     * `*error` is the upstream's code, for bfc_pool_release_one. */
    bool (*release)(void *context, bfc_addr start, uint64_t bytes, int *error);
    /* Returns the highest fence known to be complete, without blocking, at a bounded cost. NULL:
     * every fence is complete. */
    bfc_fence (*poll)(void *context);
    /*
     * Blocks until `fence` is complete or `timeout_ns` has passed (UINT64_MAX: no limit). Returns
     * the highest fence known to be complete. With BFC_DEFERRED_FENCE it makes the deferred blocks
     * ready if that is possible, by whatever wait that needs. With BFC_NO_FENCE it makes every
     * awaited block ready whose stream had completed the work before the free; if there was none,
     * it blocks until there is one.
     */
    bfc_fence (*wait)(void *context, bfc_fence fence, uint64_t timeout_ns);
    /* Nanoseconds on a clock that never goes back. */
    uint64_t (*now)(void *context);
    /* The calls for a pool with pages (pages.h), copied; NULL: a pool with regions alone. With
     * pages, reserve and release may be NULL, and are called only after one of these calls failed
     * for another reason than a lack of memory. */
    const struct bfc_page_calls *pages;
};

enum bfc_policy { BFC_POLICY_BFC, BFC_POLICY_TF, BFC_POLICY_PYTORCH };
enum bfc_growth { BFC_GROWTH_DOUBLE, BFC_GROWTH_FIXED, BFC_GROWTH_EXACT, BFC_GROWTH_PREALLOCATE };

/* How large new pages are (pool/pages.h). */
enum bfc_page_rule {
    BFC_PAGE_AUTO, /* as `step` while free blocks lie together, ever smaller the more they are
                      scattered */
    BFC_PAGE_FIT,  /* at most a 64th of the block that they are made for */
    BFC_PAGE_STEP, /* each step of growth is one page */
};

/* Zero-filled except where bfc_pool_config_default sets otherwise. Sizes in bytes. */
struct bfc_pool_config {
    enum bfc_policy policy;
    enum bfc_growth growth;
    uint64_t growth_size; /* bytes of the first region (growth double) or of each (fixed) */
    uint64_t growth_max;  /* the largest step of growth double */
    uint64_t preallocate; /* the first region of growth preallocate */
    uint64_t limit;       /* most that may be reserved; UINT64_MAX: no limit */
    /* a block is split if it is this many times as large as the request; 0: as the policy does */
    double split_ratio;
    /* a block is split if it exceeds the request by this many bytes; UINT64_MAX: as the policy
     * does */
    uint64_t split_slack;
    uint64_t max_split; /* blocks from this size on are not split; UINT64_MAX, or with pages: all
                           may be */
    /* how many sizes there are from one power of two to the next, to which sizes are rounded up; 0,
     * 1: not at all */
    uint64_t roundup;
    uint64_t gc_threshold; /* reserved bytes above which idle regions go back before the pool grows;
                              UINT64_MAX: never */
    uint64_t keep_whole;   /* a wholly free region of more bytes than this is cut for a small block
                              only if the pool cannot grow at little cost; UINT64_MAX: off */
    /* whether giving a region back may wait for the device: then a request takes a block that its
     * policy would refuse before regions are given back */
    bool release_waits;
    double page_slack;  /* with pages: while less than (1 + page_slack) times the most that was
                           ever requested is reserved, new pages are made, none are moved */
    uint64_t page_most; /* with pages: the largest page */
    enum bfc_page_rule page_rule;
    bool track_idle; /* whether bfc_pool_trim_idle will be called */
    /* whether allocations may hand out pending blocks; if not, BFC_ALLOCATE_PENDING means
     * nothing */
    bool reuse_pending;
    /* in mode lazy: while at most this many bytes are pending, the pool grows rather than waits */
    uint64_t pending_budget;
    /* whether an allocation fails as soon as the device refuses, without waits and without giving
     * regions back */
    bool no_last_resorts;
    /* where the pool counts, which must outlive the pool; NULL: in memory of its own */
    struct bfc_pool_stats *stats;
};

/* The defaults: policy bfc, growth double from 2 MiB to steps of 1 GiB, no limit. */
void bfc_pool_config_default(struct bfc_pool_config *config);

/* A block, as the pool describes it to the caller. */
struct bfc_block_info {
    bfc_addr start;
    uint64_t size; /* bytes of the block, as rounded */
    /* bytes that the program asked for; 0: the block is free, or a rest that bfc_pool_carve left */
    uint64_t requested;
    uint64_t id; /* unique among all blocks that this process ever allocated; 0 for a free block */
    uint64_t free_before; /* free bytes just before the block, in its region */
    uint64_t free_after;  /* free bytes just after the block, in its region */
    bfc_addr region_start;
    uint64_t region_size;
    bfc_fence fence; /* after an allocation: the fence under which the block was handed out pending,
                        or BFC_NO_FENCE */
    int error; /* the code that the upstream gave last, if the allocation has failed; 0: none */
    bool live;
    /* whether it is a range of addresses without a page (pages.h), which is neither live nor
     * free */
    bool bare;
    /* whether the region is a reservation of addresses, which may have pages behind them */
    bool paged;
    /* whether the region is one of bfc_pool_add_apart, with memory behind all of it */
    bool planned;
};

/* How one allocation may be served. */
enum bfc_allocate_flags {
    BFC_ALLOCATE_HIT_ONLY =
        1, /* neither call the upstream nor search for long; a miss is not counted */
    /* the allocation may hand out a pending block; the caller makes later work wait for the block's
     * fence (mode ordered) */
    BFC_ALLOCATE_PENDING = 2,
    BFC_ALLOCATE_UNCOUNTED = 4, /* a failure does not count as out of memory: the caller looks
                                   further, and calls bfc_pool_count_out_of_memory in the end */
    /* this repeats an allocation with BFC_ALLOCATE_UNCOUNTED that failed; if it succeeds, the
     * caller calls bfc_pool_count_saved */
    BFC_ALLOCATE_AGAIN = 8,
    BFC_ALLOCATE_APART = 16, /* before the pool grows, ready blocks of regions that are set apart
                                may be handed out */
    BFC_ALLOCATE_FIRST = 32, /* the flag is_first of struct bfc_ask, for the upstream */
};

struct bfc_pool;

/*
 * Makes an empty pool; nothing is reserved before the first allocation. A NULL `config` means the
 * defaults; it and the upstream's functions are copied. Returns BFC_OK or BFC_NO_HOST_MEMORY.
 */
enum bfc_status bfc_pool_create(struct bfc_pool **pool, const struct bfc_pool_config *config,
                                const struct bfc_upstream *upstream);

/*
 * Forgets the pool and frees its host memory. With `release`, every region goes back to the
 * upstream first, even with live blocks in it; without, the upstream is not called, since the
 * context has ended. Pages belong to the device: with `release` they go back even after the
 * context's end. `pool` may be NULL.
 */
void bfc_pool_destroy(struct bfc_pool *pool, bool release);

/*
 * Hands out a block of at least `bytes` (1 to UINT64_MAX; rounding is checked for overflow). On
 * success start, size, requested, id and fence of `block` (never NULL) are set; else only its
 * `error`. Returns BFC_OK, BFC_INVALID_SIZE, BFC_OUT_OF_MEMORY, BFC_UPSTREAM_FAILED,
 * BFC_NO_HOST_MEMORY or BFC_ASLEEP.
 */
enum bfc_status bfc_pool_allocate(struct bfc_pool *pool, uint64_t bytes, unsigned flags,
                                  struct bfc_block_info *block);

#define BFC_PLACE_HINTS 2

/*
 * Hands out the block that starts at `at`, of just as many bytes as the pool rounds `bytes` to
 * (whole granules, or BFC_LARGE), if all of that is free: ready, or with BFC_ALLOCATE_PENDING also
 * pending, under the highest of the fences. The range may span several free blocks of any region.
 * No other rule of a policy applies. The upstream's poll alone is called, and with
 * BFC_ALLOCATE_HIT_ONLY not even that; the other flags mean nothing. `below` (never NULL, 0 at
 * first) holds hints for the same `at`, which the pool updates, so that it need not search when the
 * blocks before the place are as they were one of the last times. Counts as a hit. Returns BFC_OK,
 * BFC_INVALID_SIZE, BFC_INVALID_POINTER (`at` is not a multiple of the granule; or of BFC_LARGE,
 * for a large block that is not the first of its region), BFC_UNKNOWN_POINTER (not all in one
 * region), BFC_OUT_OF_MEMORY (a part is in use, or may still be) or BFC_NO_HOST_MEMORY; but for
 * BFC_OK nothing has changed.
 */
enum bfc_status bfc_pool_allocate_at(struct bfc_pool *pool, bfc_addr at, uint64_t bytes,
                                     unsigned flags, bfc_addr below[BFC_PLACE_HINTS],
                                     struct bfc_block_info *block);

/*
 * Hands out memory from the best fitting ready block of the regions that are set apart. Counts as a
 * hit. Returns BFC_OK, BFC_INVALID_SIZE or BFC_OUT_OF_MEMORY (nothing fits).
 */
enum bfc_status bfc_pool_allocate_apart(struct bfc_pool *pool, uint64_t bytes,
                                        struct bfc_block_info *block);

/*
 * Takes a region of `bytes`, a multiple of the granule, from the upstream, and sets it apart: only
 * bfc_pool_allocate_at, bfc_pool_allocate_apart and BFC_ALLOCATE_APART hand out memory of the
 * region, until bfc_pool_set_apart, or an allocation that would fail, opens it to all. An
 * allocation that would fail even then gets memory of the region that its policy would refuse.
 *
 * In a pool with pages the region is a reservation of addresses with pages behind all of it. Once
 * the region is open to all, or when trimming finds nothing else, its ready pages go elsewhere; a
 * later call for at most its size gives it pages again. Where the device refuses pages, the
 * upstream's reserve serves the call.
 *
 * On success `*start` (never NULL) is the region's address. Returns BFC_OK, BFC_INVALID_SIZE,
 * BFC_OUT_OF_MEMORY (the limit or the device), BFC_UPSTREAM_FAILED, BFC_NO_HOST_MEMORY or
 * BFC_ASLEEP.
 */
enum bfc_status bfc_pool_add_apart(struct bfc_pool *pool, uint64_t bytes, bfc_addr *start);

/* Sets the region of `address` apart, or opens it to all. O(its blocks) under the lock. False: the
 * address is in none of the pool's regions, or in a reservation of addresses that
 * bfc_pool_add_apart did not make. */
bool bfc_pool_set_apart(struct bfc_pool *pool, bfc_addr address, bool apart);

/* Gives all wholly free and ready regions back, except the one that holds `planned` (0: none), and
 * all ready pages outside regions that are set apart. Returns how many bytes went. */
uint64_t bfc_pool_trim_unplanned(struct bfc_pool *pool, bfc_addr planned);

/*
 * Blocks that have no place in a region of bfc_pool_add_apart should share one further region, as
 * large as the most that such blocks took at one time. Where several regions hold them, gives the
 * smaller idle ones back; with growth `double` the next region that is needed has that size.
 * Returns how many bytes went.
 */
uint64_t bfc_pool_gather_overflow(struct bfc_pool *pool);

/* Counts an allocation with BFC_ALLOCATE_UNCOUNTED that failed for good, or one with
 * BFC_ALLOCATE_AGAIN that succeeded. */
void bfc_pool_count_out_of_memory(struct bfc_pool *pool);
void bfc_pool_count_saved(struct bfc_pool *pool);

/* Counts a free that the caller refuses because no live block starts at `start`. */
void bfc_pool_count_invalid_free(struct bfc_pool *pool, bfc_addr start);

/*
 * Takes back the live block that starts at `start`: ready with BFC_NO_FENCE (or a fence that is
 * known to be complete), deferred with BFC_DEFERRED_FENCE, else pending. Returns BFC_OK,
 * BFC_INVALID_POINTER or BFC_UNKNOWN_POINTER; in the last two nothing has changed.
 */
enum bfc_status bfc_pool_free(struct bfc_pool *pool, bfc_addr start, bfc_fence fence);

/*
 * bfc_pool_free with BFC_NO_FENCE in two steps, for a caller that waits in between:
 * bfc_pool_glimpse tells whether a live block starts at `start`, nearly always without the lock;
 * bfc_pool_free_ready frees it. If another thread has freed the block since, bfc_pool_free_ready
 * answers as bfc_pool_free does.
 */
struct bfc_glimpse {
    uint32_t block; /* record of the live block that starts at `start`; 0: there is none */
    uint32_t place; /* where the pool's map has the block */
    bool surplus;   /* whether bfc_pool_release_surplus should be called */
};
struct bfc_glimpse bfc_pool_glimpse(struct bfc_pool *pool, bfc_addr start);
enum bfc_status bfc_pool_free_ready(struct bfc_pool *pool, bfc_addr start, struct bfc_glimpse seen);

/* To be called after the wait for the device before a free, if bfc_pool_glimpse found that the pool
 * has a surplus: gives idle regions back if that is due (regions/surplus.c). Returns how many bytes
 * went. */
uint64_t bfc_pool_release_surplus(struct bfc_pool *pool);

static inline bool bfc_pool_is_live(struct bfc_pool *pool, bfc_addr start) {
    return bfc_pool_glimpse(pool, start).block != 0;
}

/* Takes the live block back under no fence: it is awaited until bfc_pool_ready is called for it.
 * Returns what bfc_pool_free would return. */
enum bfc_status bfc_pool_free_awaited(struct bfc_pool *pool, bfc_addr start);

/* Treats the awaited block that starts at `start` as if it had been freed with this fence. */
void bfc_pool_ready(struct bfc_pool *pool, bfc_addr start, bfc_fence fence);

/*
 * Splits a live block in two: the one at `start` becomes as if `bytes` had been requested, the rest
 * becomes a live block of its own, handed out under the same fence, and counts as an allocation. If
 * the size fits exactly there is no rest. Returns BFC_OK, BFC_INVALID_SIZE (0, more than the block
 * has, or BFC_LARGE and more where such a block may not start), BFC_INVALID_POINTER,
 * BFC_UNKNOWN_POINTER or BFC_NO_HOST_MEMORY; except for BFC_OK nothing has changed.
 */
enum bfc_status bfc_pool_carve(struct bfc_pool *pool, bfc_addr start, uint64_t bytes);

/* A note that a block was handed out or taken back. */
struct bfc_pool_note {
    uint64_t id;    /* the block's id */
    uint64_t bytes; /* bytes that the program requested; 0: the block was taken back */
    /* who allocated the block, as a number that no other living thread has; not set when the block
     * was taken back */
    uint64_t thread;
};

/*
 * Notes the next `most` allocations and frees in `notes`, in their order; a `most` of 0 ends the
 * noting. `notes` must stay valid until the next such call. What bfc_pool_carve does is not noted.
 */
void bfc_pool_take_notes(struct bfc_pool *pool, struct bfc_pool_note *notes, uint64_t most);

/* Returns how many notes were written since the last call of bfc_pool_take_notes. */
uint64_t bfc_pool_notes(struct bfc_pool *pool);

/* Returns how many blocks have ever been deferred. Call it before recording a fence for them. */
uint64_t bfc_pool_deferred_arrivals(struct bfc_pool *pool);

/*
 * Gives this fence to the deferred blocks that had arrived when the count was `arrivals`; not to
 * later ones, whose last work may be later than the fence. UINT64_MAX: to all. O(deferred blocks)
 * under the lock.
 */
void bfc_pool_fence_deferred(struct bfc_pool *pool, bfc_fence fence, uint64_t arrivals);

/* Notes that all fences up to `fence` are complete. */
void bfc_pool_complete(struct bfc_pool *pool, bfc_fence fence);

/* Returns the highest fence of a pending block; BFC_NO_FENCE: none is pending. */
bfc_fence bfc_pool_last_pending(struct bfc_pool *pool);

/* Describes the block, live, free or bare, that holds `address`. False: the address is in none of
 * the pool's regions. */
bool bfc_pool_find(struct bfc_pool *pool, bfc_addr address, struct bfc_block_info *block);

/*
 * Marks the region of `address` as shared with others (IPC, dma-buf, registration): its pending
 * blocks are never handed out by BFC_ALLOCATE_PENDING, and while `held` it is never given back.
 * With pages the region is a whole reservation of addresses, and bfc_pool_pin keeps the pages.
 */
void bfc_pool_share_region(struct bfc_pool *pool, bfc_addr address, bool held);

/*
 * Gives wholly free and ready regions back to the upstream, largest first, until at least `bytes`
 * went or none is left; returns how many bytes went. UINT64_MAX: all. With pages, ready pages go
 * first, then regions that the upstream's reserve made; reservations of addresses never go.
 */
uint64_t bfc_pool_trim(struct bfc_pool *pool, uint64_t bytes);

/*
 * As bfc_pool_trim, but regions that are wholly free go back even if they are not ready, unless a
 * block of theirs is awaited: only for an upstream whose release waits for the work that may still
 * use the region. If a region does not go back, all its blocks are deferred. Of pages only ready
 * ones go, since unmapping may not wait for the device.
 */
uint64_t bfc_pool_trim_used(struct bfc_pool *pool, uint64_t bytes);

/* Gives one region back, an idle one if there is any, else one as bfc_pool_trim_used does; none of
 * pages. `*error` is the code of the upstream's last release; without a release it is unchanged. */
void bfc_pool_release_one(struct bfc_pool *pool, int *error);

/*
 * Gives back the regions, and with pages the pages, that every call of this function in the last
 * `idle_ns` has found free and ready: call it at intervals, in a pool made with track_idle. Returns
 * how many bytes went.
 */
uint64_t bfc_pool_trim_idle(struct bfc_pool *pool, uint64_t idle_ns);

/* Waits, a second at most, until the regions that other threads are giving back have gone. Returns
 * how many bytes went; 0: not all of them went in time, or there were none. */
uint64_t bfc_pool_await_releases(struct bfc_pool *pool);

/* Returns the bytes of the smallest region that the pool would ask the upstream's reserve for to
 * hold a block of `bytes`: more than `bytes` where the policy fixes the sizes of regions. */
uint64_t bfc_pool_least_growth(struct bfc_pool *pool, uint64_t bytes);

/* Returns a consistent copy of the counters, with largest_free brought up to date. */
void bfc_pool_read_stats(struct bfc_pool *pool, struct bfc_pool_stats *stats);

/* What a pool could give back once all work under way is done, in bytes. Regions and pages with a
 * live or awaited byte do not count: nobody knows when a stream comes to its frees. */
struct bfc_pool_room {
    uint64_t reserved; /* bytes of regions and pages that are wholly free */
    /* bytes that the device gains when these go back; the device counts in pages of 2 MiB */
    uint64_t on_device;
    uint64_t releasing; /* bytes of regions and pages that are being given back */
    uint64_t largest;   /* the largest request that a free block has room for */
};

/* O(regions + free blocks); with pages it waits for the thread that makes or moves pages. */
void bfc_pool_read_room(struct bfc_pool *pool, struct bfc_pool_room *room);

/*
 * Returns how many ready bytes lie in blocks smaller than `bytes`, and so cannot serve such a
 * request because of fragmentation. O(ready blocks that are large enough) under the lock.
 */
uint64_t bfc_pool_ready_below(struct bfc_pool *pool, uint64_t bytes);

/*
 * Looks for a violated invariant. Returns NULL, or a sentence (static storage) that names it.
 * O(blocks) under the lock: for tests and debugging.
 */
const char *bfc_pool_check(struct bfc_pool *pool);

/* Calls `visit` for each block that is not bare, in address order, under the lock: it must not call
 * the pool. */
void bfc_pool_visit(struct bfc_pool *pool,
                    void (*visit)(void *context, const struct bfc_block_info *block),
                    void *context);

#endif
