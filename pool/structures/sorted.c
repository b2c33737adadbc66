#include "pool/structures/sorted.h"

static uint64_t priority_of_block(const struct block *b) {
    return (block_start(b) / BFC_GRANULE) * UINT64_C(0xd6e8feb86659fd93);
}

bool sorted_precede(const struct block *a, const struct block *b) {
    if (block_zone(a) != block_zone(b))
        return block_zone(a) < block_zone(b);
    return a->last != b->last ? a->last < b->last : block_start(a) < block_start(b);
}

void sorted_insert(block_index *root, struct block *blocks, block_index b) {
    struct block *at = &blocks[b];
    block_index *link = root;
    while (*link && priority_of_block(&blocks[*link]) >= priority_of_block(at))
        link = sorted_precede(at, &blocks[*link]) ? &blocks[*link].before : &blocks[*link].after;
    block_index rest = *link, *lower = &at->before, *higher = &at->after;
    *link = b;
    while (rest) {
        if (sorted_precede(&blocks[rest], at)) {
            *lower = rest;
            lower = &blocks[rest].after;
            rest = *lower;
        } else {
            *higher = rest;
            higher = &blocks[rest].before;
            rest = *higher;
        }
    }
    *lower = *higher = 0;
}

void sorted_remove(block_index *root, struct block *blocks, block_index b) {
    block_index *link = root;
    while (*link != b)
        link = sorted_precede(&blocks[b], &blocks[*link]) ? &blocks[*link].before
                                                          : &blocks[*link].after;
    block_index lower = blocks[b].before, higher = blocks[b].after;
    while (lower && higher) {
        if (priority_of_block(&blocks[lower]) >= priority_of_block(&blocks[higher])) {
            *link = lower;
            link = &blocks[lower].after;
            lower = *link;
        } else {
            *link = higher;
            link = &blocks[higher].before;
            higher = *link;
        }
    }
    *link = lower ? lower : higher;
}

/* With `before`, returns the last block of the treap that comes before `key` in the order of zone,
 * size and address, otherwise the first that does not. 0: there is none in the zone of `key`. */
static block_index find_beside(block_index root, const struct block *blocks,
                               const struct block *key, bool before) {
    block_index lower = 0, higher = 0;
    for (block_index b = root; b;) {
        if (sorted_precede(&blocks[b], key)) {
            lower = b;
            b = blocks[b].after;
        } else {
            higher = b;
            b = blocks[b].before;
        }
    }
    block_index found = before ? lower : higher;
    return found && block_zone(&blocks[found]) == block_zone(key) ? found : 0;
}

block_index sorted_find(block_index root, const struct block *blocks, enum block_zone zone,
                        uint64_t granules) {
    const struct block key = {.tagged = (uint64_t)zone << BLOCK_ZONE_BIT,
                              .last = (uint32_t)(granules - 1)};
    return find_beside(root, blocks, &key, false);
}

block_index sorted_next(block_index root, const struct block *blocks, block_index b) {
    struct block key = blocks[b];
    key.tagged += BFC_GRANULE;
    return find_beside(root, blocks, &key, false);
}

block_index sorted_largest(block_index root, const struct block *blocks, enum block_zone zone) {
    const struct block key = {.tagged = ~BLOCK_TAG_MASK | (uint64_t)zone << BLOCK_ZONE_BIT,
                              .last = UINT32_MAX};
    return find_beside(root, blocks, &key, true);
}

block_index sorted_previous(block_index root, const struct block *blocks, block_index b) {
    return find_beside(root, blocks, &blocks[b], true);
}
