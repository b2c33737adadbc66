/*
 * Address map: from the start of a live block to its record.
 *
 * Linear hashing (W. Litwin, "Linear hashing: a new tool for file and table addressing", 1980): the
 * table grows and shrinks by single buckets as blocks come and go, so no call ever rehashes more
 * than a few chains. There are 1.5 to 3 buckets of 4 bytes for each block; the blocks of a bucket
 * are chained through their records. O(1).
 */
#ifndef BFC_POOL_MAP_H
#define BFC_POOL_MAP_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "pool/structures/block.h"
#include "pool/structures/host.h"

#define MAP_FEWEST_BUCKETS 64
#define MAP_FEWEST_KEPT 8192 /* a table of at most this many buckets (32 KiB) does not shrink */
/* the most blocks of a chain that map_glimpse looks at; nearly all chains have fewer */
#define MAP_GLIMPSED 3

struct map {
    block_index *buckets;
    uint32_t bucket_count;
    uint32_t mask; /* the least power of two that is not below bucket_count, less one */
    uint32_t count;
    /* with fewer blocks than the first number, buckets are removed; with more than the second,
     * buckets are added */
    uint32_t fewest, most;
    struct host_array memory;
};

READS_WITHOUT_LOCK static inline uint32_t map_hash(bfc_addr start) {
    /* Multiplicative hashing by the golden ratio (D. Knuth, TAOCP 3, 6.4). The low bits are left
     * out, because they are 0 in every block's address. */
    return (uint32_t)(((start >> BFC_GRANULE_BITS) * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

READS_WITHOUT_LOCK static inline uint32_t map_bucket(const struct map *map, bfc_addr start) {
    uint32_t mask = bfc_load_relaxed(&map->mask), bucket = map_hash(start) & mask;
    /* A hash that lies beyond the last bucket loses its highest bit. Computed without a branch,
     * because the processor could not predict it. */
    return bucket & (mask >> 1 | -(uint32_t)(bucket < bfc_load_relaxed(&map->bucket_count)));
}

/* Whether b is live and starts at `start`. */
static inline bool map_is_at(const struct block *b, bfc_addr start) {
    return (b->tagged & ~BLOCK_REGION_MASK) == start;
}

static inline block_index map_find(const struct map *map, const struct block *blocks,
                                   bfc_addr start) {
    block_index b = map->buckets[map_bucket(map, start)];
    while (b && !map_is_at(&blocks[b], start))
        b = blocks[b].chain;
    return b;
}

/*
 * Looks for the live block that starts at `start` among the first MAP_GLIMPSED blocks of its chain,
 * without the lock. If a block is returned, it started there at the time of the call, though
 * another thread may free it at once. If 0 is returned, a live block may start there all the same.
 * Reading while other threads change the map is safe: buckets and records never move, and their
 * memory stays readable. If a block has been freed meanwhile, its `bin` is read as `chain`; but
 * that number too is always the index of a readable record.
 */
READS_WITHOUT_LOCK static inline block_index
map_glimpse(const struct map *map, const struct block *blocks, bfc_addr start, uint32_t *bucket) {
    *bucket = map_bucket(map, start);
    block_index b = bfc_load_relaxed(&map->buckets[*bucket]);
    for (int i = 0; i < MAP_GLIMPSED; i++, b = bfc_load_relaxed(&blocks[b].chain))
        if (LIKELY((bfc_load_relaxed(&blocks[b].tagged) & ~BLOCK_REGION_MASK) == start))
            return b;
    return 0;
}

/* Adds or removes a few buckets, so that there are 1.5 to 3 for each block. If the host has no
 * memory for more buckets, the chains get longer instead. */
void map_grow(struct map *map, struct block *blocks);
void map_shrink(struct map *map, struct block *blocks);

/* Inserts block b, but adds no buckets: if the map then has more than `most` blocks, the caller
 * must call map_grow. map_insert does both. */
static inline void map_link(struct map *map, struct block *blocks, block_index b) {
    block_index *bucket = &map->buckets[map_bucket(map, blocks[b].tagged)];
    blocks[b].chain = *bucket;
    *bucket = b;
    map->count++;
}

static inline void map_insert(struct map *map, struct block *blocks, block_index b) {
    map_link(map, blocks, b);
    if (UNLIKELY(map->count > map->most))
        map_grow(map, blocks);
}

/* Puts record `with` in the place of record `b` in the chain that holds `b`. */
static inline void map_replace(struct map *map, struct block *blocks, block_index b,
                               block_index with) {
    block_index *at = &map->buckets[map_bucket(map, blocks[b].tagged)];
    while (*at != b)
        at = &blocks[*at].chain;
    *at = with;
}

/* Finds the live block that starts at `start`. Returns where the map has its index: the entry of a
 * bucket, or the `chain` of the record before it. If there is no such block, the end of the chain,
 * which is 0. */
static inline block_index *map_find_link(struct map *map, struct block *blocks, bfc_addr start) {
    block_index *link = &map->buckets[map_bucket(map, start)];
    while (*link && !map_is_at(&blocks[*link], start))
        link = &blocks[*link].chain;
    return link;
}

/* Removes a block, but no buckets; `link` is what map_find_link has returned for it. If the map
 * then has fewer than `fewest` blocks, the caller must call map_shrink. */
static inline void map_unlink(struct map *map, struct block *blocks, block_index *link) {
    *link = blocks[*link].chain;
    map->count--;
}

bool map_open(struct map *map, uint64_t most_blocks);

#endif
