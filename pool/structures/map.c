#include "pool/structures/map.h"

/* How many buckets one call adds or removes at most. */
#define BUCKETS_A_CALL 4
/* The memory of unused buckets goes back to the operating system in pieces of this many buckets. */
#define BUCKETS_A_PIECE 16384

/* Sets the two bounds on the number of blocks. Above `most` there are fewer than 1.5 buckets for
 * each block, and the map adds some; below `fewest` there are more than 3, and it removes some. */
static void set_bucket_count(struct map *map, uint32_t buckets) {
    map->bucket_count = buckets;
    map->most = (uint32_t)((uint64_t)buckets * 2 / 3);
    map->fewest = buckets > MAP_FEWEST_KEPT ? buckets / 3 : 0;
}

bool map_open(struct map *map, uint64_t most_blocks) {
    uint64_t fewest = MAP_FEWEST_BUCKETS * sizeof(block_index);
    uint64_t most = (most_blocks + most_blocks / 2 + BUCKETS_A_CALL + 1) * sizeof(block_index);
    map->buckets = host_array_open(&map->memory, most + fewest, fewest);
    if (!map->buckets)
        return false;
    map->mask = MAP_FEWEST_BUCKETS - 1;
    set_bucket_count(map, MAP_FEWEST_BUCKETS);
    return true;
}

/* Called when bucket `to` is added: moves there the blocks of bucket `from` whose hash now leads to
 * `to`. */
static void split_bucket(struct map *map, struct block *blocks, uint32_t from, uint32_t to) {
    block_index *at = &map->buckets[from];
    map->buckets[to] = 0;
    while (*at) {
        block_index b = *at;
        if ((map_hash(blocks[b].tagged) & map->mask) != to) {
            at = &blocks[b].chain;
            continue;
        }
        *at = blocks[b].chain;
        blocks[b].chain = map->buckets[to];
        map->buckets[to] = b;
    }
}

static bool add_bucket(struct map *map, struct block *blocks) {
    uint32_t added = map->bucket_count;
    if (!host_array_commit(&map->memory, ((uint64_t)added + 1) * sizeof(block_index)))
        return false;
    if (added > map->mask)
        map->mask = map->mask * 2 + 1;
    split_bucket(map, blocks, added & (map->mask >> 1), added);
    set_bucket_count(map, added + 1);
    return true;
}

void map_grow(struct map *map, struct block *blocks) {
    for (int i = 0; i < BUCKETS_A_CALL && map->count > map->most; i++)
        if (!add_bucket(map, blocks))
            return;
}

static void remove_bucket(struct map *map, struct block *blocks) {
    uint32_t last = map->bucket_count - 1;
    block_index *at = &map->buckets[last & (map->mask >> 1)];
    while (*at)
        at = &blocks[*at].chain;
    *at = map->buckets[last];
    /* Another thread may have got this bucket's index from map_glimpse, and pass it to
     * bfc_pool_free_ready after the bucket is gone. bfc_pool_free_ready then finds the bucket
     * empty, and so searches for the block again. */
    map->buckets[last] = 0;
    set_bucket_count(map, last);
    if (last == (map->mask >> 1) + 1)
        map->mask >>= 1;
    if (last % BUCKETS_A_PIECE == 0)
        host_array_give_back(&map->memory, (uint64_t)last * sizeof(block_index));
}

void map_shrink(struct map *map, struct block *blocks) {
    for (int i = 0; i < BUCKETS_A_CALL; i++)
        if (map->count < map->fewest)
            remove_bucket(map, blocks);
}
