/*
 * Block records: fixed size, identified by a 32-bit index, index 0 for none.
 *
 * A record has a part in each of two arrays: `struct block` (32 bytes, two to a cache line) is all
 * that allocating, freeing and merging usually need; `struct block_detail` (16 bytes) is for blocks
 * that have a fence, are deferred, or are much larger than requested. Neighbours in a region are
 * doubly linked in address order, starting at the region's head. Record 0 looks like a live block
 * and may be written to, so the end of a region or of a list needs no special case.
 */
#ifndef BFC_POOL_BLOCK_H
#define BFC_POOL_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "pool/pool.h"

typedef uint32_t block_index;

/* The size of the largest block, and so of the largest region. */
#define MOST_GRANULES ((uint64_t)1 << 32)
#define LARGEST_BLOCK (MOST_GRANULES << BFC_GRANULE_BITS)

/* The alignment of a large block in granules, and the most that may lie unused before one. */
#define LARGE_GRANULES (BFC_LARGE >> BFC_GRANULE_BITS)
#define MOST_LEAD (LARGE_GRANULES - 1)

enum block_state {
    BLOCK_LIVE,
    BLOCK_READY,
    BLOCK_PENDING,
    BLOCK_DEFERRED,
    BLOCK_AWAITED,
    BLOCK_VACANT,
    /* no block: the record before the first block of a region, which holds the region's index */
    BLOCK_HEAD,
    BLOCK_BARE, /* a range of addresses without a page */
};
#define BLOCK_STATE_MASK ((uint64_t)7)

/* The zone of a region, which its blocks share. Policy pytorch has separate regions for small
 * blocks, and so has a pool that moves many pages. */
enum block_zone { ZONE_LARGE, ZONE_SMALL, ZONE_COUNT };
/* Bits of the field `tagged`, above those of the state. */
#define BLOCK_ZONE_BIT 3
#define BLOCK_APART_BIT 4 /* the block's region is set apart */
#define BLOCK_WHOLE_BIT 5 /* a ready block that is all of a large region (pool/blocks/whole.h) */
#define BLOCK_REGION_MASK ((uint64_t)7 << BLOCK_ZONE_BIT)

#define BLOCK_TAG_MASK ((uint64_t)(BFC_GRANULE - 1))

/* A live block's `identity` has its slack (size less requested bytes) in the low SLACK_BITS, and
 * its id in the other 48 bits, enough for ten months of ten million allocations a second.
 * MUCH_SLACK means that the block's detail holds the slack and the fence; other live blocks do not
 * use their details. */
#define SLACK_BITS 16
#define MUCH_SLACK ((1u << SLACK_BITS) - 1)

struct block {
    /* the start of the block; its low bits hold the state, and the bits for zone, apart and
     * whole */
    uint64_t tagged;
    uint32_t last; /* the block's size in granules, less one: sizes are 1 to 2^32 granules */
    /* neighbours; for a vacant record, links in the list of vacant records; in a region's head
     * `previous` is the index of the region */
    block_index previous, next;
    union {
        block_index chain; /* of a live block: the next one with the same hash */
        uint32_t bin;      /* ready and pending blocks: the bin of the block */
    };
    union {
        struct {
            /* ready and pending blocks: links of the bin's list; bare blocks: links of the treap */
            block_index before, after;
        };
        uint64_t identity; /* of a live block: its id and slack */
    };
};

struct block_detail {
    union {
        uint64_t slack;    /* a live block's slack */
        bfc_fence fence;   /* a pending block's fence; 0 in a bare one */
        uint64_t arrivals; /* deferred: the pool's deferred_arrivals when the last part of this
                              block was freed */
    };
    union {
        struct {
            block_index older, newer; /* pending, deferred and bare: links of struct block_list */
        };
        /* live: the fence under which the block was handed out while pending */
        bfc_fence handed_out;
    };
};

_Static_assert(sizeof(struct block) == 32, "two to a cache line");
_Static_assert(sizeof(struct block_detail) == 16, "part of the bound on host memory");

/* A list of pending, deferred or bare blocks, in rising order of the first field of their
 * details. */
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

/* Returns a live block's slack, or MUCH_SLACK. */
static inline uint64_t block_slack(const struct block *b) {
    return b->identity & MUCH_SLACK;
}

/* Whether the block uses its struct block_detail. */
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

/* Returns the bits for zone, apart and whole; 0 for a block of an ordinary region. */
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

/* Whether the block is ready, and is not a region that is kept whole. */
static inline bool block_is_open(const struct block *b) {
    uint64_t mask = BLOCK_STATE_MASK | (uint64_t)1 << BLOCK_WHOLE_BIT;
    return (b->tagged & mask) == BLOCK_READY;
}

static inline void block_set_bit(struct block *b, unsigned bit, bool value) {
    b->tagged = (b->tagged & ~((uint64_t)1 << bit)) | (uint64_t)value << bit;
}

/* Links two records of a list: `after` follows block `older`, and `before` precedes block `newer`.
 * 0 stands for an end of the list. */
static inline void list_link(struct block_list *list, struct block_detail *details,
                             block_index older, block_index newer, block_index after,
                             block_index before) {
    *(older ? &details[older].newer : &list->oldest) = after;
    *(newer ? &details[newer].older : &list->newest) = before;
}

/* Inserts b by its order. O(1) for blocks that come in the order of the list, as they usually do;
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
