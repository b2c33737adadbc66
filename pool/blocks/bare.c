
#include "base/numbers.h"
#include "pool/blocks/paging.h"
#include "pool/blocks/region.h"
#include "pool/blocks/slots.h"
#include "pool/blocks/surgery.h"

/* Cuts the range that begins at `start` out of the block that holds `start`, up to the end of the
 * range or of that block, and returns it as a block in no bin and no list. What remains of the old
 * block before and after the range stays in its bins and lists. */
static block_index cut_out(struct bfc_pool *pool, bfc_addr start, uint64_t bytes) {
    block_index b = find_holding(pool, start);
    uint64_t before = start - block_start(&pool->blocks[b]);
    if (before)
        surgery_cut_front(pool, bins_of(pool, b), b, before >> BFC_GRANULE_BITS);
    return surgery_take_front(pool, b, bytes >> BFC_GRANULE_BITS);
}

static void make_bare(struct bfc_pool *pool, block_index b) {
    region_of(pool, b)->bare += block_size(&pool->blocks[b]);
    surgery_join(pool, b, BLOCK_BARE, 0);
}

bool bare_add_region(struct bfc_pool *pool, bfc_addr start, uint64_t bytes, enum block_zone zone) {
    const struct region region = {.start = start, .size = bytes, .paged = true};
    block_index b = region_attach(pool, &region, zone);
    if (!b)
        return false;
    pool->paging->addresses += bytes;
    make_bare(pool, b);
    return true;
}

void bare_strip(struct bfc_pool *pool, bfc_addr start, uint64_t bytes) {
    pool->stats->ready -= bytes;
    pool->stats->reserved -= bytes;
    for (uint64_t done = 0, size; done < bytes; done += size) {
        block_index b = cut_out(pool, start + done, bytes - done);
        size = block_size(&pool->blocks[b]);
        make_bare(pool, b);
    }
}

void bare_back(struct bfc_pool *pool, bfc_addr start, uint64_t bytes) {
    struct bfc_pool_stats *stats = pool->stats;
    stats->reserved += bytes;
    stats->peak_reserved = bfc_max(stats->peak_reserved, stats->reserved);
    for (uint64_t done = 0, size; done < bytes; done += size) {
        block_index b = cut_out(pool, start + done, bytes - done);
        size = block_size(&pool->blocks[b]);
        region_of(pool, b)->bare -= size;
        make_ready(pool, b);
    }
}
