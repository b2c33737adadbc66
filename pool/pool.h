/*
 * bfc_pool: a best-fit, coalescing pool of device memory.
 *
 * The pool never touches the memory that it manages, and knows neither CUDA nor the operating
 * system: whatever it needs from outside comes through the functions of struct bfc_upstream.
 *
 * Regions (taken from the upstream) are cut into blocks, which tile them without gap or overlap. A
 * block is live (the program holds it) or free. A free block is
 * - ready: safe to hand out at once,
 * - pending: freed under a fence that is not known to be complete, so work may still use the block,
 * - deferred: freed without a fence yet (bfc_pool_fence_deferred gives all such blocks one),
 * - awaited: freed in the order of a stream, under no fence, until the caller calls bfc_pool_ready.
 *
 * A fence is a number that stands for all work submitted to the device before a free; the fence is
 * complete when that work is. The caller chooses rising numbers, for each pool by itself; 0 is no
 * fence. Fences complete in order: once fence m is complete, so is every lower fence.
 *
 * Thread-safety: every function may be called from any thread at any time, except create and
 * destroy. No function of the upstream is called under the pool's lock.
 */
#ifndef BFC_POOL_POOL_H
#define BFC_POOL_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "pool/stats.h"

/* An address on the device. Opaque: the pool only adds to it and compares it. */
typedef uint64_t bfc_addr;

typedef uint64_t bfc_fence;
#define BFC_NO_FENCE ((bfc_fence)0)
#define BFC_DEFERRED_FENCE UINT64_MAX

/* Sizes and addresses of blocks are multiples of a granule: 2 to the power of BFC_GRANULE_BITS,
 * that is, 512 bytes. cudaMalloc aligns memory to 512 bytes too, because textures need it. */
#define BFC_GRANULE_BITS 9
#define BFC_GRANULE ((uint64_t)1 << BFC_GRANULE_BITS)

/* Blocks of at least BFC_LARGE bytes, and smaller ones whose size is a multiple of BFC_ALIGNMENT,
 * start at multiples of BFC_ALIGNMENT, because an exported dma-buf consists of whole pages of the
 * host, and such a page may have up to 64 KiB. The first block of a region is an exception: it
 * starts where the upstream has put the region. Blocks of all other sizes may start at any granule;
 * cudaMalloc, too, aligns small blocks to 512 bytes only. */
#define BFC_ALIGNMENT ((uint64_t)1 << 16)
#define BFC_LARGE ((uint64_t)1 << 20)

/* Whether a block of this many granules must start at a multiple of BFC_ALIGNMENT. */
static inline bool bfc_starts_aligned(uint64_t granules) {
    return granules >= BFC_LARGE / BFC_GRANULE || !(granules % (BFC_ALIGNMENT / BFC_GRANULE));
}

enum bfc_status {
    BFC_OK = 0,
    BFC_OUT_OF_MEMORY,   /* no free block fits, and the device has no more to give */
    BFC_UPSTREAM_FAILED, /* the upstream failed, but not for lack of memory */
    /* the address is inside one of the pool's regions, but no live block starts there */
    BFC_INVALID_POINTER,
    BFC_UNKNOWN_POINTER, /* the address is in none of the pool's regions */
    BFC_INVALID_SIZE,    /* the size is zero, or larger than the call can serve */
    BFC_NO_HOST_MEMORY,  /* the host has no memory for the pool's own records */
    /* bfc_pool_freeze_pages forbids to change pages, and the upstream's function `wake` failed to
     * allow it again */
    BFC_ASLEEP,
};

enum bfc_reserve_result {
    BFC_RESERVED, /* memory was reserved, and the function has set its result */
    BFC_REFUSED,  /* the device has not enough memory: a smaller request may succeed */
    BFC_FAILED,   /* any other failure: a smaller request would fail as well */
};

struct bfc_page_calls;

/* What an allocation passes to the upstream's functions while it makes the pool grow. */
struct bfc_ask {
    /* whether the allocation may take memory for which other jobs already wait
     * (BFC_ALLOCATE_FIRST) */
    bool is_first;
    /* set by the upstream when it refuses: its error code, which the allocation reports */
    int error;
};

/*
 * What the pool needs from outside: memory, fences and a clock. Every function gets `context`
 * first, may block, and is called without the pool's lock, possibly by several threads at once.
 * `poll`, `wait` and `now` may be NULL.
 */
struct bfc_upstream {
    void *context;
    /* Takes `bytes` from the device, and sets `*start` to their address. Both are multiples of
     * BFC_GRANULE. */
    enum bfc_reserve_result (*reserve)(void *context, uint64_t bytes, bfc_addr *start,
                                       struct bfc_ask *ask);
    /* Gives a whole region back, exactly as it was reserved. False: the region stays the pool's,
     * and `*error` is the upstream's error code. */
    bool (*release)(void *context, bfc_addr start, uint64_t bytes, int *error);
    /* Returns the highest fence known to be complete. Does not block, and takes bounded time. NULL:
     * every fence counts as complete. */
    bfc_fence (*poll)(void *context);
    /*
     * Blocks until `fence` is complete or `timeout_ns` has passed (UINT64_MAX: no limit). Returns
     * the highest fence known to be complete. Two values of `fence` have a meaning of their own:
     * - BFC_DEFERRED_FENCE: makes the deferred blocks ready if possible, and waits as long as that
     *   takes;
     * - BFC_NO_FENCE: makes every awaited block ready whose stream has completed the work before
     *   the free; if there is none, blocks until there is one.
     */
    bfc_fence (*wait)(void *context, bfc_fence fence, uint64_t timeout_ns);
    /* Returns nanoseconds on a clock that never goes back. NULL: the pool measures no times. */
    uint64_t (*now)(void *context);
    /* The calls for a pool with pages (pool/pages.h), which the pool copies. NULL: the pool takes
     * memory by whole regions only. With pages, `reserve` and `release` may be NULL; they serve
     * where the pool may not use pages, and where a page call fails for another reason than a lack
     * of memory. */
    const struct bfc_page_calls *pages;
};

enum bfc_policy { BFC_POLICY_BFC, BFC_POLICY_TF, BFC_POLICY_PYTORCH };
enum bfc_growth { BFC_GROWTH_DOUBLE, BFC_GROWTH_FIXED, BFC_GROWTH_EXACT, BFC_GROWTH_PREALLOCATE };

/* How the pool chooses the size of new pages (pool/pages.h). */
enum bfc_page_rule {
    /* one page for all that the pool makes at once, while free blocks lie together; the more
     * scattered they are, the smaller new pages become */
    BFC_PAGE_AUTO,
    BFC_PAGE_FIT, /* at most a 64th of the block for which the page is made */
    /* one page for all that the pool makes at once when it grows */
    BFC_PAGE_STEP,
};

/* The configuration of a pool. What bfc_pool_config_default does not set is zero. Sizes are in
 * bytes. */
struct bfc_pool_config {
    enum bfc_policy policy;
    enum bfc_growth growth;
    /* growth `double`: the size of the first region; growth `fixed`: the size of each region */
    uint64_t growth_size;
    /* growth `double`: new regions get larger as the pool grows, up to this size. With pages, the
     * bytes that the pool makes at once beyond a request do so instead. Without pages, policies tf
     * and pytorch ignore it */
    uint64_t growth_max;
    uint64_t preallocate; /* growth `preallocate`: the size of the first region */
    uint64_t limit;       /* the most bytes that may be reserved; UINT64_MAX: no limit */
    /* a free block is split if it is at least this many times as large as the request; 0: the
     * policy decides */
    double split_ratio;
    /* a free block is split if it is at least this many bytes larger than the request; UINT64_MAX:
     * the policy decides */
    uint64_t split_slack;
    /* free blocks of at least this many bytes are not split; UINT64_MAX: all may be. In a pool with
     * pages the value is ignored, and all may be */
    uint64_t max_split;
    /* requests are rounded up to one of this many evenly spaced sizes between two powers of two; 0
     * or 1: no such rounding */
    uint64_t roundup;
    /* while more bytes than this are reserved, regions that have long been wholly free go back
     * before the pool grows; UINT64_MAX: never */
    uint64_t gc_threshold;
    /* a region of more bytes than this that is wholly free is split for a small block only if the
     * pool cannot grow at little cost; UINT64_MAX: such a region is split as any other */
    uint64_t keep_whole;
    /* whether the upstream's `release` may wait for the device. If so, an allocation that finds no
     * memory takes a block that its policy would refuse, rather than give regions back */
    bool release_waits;
    /* with pages: while less than (1 + page_slack) times the most that was ever requested is
     * reserved, the pool makes new pages; above that it moves free ones */
    double page_slack;
    uint64_t page_most; /* with pages: bytes of the largest page */
    enum bfc_page_rule page_rule;
    bool track_idle; /* whether bfc_pool_trim_idle will be called */
    /* whether allocations may hand out pending blocks; if not, BFC_ALLOCATE_PENDING has no
     * effect */
    bool reuse_pending;
    /* an allocation that finds no block makes the pool grow at once while at most this many bytes
     * are pending; while more are pending, it first waits a short time for fences */
    uint64_t pending_budget;
    /* whether an allocation fails as soon as the device refuses memory, without waiting for fences
     * and without giving regions back */
    bool no_last_resorts;
    /* memory for the pool's counters, which must outlive the pool; NULL: the pool has memory of its
     * own for them */
    struct bfc_pool_stats *stats;
};

/* The defaults: policy bfc, growth double from 2 MiB to steps of 1 GiB, no limit. */
void bfc_pool_config_default(struct bfc_pool_config *config);

/* A block, as the pool describes it to the caller. */
struct bfc_block_info {
    bfc_addr start;
    uint64_t size; /* bytes of the block, after rounding */
    /* bytes that the program requested; 0: the block is free, or it is the second part of a block
     * that bfc_pool_carve has split */
    uint64_t requested;
    uint64_t id; /* unique among all blocks that this process ever allocated; 0 for a free block */
    uint64_t free_before; /* free bytes just before the block, in its region */
    uint64_t free_after;  /* free bytes just after the block, in its region */
    bfc_addr region_start;
    uint64_t region_size;
    /* set by an allocation: the fence of the pending block that was handed out, for which later
     * work has to wait; BFC_NO_FENCE: the block was ready */
    bfc_fence fence;
    /* set by a failed allocation: the last error code of the upstream; 0: the upstream gave none */
    int error;
    bool live;
    /* whether the block is a range of addresses without memory behind it (pool/pages.h), which is
     * neither live nor free */
    bool bare;
    /* whether the block's region is a reservation of addresses, parts of which may have pages
     * behind them */
    bool paged;
    /* whether bfc_pool_add_apart made the block's region, and all of that region has memory behind
     * it */
    bool planned;
};

/* The flags of an allocation; their sum is passed to bfc_pool_allocate. */
enum bfc_allocate_flags {
    BFC_ALLOCATE_HIT_ONLY =
        1, /* neither call the upstream nor search for long, and do not count a miss */
    /* a pending block may be handed out; the caller must make later work wait for the block's
     * fence */
    BFC_ALLOCATE_PENDING = 2,
    /* do not count a failure as out of memory: the caller tries other means, and calls
     * bfc_pool_count_out_of_memory if they fail too */
    BFC_ALLOCATE_UNCOUNTED = 4,
    /* this call repeats an allocation that had BFC_ALLOCATE_UNCOUNTED and failed; if this one
     * succeeds, the caller calls bfc_pool_count_saved */
    BFC_ALLOCATE_AGAIN = 8,
    /* before the pool grows, hand out ready blocks of regions that are set apart
     * (bfc_pool_set_apart) */
    BFC_ALLOCATE_APART = 16,
    /* the allocation may take memory for which other jobs already wait (is_first in struct
     * bfc_ask) */
    BFC_ALLOCATE_FIRST = 32,
};

struct bfc_pool;

/* The beginning of struct bfc_pool, so that inline functions of this header can read it without
 * the lock. */
struct bfc_pool_shown {
    uint32_t lock; /* read and written by the pool alone */
    /* atomic: whether too much is reserved or idle regions may be merged, so that a free should
     * call bfc_pool_begin_surplus */
    bool has_surplus;
};

/*
 * Makes an empty pool; nothing is reserved before the first allocation. `config` and `upstream` are
 * copied; a NULL `config` means the defaults. Returns BFC_OK or BFC_NO_HOST_MEMORY.
 */
enum bfc_status bfc_pool_create(struct bfc_pool **pool, const struct bfc_pool_config *config,
                                const struct bfc_upstream *upstream);

/*
 * Ends the pool and frees its host memory; `pool` may be NULL. With `release`, every region goes
 * back to the upstream first, even with live blocks in it. Without, the upstream is not called: the
 * context has ended, and has taken the regions with it. Pages belong to the device, not to the
 * context: for them the caller sets `release` even after the context's end.
 */
void bfc_pool_destroy(struct bfc_pool *pool, bool release);

/*
 * Hands out a block of at least `bytes`. On success sets start, size, requested, id and fence of
 * `block` (never NULL), else only its `error`. Returns BFC_OK, BFC_INVALID_SIZE, BFC_OUT_OF_MEMORY,
 * BFC_UPSTREAM_FAILED, BFC_NO_HOST_MEMORY or BFC_ASLEEP.
 */
enum bfc_status bfc_pool_allocate(struct bfc_pool *pool, uint64_t bytes, unsigned flags,
                                  struct bfc_block_info *block);

#define BFC_PLACE_HINTS 2

/*
 * Hands out a block that starts exactly at `at`. Its size is `bytes`, rounded up to whole granules,
 * or from BFC_LARGE on to a multiple of BFC_ALIGNMENT. All of the range must be ready; with
 * BFC_ALLOCATE_PENDING it may also be pending, and the block's fence is then the highest one in the
 * range. The range may span several free blocks of any one region, and no rule of a policy applies.
 * Of the upstream only `poll` is called, and with BFC_ALLOCATE_HIT_ONLY not even that; other flags
 * have no effect. Counts as a hit.
 *
 * `below` (never NULL) belongs to this `at`: it holds addresses before `at` at which live blocks
 * may start, as hints. The caller sets them to 0 before the first call with this `at`, and passes
 * them again in later ones; the pool updates them. If a live block still starts at a hint, the pool
 * reaches `at` from there without a search.
 *
 * Returns BFC_OK, BFC_INVALID_SIZE, BFC_INVALID_POINTER (no such block may start at `at`),
 * BFC_UNKNOWN_POINTER (the range is not within one region), BFC_OUT_OF_MEMORY (a part of the range
 * is in use, or work may still use it) or BFC_NO_HOST_MEMORY; except for BFC_OK nothing has
 * changed.
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
 * region, until bfc_pool_set_apart, or an allocation that would otherwise fail, opens it to all. If
 * even then the allocation's policy has no block for it, it gets memory of the region against the
 * rules of that policy.
 *
 * In a pool with pages the region is a reservation of addresses with pages behind all of it. Once
 * the region is open to all, or when trimming finds nothing else, its ready pages may go elsewhere;
 * a later call for at most the region's size puts pages there again. Where the device refuses
 * pages, the upstream's `reserve` provides the region.
 *
 * On success `*start` (never NULL) is the region's address. Returns BFC_OK, BFC_INVALID_SIZE,
 * BFC_OUT_OF_MEMORY (the limit or the device has no room), BFC_UPSTREAM_FAILED, BFC_NO_HOST_MEMORY
 * or BFC_ASLEEP, with the upstream's error code in `*error`.
 */
enum bfc_status bfc_pool_add_apart(struct bfc_pool *pool, uint64_t bytes, bfc_addr *start,
                                   int *error);

/* Sets the region of `address` apart, as bfc_pool_add_apart does, or opens it to all allocations.
 * O(blocks of the region) under the lock. False: the address is in none of the pool's regions, or
 * in a reservation of addresses that bfc_pool_add_apart did not make. */
bool bfc_pool_set_apart(struct bfc_pool *pool, bfc_addr address, bool apart);

/* Gives all wholly free and ready regions back, except the one that holds the address `planned` (0:
 * none), and all ready pages outside regions that are set apart. Returns how many bytes went
 * back. */
uint64_t bfc_pool_trim_unplanned(struct bfc_pool *pool, bfc_addr planned);

/*
 * Blocks that have no place in a region of bfc_pool_add_apart lie in other regions (overflow
 * regions). They should share one of these, as large as the most bytes that such blocks ever took
 * at one time. If there are several overflow regions, gives back those that are wholly free and
 * smaller than that. If any went back, and no overflow region has that size, the next region that
 * the pool takes with growth `double` has it. Returns how many bytes went back.
 */
uint64_t bfc_pool_gather_overflow(struct bfc_pool *pool);

/* Call bfc_pool_count_out_of_memory when an allocation with BFC_ALLOCATE_UNCOUNTED has failed for
 * good, and bfc_pool_count_saved when one with BFC_ALLOCATE_AGAIN has succeeded. */
void bfc_pool_count_out_of_memory(struct bfc_pool *pool);
void bfc_pool_count_saved(struct bfc_pool *pool);

/* Counts a free that the caller refuses because no live block starts at `start`. */
void bfc_pool_count_invalid_free(struct bfc_pool *pool, bfc_addr start);

/*
 * Frees the live block that starts at `start`. The block becomes ready if `fence` is BFC_NO_FENCE
 * or known to be complete, deferred with BFC_DEFERRED_FENCE, else pending. Returns BFC_OK,
 * BFC_INVALID_POINTER or BFC_UNKNOWN_POINTER; with the last two nothing has changed.
 */
enum bfc_status bfc_pool_free(struct bfc_pool *pool, bfc_addr start, bfc_fence fence);

/*
 * bfc_pool_glimpse and bfc_pool_free_ready are the two steps of a free with BFC_NO_FENCE, for a
 * caller that waits for the device between them. bfc_pool_glimpse tells whether a live block starts
 * at `start`, nearly always without taking the lock; bfc_pool_free_ready frees the block. If
 * another thread has freed the block meanwhile, bfc_pool_free_ready returns an error, as
 * bfc_pool_free does.
 */
struct bfc_glimpse {
    /* the index of the block record of the live block that starts at the address asked for; 0: no
     * live block starts there */
    uint32_t block;
    uint32_t place; /* the bucket of the pool's hash map that has the block */
};
struct bfc_glimpse bfc_pool_glimpse(struct bfc_pool *pool, bfc_addr start);
enum bfc_status bfc_pool_free_ready(struct bfc_pool *pool, bfc_addr start, struct bfc_glimpse seen);

/* Frees give wholly free regions back if the pool has reserved too much (regions/surplus.c). Where
 * bfc_pool_has_surplus returns true, bfc_pool_begin_surplus tells whether this free is to do so,
 * which one thread at a time does. If it returns true, the caller waits for the device, and then
 * calls bfc_pool_release_surplus, which returns how many bytes went back; `may_go` false: the
 * regions must stay. */
static inline bool bfc_pool_has_surplus(const struct bfc_pool *pool) {
    return bfc_load_relaxed(&((const struct bfc_pool_shown *)(const void *)pool)->has_surplus);
}
bool bfc_pool_begin_surplus(struct bfc_pool *pool);
uint64_t bfc_pool_release_surplus(struct bfc_pool *pool, bool may_go);

static inline bool bfc_pool_is_live(struct bfc_pool *pool, bfc_addr start) {
    return bfc_pool_glimpse(pool, start).block != 0;
}

/* Frees the live block that starts at `start`, under no fence: the block is awaited until
 * bfc_pool_ready is called for it. Returns BFC_OK, BFC_INVALID_POINTER or BFC_UNKNOWN_POINTER; with
 * the last two nothing has changed. */
enum bfc_status bfc_pool_free_awaited(struct bfc_pool *pool, bfc_addr start);

/* To be called when the stream has come to the free of the block at `start`, which
 * bfc_pool_free_awaited has freed: the block is no longer awaited, but free as after bfc_pool_free
 * with `fence`. */
void bfc_pool_ready(struct bfc_pool *pool, bfc_addr start, bfc_fence fence);

/*
 * Splits a live block in two. The block at `start` becomes as if `bytes` had been requested; the
 * rest becomes a live block of its own, handed out under the same fence, and counts as an
 * allocation. If the size fits exactly there is no rest. Returns BFC_OK, BFC_INVALID_SIZE (0, more
 * than the block has, or a size for which no block may start there), BFC_INVALID_POINTER,
 * BFC_UNKNOWN_POINTER or BFC_NO_HOST_MEMORY; except for BFC_OK nothing has changed.
 */
enum bfc_status bfc_pool_carve(struct bfc_pool *pool, bfc_addr start, uint64_t bytes);

/* A record of one allocation or free. */
struct bfc_pool_note {
    uint64_t id;    /* id of the block that was allocated or freed */
    uint64_t bytes; /* allocation: bytes that the program requested; 0: the record is of a free */
    /* allocation: the calling thread, as a number that no other living thread has; not set for a
     * free */
    uint64_t thread;
};

/*
 * Records the next `most` allocations and frees in `notes`, in their order. `notes` must stay valid
 * until the next call of this function; a `most` of 0 ends the recording. What bfc_pool_carve does
 * is not recorded.
 */
void bfc_pool_take_notes(struct bfc_pool *pool, struct bfc_pool_note *notes, uint64_t most);

/* Returns how many records were written since the last call of bfc_pool_take_notes. */
uint64_t bfc_pool_notes(struct bfc_pool *pool);

/* Returns how many blocks have become deferred since the pool began. Call it before a fence for the
 * deferred blocks is recorded, and pass the result to bfc_pool_fence_deferred. */
uint64_t bfc_pool_deferred_arrivals(struct bfc_pool *pool);

/*
 * Gives `fence` to the blocks that had become deferred when bfc_pool_deferred_arrivals returned
 * `arrivals` (UINT64_MAX: to all). Blocks deferred after that get no fence here, because work
 * submitted after the fence may use them. O(deferred blocks) under the lock.
 */
void bfc_pool_fence_deferred(struct bfc_pool *pool, bfc_fence fence, uint64_t arrivals);

/* Tells the pool that all fences up to `fence` are complete. */
void bfc_pool_complete(struct bfc_pool *pool, bfc_fence fence);

/* Returns the highest fence of a pending block; BFC_NO_FENCE: none is pending. */
bfc_fence bfc_pool_last_pending(struct bfc_pool *pool);

/* Describes the block, live, free or bare, that holds `address`. False: the address is in none of
 * the pool's regions. */
bool bfc_pool_find(struct bfc_pool *pool, bfc_addr address, struct bfc_block_info *block);

/*
 * Marks the region of `address` as shared with others (IPC, dma-buf, registration): its pending
 * blocks are never handed out by BFC_ALLOCATE_PENDING, and with `held` the region is never given
 * back. In a pool with pages the region is a whole reservation of addresses, and bfc_pool_pin is
 * what keeps pages in place.
 */
void bfc_pool_share_region(struct bfc_pool *pool, bfc_addr address, bool held);

/*
 * Gives wholly free and ready regions back to the upstream, largest first, until at least `bytes`
 * have gone back (UINT64_MAX: all) or no such region is left. Returns how many bytes went back. In
 * a pool with pages, ready pages go first, then regions that the upstream's `reserve` made;
 * reservations of addresses never go back.
 */
uint64_t bfc_pool_trim(struct bfc_pool *pool, uint64_t bytes);

/*
 * Gives regions without a live or awaited block back to the upstream, even if they are not ready,
 * until at least `bytes` have gone back; in a pool with pages first does what bfc_pool_trim does.
 * Returns how many bytes went back. Only for an upstream whose `release` waits for the work that
 * may still use the region. If the upstream refuses to take a region back, all its blocks become
 * deferred. Of pages only ready ones go back, since unmapping may not wait for the device.
 */
uint64_t bfc_pool_trim_used(struct bfc_pool *pool, uint64_t bytes);

/* Gives one region back, but no pages. It is a region that is wholly free and ready; if there is
 * none, one without a live or awaited block. Sets `*error` to the upstream's error code of the last
 * release; if nothing was released, `*error` does not change. */
void bfc_pool_release_one(struct bfc_pool *pool, int *error);

/*
 * Gives back the regions, and in a pool with pages the pages, that have been free and ready at
 * every call of this function in the last `idle_ns`. To be called at intervals, in a pool made with
 * track_idle. Returns how many bytes went back.
 */
uint64_t bfc_pool_trim_idle(struct bfc_pool *pool, uint64_t idle_ns);

/* Waits, a second at most, until no thread is giving regions or pages back. Returns how many bytes
 * were being given back at the start; 0: none were, or some had not gone back after a second. */
uint64_t bfc_pool_await_releases(struct bfc_pool *pool);

/* Returns the bytes of the smallest region that the pool would request from the upstream's
 * `reserve` for a block of `bytes`. That is more than `bytes` where the policy fixes the sizes of
 * regions. */
uint64_t bfc_pool_least_growth(struct bfc_pool *pool, uint64_t bytes);

/* Copies the counters, all as of one moment, with largest_free brought up to date. */
void bfc_pool_read_stats(struct bfc_pool *pool, struct bfc_pool_stats *stats);

/* What a pool could give back once all work under way is done, in bytes. Regions and pages with a
 * live or awaited byte do not count: an awaited block is free only when its stream comes to the
 * free, and nobody knows when that is. */
struct bfc_pool_room {
    uint64_t reserved; /* reserved bytes in regions and pages that are wholly free */
    /* bytes that the device gains when these regions and pages go back: rounded to the device's own
     * pages of 2 MiB */
    uint64_t on_device;
    uint64_t releasing; /* bytes of regions and pages that other threads are giving back now */
    uint64_t largest;   /* bytes of the largest request for which a free block has room */
};

/* Fills in *room. O(regions + free blocks). In a pool with pages it first waits until no thread
 * makes or moves pages. */
void bfc_pool_read_room(struct bfc_pool *pool, struct bfc_pool_room *room);

/*
 * Returns how many ready bytes lie in blocks smaller than `bytes`: memory that cannot serve a
 * request of that size because of fragmentation. O(ready blocks of at least `bytes`) under the
 * lock.
 */
uint64_t bfc_pool_ready_below(struct bfc_pool *pool, uint64_t bytes);

/*
 * Looks for a violated invariant. Returns NULL, or a sentence (static storage) that names the
 * invariant. O(blocks) under the lock: for tests and debugging.
 */
const char *bfc_pool_check(struct bfc_pool *pool);

/* Calls `visit` for each block that is not bare, in address order, under the lock; so `visit` must
 * not call the pool. */
void bfc_pool_visit(struct bfc_pool *pool,
                    void (*visit)(void *context, const struct bfc_block_info *block),
                    void *context);

#endif
