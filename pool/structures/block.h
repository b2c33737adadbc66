/*
 * Block records: fixed size, found by a 32-bit index, index 0 for none.
 *
 * A record is in two arrays by how often its parts are used: `struct block` (32 bytes, two to a
 * cache line) is all that allocating, freeing and merging need; `struct block_detail` (16) is
 * for blocks with a fence, deferred, or much larger than what was asked for. Neighbours in a region
 * are doubly linked in address order, starting at the region's head. Record 0 is a live block of no
 * size, so a region's end needs no special case.
 */
#ifndef BFC_POOL_BLOCK_H
#define BFC_POOL_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "pool/pool.h"

typedef uint32_t block_index;

/* Of the largest block, and so of the largest region. */
#define MOST_GRANULES ((uint64_t)1 << 32)
#define LARGEST_BLOCK (MOST_GRANULES << BFC_GRANULE_BITS)

/* The alignment of a large block in granules, and the most granules that may lie unused before one.
 */
#define LARGE_GRANULES (BFC_LARGE >> BFC_GRANULE_BITS)
#define MOST_LEAD (LARGE_GRANULES - 1)

enum block_state {
    BLOCK_LIVE,
    BLOCK_READY,
    BLOCK_PENDING,
    BLOCK_DEFERRED,
    BLOCK_AWAITED,
    BLOCK_VACANT,
    BLOCK_HEAD, /* not a block: the record before a region's first block, which holds the region's
                   index */
    BLOCK_BARE, /* addresses without a page */
};
#define BLOCK_STATE_MASK ((uint64_t)7)

/* Policy pytorch has separate regions for small blocks, and so has a pool whose pages are on the
 * move: each block has the zone of its region. */
enum block_zone { ZONE_LARGE, ZONE_SMALL, ZONE_COUNT };
#define BLOCK_ZONE_BIT 3
/* Of blocks in a region that is set apart. */
#define BLOCK_APART_BIT 4
/* Of a ready block that is all of a large region (pool/blocks/whole.h). */
#define BLOCK_WHOLE_BIT 5
#define BLOCK_REGION_MASK                                                                          \
    ((uint64_t)7 << BLOCK_ZONE_BIT) /* what all blocks of a region have alike */

#define BLOCK_TAG_MASK ((uint64_t)(BFC_GRANULE - 1))

/* The slack of a live block whose detail holds the real slack and the fence; other live blocks do
 * not use their details. Ids have the other 48 bits, enough for a year of ten million allocations a
 * second. */
#define SLACK_BITS 16
#define MUCH_SLACK ((1u << SLACK_BITS) - 1)

struct block {
    uint64_t tagged;            /* the start, with state, zone and apart in its low bits */
    uint32_t last;              /* size in granules, less one: 1 to 2^32 granules */
    block_index previous, next; /* neighbours; of a vacant record, the list of vacant ones; of a
                                   head, `previous` is its region */
    union {
        block_index chain; /* live: next with the same hash */
        uint32_t bin;      /* ready and pending: the bin that it is in */
    };
    union {
        struct {
            block_index before, after; /* ready and pending: in their bin; bare: in their order */
        };
        uint64_t identity; /* live: the id, and in its low SLACK_BITS the size less bytes as asked,
                              or MUCH_SLACK */
    };
};

struct block_detail {
    union {
        uint64_t slack;    /* live */
        bfc_fence fence;   /* pending */
        uint64_t arrivals; /* deferred: the pool's deferred_arrivals when the last part of this
                              block was freed */
    };
    union {
        struct {
            block_index older, newer; /* pending: neighbours in the order of fences; deferred:
                                         `newer` is the block that was freed before; bare: in
                                         their list */
        };
        bfc_fence handed_out; /* live: the fence under which it was handed out pending */
    };
};

_Static_assert(sizeof(struct block) == 32, "two to a cache line");
_Static_assert(sizeof(struct block_detail) == 16, "part of the bound on host memory");

static inline enum block_state block_state(const struct block *b) {
    return (enum block_state)(b->tagged & BLOCK_STATE_MASK);
}

static inline bool block_is_free(const struct block *b) {
    enum block_state state = block_state(b);
    return state >= BLOCK_READY && state <= BLOCK_AWAITED;
}

/* Of a live block. */
static inline uint64_t block_id(const struct block *b) {
    return b->identity >> SLACK_BITS;
}

/* Of a live block: its slack if its detail does not hold that, or MUCH_SLACK. */
static inline uint64_t block_slack(const struct block *b) {
    return b->identity & MUCH_SLACK;
}

/* Is its struct block_detail in use? */
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

/* What its region is beside an ordinary one: 0, nothing. */
static inline uint64_t block_region_bits(const struct block *b) {
    return b->tagged & BLOCK_REGION_MASK;
}

static inline enum block_zone block_zone(const struct block *b) {
    return (enum block_zone)(b->tagged >> BLOCK_ZONE_BIT & 1);
}

static inline void block_set_zone(struct block *b, enum block_zone zone) {
    b->tagged = (b->tagged & ~((uint64_t)1 << BLOCK_ZONE_BIT)) | (uint64_t)zone << BLOCK_ZONE_BIT;
}

static inline bool block_is_apart(const struct block *b) {
    return b->tagged >> BLOCK_APART_BIT & 1;
}

static inline void block_set_apart(struct block *b, bool apart) {
    b->tagged = (b->tagged & ~((uint64_t)1 << BLOCK_APART_BIT)) | (uint64_t)apart
                                                                      << BLOCK_APART_BIT;
}

static inline bool block_is_whole(const struct block *b) {
    return b->tagged >> BLOCK_WHOLE_BIT & 1;
}

/* A ready block that may be cut as it is. */
static inline bool block_is_open(const struct block *b) {
    uint64_t mask = BLOCK_STATE_MASK | (uint64_t)1 << BLOCK_WHOLE_BIT;
    return (b->tagged & mask) == BLOCK_READY;
}

static inline void block_set_whole(struct block *b, bool whole) {
    b->tagged = (b->tagged & ~((uint64_t)1 << BLOCK_WHOLE_BIT)) | (uint64_t)whole
                                                                      << BLOCK_WHOLE_BIT;
}

#endif
