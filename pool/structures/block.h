/*
 * Block records: of fixed size, identified by a 32-bit index; index 0 stands for no block.
 *
 * A record has a part in each of two arrays: `struct block` (32 bytes, two to a cache line) is all
 * that allocating, freeing and merging usually need; `struct block_detail` (16 bytes) is for blocks
 * that have a fence, are deferred, or are much larger than requested. Neighbours in a region are
 * doubly linked in address order, starting at the region's head, a record that stands before the
 * first block. Record 0 looks like a live block and may be written to, so the end of a region or of
 * a list needs no special case.
 */
#ifndef BFC_POOL_BLOCK_H
#define BFC_POOL_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "pool/pool.h"

typedef uint32_t block_index;

/* The size of the largest block in granules and in bytes. No region is larger either. */
#define MOST_GRANULES ((uint64_t)1 << 32)
#define LARGEST_BLOCK (MOST_GRANULES << BFC_GRANULE_BITS)

#define LARGE_GRANULES (BFC_LARGE >> BFC_GRANULE_BITS)
/* The most granules that stay unused before a block because it must start at a multiple of
 * BFC_ALIGNMENT. */
#define MOST_LEAD ((BFC_ALIGNMENT >> BFC_GRANULE_BITS) - 1)

enum block_state {
    BLOCK_LIVE,
    BLOCK_READY,
    BLOCK_PENDING,
    BLOCK_DEFERRED,
    BLOCK_AWAITED,
    BLOCK_VACANT,
    /* not a block, but the record before the first block of a region; it holds the region's
     * index */
    BLOCK_HEAD,
    BLOCK_BARE, /* a range of reserved addresses without memory behind it */
};
#define BLOCK_STATE_MASK ((uint64_t)7)

/* All blocks of a region have the region's zone. Policy pytorch has separate regions for small
 * blocks, and so has a pool that has moved many pages. Where all blocks share regions, the zone is
 * ZONE_LARGE. */
enum block_zone { ZONE_LARGE, ZONE_SMALL, ZONE_COUNT };
/* Bits of the field `tagged` of struct block, above the bits of the state. BLOCK_ZONE_BIT is set if
 * the block's zone is ZONE_SMALL. */
#define BLOCK_ZONE_BIT 3
/* the block's region is set apart: only allocations at a given address or with BFC_ALLOCATE_APART
 * take memory there */
#define BLOCK_APART_BIT 4
/* the block is ready and fills a large region, which the pool tries to keep wholly free
 * (whole.h) */
#define BLOCK_WHOLE_BIT 5
#define BLOCK_REGION_MASK ((uint64_t)7 << BLOCK_ZONE_BIT)

#define BLOCK_TAG_MASK ((uint64_t)(BFC_GRANULE - 1))

/* A live block's field `identity` holds the slack, which is the size less the requested bytes, in
 * the low SLACK_BITS, and the id in the other 48 bits: enough for ten months of ten million
 * allocations a second. MUCH_SLACK in place of the slack means that the block's struct block_detail
 * is in use, and holds the slack and a fence. */
#define SLACK_BITS 16
#define MUCH_SLACK ((1u << SLACK_BITS) - 1)

struct block {
    /* the address of the block; the low bits, which are 0 in every block's address, hold the state
     * and flags such as BLOCK_ZONE_BIT */
    uint64_t tagged;
    /* the block's size in granules, less one, so that 32 bits suffice for 2^32 granules */
    uint32_t last;
    /* the neighbours in the region, in address order. In a vacant record: the neighbours in the
     * list of vacant records. In a region's head: `previous` is the index of the region. */
    block_index previous, next;
    union {
        block_index chain; /* of a live block: the next block of the same bucket of the map */
        uint32_t bin;      /* of a ready or pending block: the index of its bin */
    };
    union {
        struct {
            /* of a ready or pending block: its neighbours in the list of its bin; of a block in a
             * treap: its two children */
            block_index before, after;
        };
        uint64_t identity; /* of a live block: its id and slack (SLACK_BITS) */
    };
};

struct block_detail {
    union {
        uint64_t slack;  /* of a live block: its size less the requested bytes */
        bfc_fence fence; /* of a pending block: its fence; of a bare block: 0 */
        /* of a deferred block: the value of the pool's count deferred_arrivals after the latest
         * free that made this block or a part of it deferred */
        uint64_t arrivals;
    };
    union {
        struct {
            /* of a pending, deferred or bare block: its neighbours in the struct block_list */
            block_index older, newer;
        };
        /* of a live block: the fence under which it was handed out while pending; BFC_NO_FENCE: it
         * was not pending */
        bfc_fence handed_out;
    };
};

_Static_assert(sizeof(struct block) == 32, "two to a cache line");
_Static_assert(sizeof(struct block_detail) == 16, "part of the bound on host memory");

/* A list of pending, deferred or bare blocks, in rising order of `fence` or `arrivals` of their
 * struct block_detail. */
struct block_list {
    block_index oldest, newest;
};

static inline enum block_state block_state(const struct block *b) {
    return (enum block_state)(b->tagged & BLOCK_STATE_MASK);
}

static inline bool block_is_free(const struct block *b) {
    enum block_state state = block_state(b);
    return state >= BLOCK_READY && state <= BLOCK_AWAITED;
}

static inline uint64_t block_id(const struct block *b) {
    return b->identity >> SLACK_BITS;
}

/* Returns a live block's size less the requested bytes; MUCH_SLACK: struct block_detail holds
 * it. */
static inline uint64_t block_slack(const struct block *b) {
    return b->identity & MUCH_SLACK;
}

/* Whether the block's struct block_detail is in use. */
static inline bool block_has_detail(const struct block *b) {
    enum block_state state = block_state(b);
    return state == BLOCK_LIVE
               ? block_slack(b) == MUCH_SLACK
               : state == BLOCK_PENDING || state == BLOCK_DEFERRED || state == BLOCK_BARE;
}

static inline bfc_addr block_start(const struct block *b) {
    return b->tagged & ~BLOCK_TAG_MASK;
}

static inline uint64_t block_granules(const struct block *b) {
    return (uint64_t)b->last + 1;
}

static inline uint64_t block_size(const struct block *b) {
    return block_granules(b) << BFC_GRANULE_BITS;
}

static inline bfc_addr block_end(const struct block *b) {
    return block_start(b) + block_size(b);
}

static inline void block_set_state(struct block *b, enum block_state state) {
    b->tagged = (b->tagged & ~BLOCK_STATE_MASK) | (uint64_t)state;
}

/* Returns the bits BLOCK_ZONE_BIT, BLOCK_APART_BIT and BLOCK_WHOLE_BIT. They are 0 for most blocks,
 * which need no special bins. */
static inline uint64_t block_region_bits(const struct block *b) {
    return b->tagged & BLOCK_REGION_MASK;
}

static inline enum block_zone block_zone(const struct block *b) {
    return (enum block_zone)(b->tagged >> BLOCK_ZONE_BIT & 1);
}

static inline bool block_is_apart(const struct block *b) {
    return b->tagged >> BLOCK_APART_BIT & 1;
}

static inline bool block_is_whole(const struct block *b) {
    return b->tagged >> BLOCK_WHOLE_BIT & 1;
}

/* Whether the block is ready, but does not fill a large region that the pool tries to keep wholly
 * free (BLOCK_WHOLE_BIT). */
static inline bool block_is_open(const struct block *b) {
    uint64_t mask = BLOCK_STATE_MASK | (uint64_t)1 << BLOCK_WHOLE_BIT;
    return (b->tagged & mask) == BLOCK_READY;
}

static inline void block_set_bit(struct block *b, unsigned bit, bool value) {
    b->tagged = (b->tagged & ~((uint64_t)1 << bit)) | (uint64_t)value << bit;
}

/* Changes the two links that lead to a place in the list: after block `older` comes block `after`,
 * and before block `newer` comes block `before`. If `older` or `newer` is 0, the list's own end is
 * changed. */
static inline void list_link(struct block_list *list, struct block_detail *details,
                             block_index older, block_index newer, block_index after,
                             block_index before) {
    *(older ? &details[older].newer : &list->oldest) = after;
    *(newer ? &details[newer].older : &list->newest) = before;
}

/* Inserts block b by its `fence` or `arrivals`. O(1) if b belongs at the end, as it usually does;
 * otherwise O(blocks that come after b). */
static inline void list_add(struct block_list *list, struct block_detail *details, block_index b) {
    block_index older = list->newest;
    while (older && details[older].fence > details[b].fence)
        older = details[older].older;
    details[b].older = older;
    details[b].newer = older ? details[older].newer : list->oldest;
    list_link(list, details, older, details[b].newer, b, b);
}

static inline void list_remove(struct block_list *list, struct block_detail *details,
                               block_index b) {
    block_index older = details[b].older, newer = details[b].newer;
    list_link(list, details, older, newer, newer, older);
}

#endif
