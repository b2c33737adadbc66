/*
 * The pool's inside: its struct, and what its files know of each other.
 *
 * core.c     splitting, merging, changing state: the surgery, and the two hot calls
 * marks.c    dirty and limbo blocks, and how they become clean
 * regions.c  taking regions in and giving them back
 * serve.c    what an allocation does when nothing fits: poll, wait, grow, and the last resorts
 * slots.c    block records: taking, vacating, moving them together
 * query.c    what is asked about blocks and counters
 * policy.c   what the policies differ in
 * idle.c     giving idle regions back: by age, by threshold, by need
 * check.c    the invariants
 *
 * Everything here is called under the lock unless it says otherwise.
 */
#ifndef BFC_POOL_INTERNAL_H
#define BFC_POOL_INTERNAL_H

#include <pthread.h>

#include "pool/anchor.h"
#include "pool/bins.h"
#include "pool/block.h"
#include "pool/host.h"
#include "pool/lock.h"
#include "pool/map.h"
#include "pool/policy.h"
#include "pool/pool.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

struct region {
    bfc_addr start; /* of a vacant one, size is 0 and this is the next vacant one */
    uint64_t size;
    block_index head;    /* the record before its first block */
    bool shared;         /* was shown to others: its dirty blocks are in no bin */
    bool held;           /* never given back */
    uint64_t idle_since; /* lookups, when it last became wholly free; with rules.ages */
    uint64_t seen_idle;  /* idle_since at the last look of bfc_pool_trim_idle... */
    uint64_t seen_ns;    /* ...and when it first saw that */
};

/*
 * Invariants (checked by bfc_pool_check):
 *   blocks tile their region without gap or overlap;
 *   no two neighbours of a region are both clean, both limbo, or both dirty with one mark;
 *   in_use + clean + dirty + limbo = reserved, each the sum over its blocks;
 *   each clean block is in the one bin of its size, as is each dirty one, with reuse_dirty, but
 *   those of shared regions;
 *   each dirty block is in the list of marks, which rises; each limbo block is in its list;
 *   each live block is in the map once; each region has a head, which leads its blocks;
 *   each head, and each block that should be one, is an anchor;
 *   each record is a block's, a head or vacant.
 */
struct bfc_pool {
    struct pool_lock lock;
    struct bfc_pool_stats *stats;
    struct block *blocks;
    struct block_detail *details;
    unsigned granule_bits; /* of rules.unit: what sizes are counted in */
    struct map map;
    block_index vacant;   /* list of vacant records, doubly linked by their neighbour links; the
                             `previous` of its first is not in use */
    uint32_t high;        /* all records in use are below it... */
    uint32_t records;     /* ...and they are so many, without record 0... */
    uint32_t few_records; /* ...which, if they are fewer, are moved together */
    uint64_t next_id, last_id;
    bfc_mark completed;
    bfc_mark oldest_mark; /* of any dirty block; UINT64_MAX: there is none */
    block_index oldest, newest;
    block_index limbo;       /* list of limbo blocks, who came last first */
    uint64_t limbo_arrivals; /* blocks that ever came there */
    struct bins clean, dirty;
    struct anchors anchors;
    struct region *regions;
    region_index region_high, vacant_region;
    uint32_t shared_regions; /* a count */

    struct host_array block_memory, detail_memory, region_memory;
    struct bfc_pool_config config;
    struct rules rules;
    struct bfc_source source;
    pthread_mutex_t
        growth_turn;    /* not the pool's lock: who has it may ask the source for a region */
    uint64_t step;      /* bytes of the next region by growth double */
    bool step_raised;   /* tf: for the region that is being asked for */
    uint64_t releasing; /* bytes of regions on their way back to the source */
    bool preallocated;
    uint64_t lookups; /* with rules.ages: allocations asked for, failed ones too, but for
                         those that were to be hits only */
    struct bfc_pool_stats own_stats;
};

static inline uint64_t block_size(const struct bfc_pool *pool, const struct block *b) {
    return block_granules(b) << pool->granule_bits;
}

/* Of a live block: the bytes that were asked for. */
static inline uint64_t block_requested(const struct bfc_pool *pool, block_index b) {
    const struct block *at = &pool->blocks[b];
    uint64_t slack = block_slack(at);
    if (UNLIKELY(slack == MUCH_SLACK))
        slack = pool->details[b].slack;
    return block_size(pool, at) - slack;
}

/* Of a live block: the mark under which it was handed out. */
static inline bfc_mark block_handed_out(const struct bfc_pool *pool, block_index b) {
    return block_slack(&pool->blocks[b]) == MUCH_SLACK ? pool->details[b].handed_out : BFC_NO_MARK;
}

/* Of a live block. */
static inline void block_identify(struct bfc_pool *pool, block_index b, uint64_t id,
                                  uint64_t requested, bfc_mark handed_out) {
    struct block *at = &pool->blocks[b];
    uint64_t slack = block_size(pool, at) - requested;
    if (UNLIKELY(slack >= MUCH_SLACK || handed_out != BFC_NO_MARK)) {
        pool->details[b] = (struct block_detail){.slack = slack, .handed_out = handed_out};
        slack = MUCH_SLACK;
    }
    at->identity = id << SLACK_BITS | slack;
}

static inline bfc_addr block_end(const struct bfc_pool *pool, const struct block *b) {
    return block_start(b) + block_size(pool, b);
}

static inline uint64_t largest_block(const struct bfc_pool *pool) {
    return MOST_GRANULES << pool->granule_bits;
}

/* What one allocation wants. */
struct request {
    uint64_t bytes, granules;
    unsigned flags;
    struct bfc_block_info *out;
};

static inline uint64_t request_size(const struct bfc_pool *pool, const struct request *request) {
    return request->granules << pool->granule_bits;
}

static inline void pool_enter(struct bfc_pool *pool) {
    pool_lock(&pool->lock);
    struct bfc_pool_stats *stats = pool->stats;
    /* One writer, so a load and a store will do; the fence keeps later writes behind the odd
     * number. */
    __atomic_store_n(&stats->sequence, stats->sequence + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

static inline void pool_leave(struct bfc_pool *pool) {
    struct bfc_pool_stats *stats = pool->stats;
    __atomic_store_n(&stats->sequence, stats->sequence + 1, __ATOMIC_RELEASE);
    pool_unlock(&pool->lock);
}

/* core.c */
/* Takes a block that is there, by whatever search and settling it needs; false: there is none. */
bool pool_take(struct bfc_pool *pool, const struct request *request);
/* Hands out a block that is clean and in a bin. */
void pool_take_block(struct bfc_pool *pool, block_index b, const struct request *request);
/* Joins neighbouring clean and dirty blocks, marks too, and takes of them. */
bool pool_take_run(struct bfc_pool *pool, const struct request *request);
void pool_make_free(struct bfc_pool *pool, block_index b, bfc_mark mark);
void pool_unbin(struct bfc_pool *pool, block_index b);

/* marks.c */
#define MARKS_ALL UINT64_MAX
#define MARKS_A_CALL 64
/* Makes clean what is known to be complete, `most` blocks at most. */
void marks_settle(struct bfc_pool *pool, uint64_t most);
void marks_complete(struct bfc_pool *pool, bfc_mark mark);
void marks_add(struct bfc_pool *pool, block_index b, bfc_mark mark);
void marks_remove(struct bfc_pool *pool, block_index b);
/* Puts `with` into the place of b, with its mark. */
void marks_replace(struct bfc_pool *pool, block_index b, block_index with);
void limbo_add(struct bfc_pool *pool, block_index b);
void limbo_remove(struct bfc_pool *pool, block_index b);
/*
 * A run of neighbouring clean and dirty blocks of so many granules, with the lowest highest mark of
 * all such runs; one that suffices without its dirty blocks is none. Returns its first block, or 0;
 * O(dirty blocks). `for_reuse`: none of a shared region.
 */
block_index marks_find_run(const struct bfc_pool *pool, uint64_t granules, bool for_reuse,
                           bfc_mark *mark);

/* regions.c */
enum bfc_status region_add(struct bfc_pool *pool, bfc_addr start, uint64_t size,
                           enum block_zone zone);
/* The block that is the whole region, free and clean; or 0. */
block_index region_idle_block(const struct bfc_pool *pool, const struct region *region);
/* Gives an idle region back; drops the lock meanwhile. Returns its size. */
uint64_t region_release(struct bfc_pool *pool, region_index r);
uint64_t regions_release(struct bfc_pool *pool, uint64_t bytes); /* drops the lock meanwhile */
uint64_t regions_releasable(const struct bfc_pool *pool);
bool regions_grow(struct bfc_pool *pool, const struct request *request, enum bfc_status *status);
void regions_forget(struct bfc_pool *pool, bool release);

/* idle.c */
void idle_collect(struct bfc_pool *pool);
/* As RUNG_RELEASE_LARGE says. False: it cannot help, though something may have gone. */
bool idle_release_large(struct bfc_pool *pool, uint64_t size);

/* serve.c */
enum bfc_status serve_miss(struct bfc_pool *pool, const struct request *request);

/* slots.c */
#define SLOTS_KEPT 4096 /* records that are never given back */

block_index slot_take_fresh(struct bfc_pool *pool);
void slots_move_together(struct bfc_pool *pool);

static inline void slot_unlink_vacant(struct bfc_pool *pool, block_index b) {
    struct block *blocks = pool->blocks;
    block_index next = blocks[b].next, previous = blocks[b].previous;
    blocks[next].previous = previous; /* record 0 takes what is for none */
    *(b != pool->vacant ? &blocks[previous].next : &pool->vacant) = next;
}

static inline void slot_vacate(struct bfc_pool *pool, block_index b) {
    struct block *blocks = pool->blocks;
    blocks[b].tagged = BLOCK_VACANT;
    blocks[b].next = pool->vacant;
    blocks[pool->vacant].previous = b;
    pool->vacant = b;
    pool->records--;
}

/* A record, whose contents are anything; or 0: the host has no memory for it. */
static inline block_index slot_take(struct bfc_pool *pool) {
    block_index b = pool->vacant;
    pool->records++;
    if (UNLIKELY(!b))
        return slot_take_fresh(pool);
    pool->vacant = pool->blocks[b].next;
    return b;
}

/* Moves records together, a few a call: no index kept by the caller holds afterwards. */
static inline void slots_settle(struct bfc_pool *pool) {
    if (UNLIKELY(pool->records < pool->few_records))
        slots_move_together(pool);
}

bool slots_open(struct bfc_pool *pool, uint64_t most_blocks);
void slots_close(struct bfc_pool *pool);

/* query.c */
block_index pool_find_holding(const struct bfc_pool *pool, bfc_addr address);

/* O(log blocks). */
static inline struct region *region_of(const struct bfc_pool *pool, block_index b) {
    bfc_addr start = block_start(&pool->blocks[b]);
    anchor_index a = anchors_find(&pool->anchors, start);
    return &pool->regions[pool->anchors.all[a].region];
}

static inline bool is_shared(const struct bfc_pool *pool, block_index b) {
    return pool->shared_regions && region_of(pool, b)->shared;
}

/* Is this block, when it is dirty, in a bin? */
static inline bool is_reused_dirty(const struct bfc_pool *pool, block_index b) {
    return pool->config.reuse_dirty && !is_shared(pool, b);
}

/* As bfc_pool_create, with room for so many block records only. */
enum bfc_status pool_create_sized(struct bfc_pool **pool, const struct bfc_pool_config *config,
                                  const struct bfc_source *source, uint64_t most_blocks);

#endif
