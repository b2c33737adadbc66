/*
 * bfc_pool: a best-fit, coalescing pool of device memory.
 *
 * The pool deals in addresses and sizes alone. It never touches the memory that it manages, and
 * knows neither CUDA nor the operating system: whatever it needs from outside comes through
 * struct bfc_upstream, so tests put made-up addresses and a hand-moved clock there.
 *
 * Regions (taken from the upstream) are cut into blocks, which tile them without gap or overlap. A
 * block is live (the program holds it) or free; a free one is
 * - ready: safe to hand out at once,
 * - pending: freed under a fence that is not known to be complete: work may still use it,
 * - deferred: freed without a fence yet (bfc_pool_fence_deferred gives all such blocks one),
 * - awaited: freed in the order of a stream, under no fence; the caller says when it is ready
 *   (bfc_pool_ready).
 *
 * Fences are numbers that the caller draws in rising order, for each pool by itself; 0 is no fence.
 * They complete in order: once fence m is complete, so is every fence below it. So a merged block
 * takes the higher of two fences, and one number says which blocks are ready.
 *
 * Thread-safety: every function may be called from any thread at any time, except create and
 * destroy. The pool has one lock, held for list surgery only: no function of the upstream is called
 * under it.
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

/* Sizes and addresses are multiples of this many bytes, as cudaMalloc's are; textures need this
 * alignment.
 */
#define BFC_GRANULE_BITS 9
#define BFC_GRANULE ((uint64_t)1 << BFC_GRANULE_BITS)

/*
 * Blocks of this many bytes and more start at a multiple of it, which is a whole number of pages on
 * every host, since a dma-buf consists of pages. Only the first block of a region starts where the
 * upstream put the region.
 */
#define BFC_LARGE ((uint64_t)1 << 16)

enum bfc_status {
    BFC_OK = 0,
    BFC_OUT_OF_MEMORY,   /* nothing fits and the device has no more to give */
    BFC_UPSTREAM_FAILED, /* the upstream failed for another reason than a lack of memory */
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
 * pool's lock, possibly by several threads at once. poll and wait may be NULL.
 */
struct bfc_page_calls;

/* What goes between an allocation and the upstream while the allocation makes its pool grow. */
struct bfc_ask {
    bool is_first; /* the allocation had BFC_ALLOCATE_FIRST */
    int error;     /* set by the upstream that refuses: the code that the allocation is to return */
};

struct bfc_upstream {
    void *context;
    /* Takes `bytes` (a multiple of the granule) from the device; the start must be one too. */
    enum bfc_reserve_result (*reserve)(void *context, uint64_t bytes, bfc_addr *start,
                                       struct bfc_ask *ask);
    /* Gives back a whole region, exactly as it was reserved. False: the region did not go, and is
     * the pool's as before. `*error` is the upstream's code, for bfc_pool_release_one. */
    bool (*release)(void *context, bfc_addr start, uint64_t bytes, int *error);
    /* The highest fence known to be complete, without blocking, at a bounded cost. NULL: all are.
     */
    bfc_fence (*poll)(void *context);
    /*
     * Blocks until `fence` is complete or `timeout_ns` has passed (UINT64_MAX: no limit). Returns
     * the highest fence known to be complete. With BFC_DEFERRED_FENCE it makes the deferred blocks
     * ready if that is possible, by whatever wait that needs. With BFC_NO_FENCE every awaited block
     * is ready on return that could be so before the call, whatever other threads do; if there was
     * none, it blocks until there is one.
     */
    bfc_fence (*wait)(void *context, bfc_fence fence, uint64_t timeout_ns);
    /* Nanoseconds on a clock that never goes back. */
    uint64_t (*now)(void *context);
    /* Addresses and memory apart (pages.h): then reserve and release, which may be NULL, are called
     * only where one of these is refused for another reason than a lack of memory. Copied. NULL:
     * regions. */
    const struct bfc_page_calls *pages;
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
    uint64_t max_split;    /* larger blocks are not split; UINT64_MAX, or with pages: all may be */
    uint64_t roundup;      /* divisions of a power of two that sizes are rounded to; 0, 1: none */
    uint64_t gc_threshold; /* reserved bytes above which idle regions go back before the pool grows;
                              UINT64_MAX: never */
    uint64_t keep_whole;   /* a wholly free region of more bytes than this is cut for a small block
                              only if the pool cannot grow at little cost; UINT64_MAX: as any other */
    bool release_waits;    /* giving a region back may wait for the device: before that, a request
                              takes what its policy would refuse it */
    double page_slack;     /* with pages: reserved beyond the most ever requested, as a part of it,
                              before free pages are moved */
    uint64_t page_most; /* with pages: bytes of the largest; and none is above a 64th of the block
                           that it is made for... */
    bool page_steps;    /* ...unless each step of growth is to be one page */
    bool track_idle;    /* bfc_pool_trim_idle will be called */
    bool reuse_pending; /* allocations may be BFC_ALLOCATE_PENDING; else that flag means nothing */
    uint64_t pending_budget; /* lazy: pending bytes up to which the pool grows rather than waits */
    bool no_last_resorts;    /* when the device refuses, neither wait nor give regions back */
    struct bfc_pool_stats *stats; /* where to count; NULL: in the pool itself. Outlives the pool. */
};

/* The defaults: policy bfc, growth double from 2 MiB to steps of 1 GiB, no limit. */
void bfc_pool_config_default(struct bfc_pool_config *config);

/* A block, as the pool describes it to the caller. */
struct bfc_block_info {
    bfc_addr start;
    uint64_t size;        /* rounded, in bytes */
    uint64_t requested;   /* as asked, in bytes; 0 when the block is free, or the rest of a carved
                             one */
    uint64_t id;          /* unique among all blocks that the process ever allocated; 0 when free */
    uint64_t free_before; /* free bytes just before the block, in its region */
    uint64_t free_after;  /* and just after it */
    bfc_addr region_start;
    uint64_t region_size;
    bfc_fence
        fence; /* allocate: the fence under which it was handed out pending, or BFC_NO_FENCE */
    int error; /* allocate that failed: the code that the upstream set last in struct bfc_ask, or 0
                */
    bool live;
    bool bare;    /* addresses without a page (pages.h): neither live nor free */
    bool paged;   /* in a reservation of addresses, behind which there may be pages */
    bool planned; /* in a region of bfc_pool_add_apart that has memory behind all of it */
};

/* How one allocation may be served. */
enum bfc_allocate_flags {
    BFC_ALLOCATE_HIT_ONLY =
        1, /* neither call the upstream nor search for long; a miss is not counted */
    BFC_ALLOCATE_PENDING = 2,   /* pending blocks may be handed out; the caller orders later work
                                   behind the fence returned (ordered mode) */
    BFC_ALLOCATE_UNCOUNTED = 4, /* a failure does not count as out of memory: the caller looks
                                   further, and calls bfc_pool_count_out_of_memory in the end */
    BFC_ALLOCATE_AGAIN = 8,     /* after such a failure: the caller counts success as saved */
    BFC_ALLOCATE_APART = 16,    /* what is ready in regions that are set apart may be handed out
                                   instead of growing */
    BFC_ALLOCATE_FIRST = 32,    /* handed to the upstream in struct bfc_ask */
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
 * upstream first, live blocks or not; without, the device is not told (its context has ended).
 * Pages are the device's, not the context's: with `release` they go back also after its end. NULL
 * is fine.
 */
void bfc_pool_destroy(struct bfc_pool *pool, bool release);

/*
 * Hands out a block of at least `bytes` (1 to UINT64_MAX; rounding is checked for overflow). On
 * success `block` (never NULL) tells about it: start, size, requested, id, fence; else only its
 * `error` is set. Returns BFC_OK, BFC_INVALID_SIZE, BFC_OUT_OF_MEMORY, BFC_UPSTREAM_FAILED or
 * BFC_NO_HOST_MEMORY.
 */
enum bfc_status bfc_pool_allocate(struct bfc_pool *pool, uint64_t bytes, unsigned flags,
                                  struct bfc_block_info *block);

#define BFC_PLACE_HINTS 2

/*
 * Hands out the block that starts at `at`, of just as many bytes as the pool rounds `bytes` to
 * (whole granules, or BFC_LARGE), if all of that is free: ready, or with BFC_ALLOCATE_PENDING also
 * pending, under the highest of the fences. It may lie in several neighbouring free blocks, and in
 * any region of the pool. No rule of a policy but the granule applies; the upstream is only polled,
 * and with BFC_ALLOCATE_HIT_ONLY not even that. The other flags mean nothing. `below` (never NULL)
 * are two hints that the pool keeps up to date, 0 at first: with them the place is found without a
 * search when the blocks before it are as they were one of the last times. Counts as a hit. Returns
 * BFC_OK, BFC_INVALID_SIZE, BFC_INVALID_POINTER (not a multiple of the granule; or of BFC_LARGE,
 * for a large block that is not the first of its region), BFC_UNKNOWN_POINTER (not all in one
 * region), BFC_OUT_OF_MEMORY (a part is in use, or may still be) or BFC_NO_HOST_MEMORY; but for
 * BFC_OK nothing has changed.
 */
enum bfc_status bfc_pool_allocate_at(struct bfc_pool *pool, bfc_addr at, uint64_t bytes,
                                     unsigned flags, bfc_addr below[BFC_PLACE_HINTS],
                                     struct bfc_block_info *block);

/*
 * Hands out the best fitting of what is ready in regions that are set apart, wherever it is, and
 * nothing else. Counts as a hit. Returns BFC_OK, BFC_INVALID_SIZE or BFC_OUT_OF_MEMORY (nothing
 * fits).
 */
enum bfc_status bfc_pool_allocate_apart(struct bfc_pool *pool, uint64_t bytes,
                                        struct bfc_block_info *block);

/*
 * Takes one region of `bytes`, a multiple of the granule, from the upstream, which is set apart:
 * only bfc_pool_allocate_at, bfc_pool_allocate_apart and BFC_ALLOCATE_APART hand out of it, until
 * bfc_pool_set_apart, or an allocation that would fail, opens it to all. In the end it serves one
 * that its policy would refuse it. It is reserved and released like any region. In a pool with
 * pages it is a reservation of addresses, and has pages behind all of it: ready ones of other
 * blocks move there, what is lacking is made. Once it is open to all, or the pool is trimmed and
 * nothing else suffices, ready pages of it go elsewhere; the next call that it is large enough for
 * gets it new ones. Where pages cannot be had it is a region. On success `*start` (never NULL) is
 * its address. Returns BFC_OK, BFC_INVALID_SIZE, BFC_OUT_OF_MEMORY (the limit or the device),
 * BFC_UPSTREAM_FAILED or BFC_NO_HOST_MEMORY.
 */
enum bfc_status bfc_pool_add_apart(struct bfc_pool *pool, uint64_t bytes, bfc_addr *start);

/* Sets the region of `address` apart, or opens it to all. O(its blocks) under the lock. False: it
 * is in none of the pool's regions, or in one of pages that is not of bfc_pool_add_apart. */
bool bfc_pool_set_apart(struct bfc_pool *pool, bfc_addr address, bool apart);

/* Gives all wholly free and ready regions back but the one that holds `planned` (0: none does), and
 * all ready pages beside regions that are set apart; returns how many bytes went. */
uint64_t bfc_pool_trim_unplanned(struct bfc_pool *pool, bfc_addr planned);

/*
 * What has no place in a region of bfc_pool_add_apart is to lie in one region more, as large as all
 * such blocks at a time, where growth is `double`: where there are several, gives the idle ones
 * back that are smaller, and the next one that is needed will be large enough. Returns how many
 * bytes went.
 */
uint64_t bfc_pool_gather_overflow(struct bfc_pool *pool);

/* Counts an allocation that failed for good, or was saved after it had failed, which the flags
 * above kept from being counted. */
void bfc_pool_count_out_of_memory(struct bfc_pool *pool);
void bfc_pool_count_saved(struct bfc_pool *pool);

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
    uint32_t block; /* 0: no live block starts there */
    uint32_t place; /* where the pool found it */
};
struct bfc_glimpse bfc_pool_glimpse(struct bfc_pool *pool, bfc_addr start);
enum bfc_status bfc_pool_free_ready(struct bfc_pool *pool, bfc_addr start, struct bfc_glimpse seen);

static inline bool bfc_pool_is_live(struct bfc_pool *pool, bfc_addr start) {
    return bfc_pool_glimpse(pool, start).block != 0;
}

/*
 * Takes the block back under no fence: it is awaited until bfc_pool_ready is called for it.
 */
enum bfc_status bfc_pool_free_awaited(struct bfc_pool *pool, bfc_addr start);

/* Treats the awaited block that starts at `start` as if it had been freed with this fence. */
void bfc_pool_ready(struct bfc_pool *pool, bfc_addr start, bfc_fence fence);

/*
 * Splits a live block in two: the one at `start` becomes as if `bytes` had been requested, the rest
 * becomes a live block of its own, handed out under the same fence. If the size fits exactly there
 * is no rest. Counts as an allocation. Returns BFC_OK, BFC_INVALID_SIZE (0, more than the block
 * has, or BFC_LARGE and more where such a block may not start), BFC_INVALID_POINTER,
 * BFC_UNKNOWN_POINTER or BFC_NO_HOST_MEMORY; except for BFC_OK nothing has changed.
 */
enum bfc_status bfc_pool_carve(struct bfc_pool *pool, bfc_addr start, uint64_t bytes);

/* One call, as a pool notes it. */
struct bfc_pool_note {
    uint64_t id;     /* of the block */
    uint64_t bytes;  /* requested, as it was handed out; 0: it was taken back */
    uint64_t thread; /* that it was handed out to: a number that no other thread has meanwhile */
};

/*
 * Notes from now on which blocks are handed out and taken back, in the order in which that happens,
 * in `notes`, `most` of them; then, or at once with most 0, no more. The memory must stay until
 * another such call. What bfc_pool_carve makes of a block is not noted.
 */
void bfc_pool_take_notes(struct bfc_pool *pool, struct bfc_pool_note *notes, uint64_t most);

/* How many there are since that call; so many may be read. */
uint64_t bfc_pool_notes(struct bfc_pool *pool);

/* How many blocks have ever been deferred. Read it before recording a fence for them. */
uint64_t bfc_pool_deferred_arrivals(struct bfc_pool *pool);

/*
 * Gives this fence to the deferred blocks that had arrived when the count was `arrivals`; not to
 * later ones, whose last work may be later than the fence. UINT64_MAX: to all. O(deferred blocks)
 * under the lock.
 */
void bfc_pool_fence_deferred(struct bfc_pool *pool, bfc_fence fence, uint64_t arrivals);

/* Says that all fences up to `fence` are complete. */
void bfc_pool_complete(struct bfc_pool *pool, bfc_fence fence);

/* The block, live, free or bare, that holds `address`. False: it is in none of the pool's regions.
 */
bool bfc_pool_find(struct bfc_pool *pool, bfc_addr address, struct bfc_block_info *block);

/*
 * Says that the region of `address` was shown to others (IPC, dma-buf, registration): its pending
 * blocks are never handed out by BFC_ALLOCATE_PENDING, and while `held` it is never given back.
 * With pages the region is a whole reservation, and bfc_pool_pin keeps what is behind a range.
 */
void bfc_pool_share_region(struct bfc_pool *pool, bfc_addr address, bool held);

/*
 * Gives wholly free and ready regions back to the upstream, largest first, until at least `bytes`
 * went or none is left; returns how many bytes went. UINT64_MAX: all. With pages it gives back
 * ready pages first; here and below a region goes only if it took the place of pages.
 */
uint64_t bfc_pool_trim(struct bfc_pool *pool, uint64_t bytes);

/*
 * The same for regions that are wholly free, ready or not, without an awaited block: only for an
 * upstream whose release waits for the work that may still use them. If a region does not go back,
 * all its blocks are deferred. Pages go as in bfc_pool_trim, and before: nothing is known of what
 * unmapping waits for.
 */
uint64_t bfc_pool_trim_used(struct bfc_pool *pool, uint64_t bytes);

/* Gives one region back, an idle one if there is any, else one as bfc_pool_trim_used does; none of
 * pages. `*error` is the code of the upstream's last release; without a release it is unchanged. */
void bfc_pool_release_one(struct bfc_pool *pool, int *error);

/*
 * Gives back the regions that have been wholly free and ready for `idle_ns`, as seen by the calls
 * of this function: call it at intervals, in a pool made with track_idle. Returns how many bytes
 * went.
 */
uint64_t bfc_pool_trim_idle(struct bfc_pool *pool, uint64_t idle_ns);

/* Waits until regions that other threads are giving back are with the upstream, a second at most.
 * Returns how many bytes that were; 0: some are still on their way, or none were. */
uint64_t bfc_pool_await_releases(struct bfc_pool *pool);

/* Bytes of the smallest region that a pool without pages would take for a block of `bytes`: more
 * than these where the policy's regions have their sizes, and it asks for no smaller ones. */
uint64_t bfc_pool_least_growth(struct bfc_pool *pool, uint64_t bytes);

/* Returns a consistent copy of the counters, with largest_free brought up to date. */
void bfc_pool_read_stats(struct bfc_pool *pool, struct bfc_pool_stats *stats);

/* What a pool has beside what is live once all work under way is done, in bytes. Of what is
 * awaited nothing counts, since nobody knows when its stream comes to that. */
struct bfc_pool_room {
    uint64_t reserved;  /* of regions and pages in which nothing is live */
    uint64_t on_device; /* that the device has more when they go: it gives whole pages of 2 MiB */
    uint64_t releasing; /* of regions that are on their way to the upstream */
    uint64_t largest;   /* block that the largest free one has room for */
};

/* O(regions + free blocks); with pages it waits for who makes or moves some. */
void bfc_pool_read_room(struct bfc_pool *pool, struct bfc_pool_room *room);

/*
 * Bytes that are ready but lie in free blocks too small for a request of `bytes`: what
 * fragmentation keeps from it. O(free blocks that are large enough) under the lock.
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
