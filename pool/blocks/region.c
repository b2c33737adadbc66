#include "pool/blocks/region.h"

#include "pool/blocks/slots.h"
#include "pool/blocks/surgery.h"

static region_index take_region_record(struct bfc_pool *pool) {
    region_index r = pool->vacant_region;
    if (r) {
        pool->vacant_region = (region_index)pool->regions[r].start;
        return r;
    }
    uint64_t bytes = ((uint64_t)pool->region_high + 1) * sizeof(struct region);
    if (!host_array_commit(&pool->region_memory, bytes))
        return 0;
    return pool->region_high++;
}

static void vacate_region_record(struct bfc_pool *pool, region_index r) {
    pool->regions[r] = (struct region){.start = pool->vacant_region};
    pool->vacant_region = r;
}

static bool note_head(struct bfc_pool *pool, block_index head, region_index r, bfc_addr start) {
    pool->blocks[head] = (struct block){.tagged = start | BLOCK_HEAD, .previous = r};
    return address_index_add(&pool->index, &pool->blocks[head], head, r);
}

static void fill_region(struct bfc_pool *pool, const struct region *region, block_index b,
                        enum block_zone zone, region_index r) {
    pool->blocks[b] = (struct block){.tagged = region->start,
                                     .last = (uint32_t)((region->size >> BFC_GRANULE_BITS) - 1),
                                     .previous = pool->regions[r].head};
    block_set_bit(&pool->blocks[b], BLOCK_ZONE_BIT, zone == ZONE_SMALL);
    if (is_indexed(b))
        address_index_add(&pool->index, &pool->blocks[b], b, r);
}

block_index region_attach(struct bfc_pool *pool, const struct region *region,
                          enum block_zone zone) {
    region_index r = slots_prepare(pool, 2) ? take_region_record(pool) : 0;
    if (!r)
        return 0;
    block_index head = slot_take(pool), b = slot_take(pool);
    if (!note_head(pool, head, r, region->start)) {
        vacate_region_record(pool, r);
        slot_vacate(pool, b);
        slot_vacate(pool, head);
        return 0;
    }
    pool->blocks[head].next = b;
    pool->regions[r] = *region;
    pool->regions[r].head = head;
    pool->shared_regions += region->shared;
    pool->stats->regions++;
    fill_region(pool, region, b, zone, r);
    return b;
}

/* Called when the pool has no region any more: gives back the memory of the region records and of
 * the address index. */
static void forget_region_records(struct bfc_pool *pool) {
    pool->region_high = 1;
    pool->vacant_region = 0;
    host_array_give_back(&pool->region_memory, sizeof(struct region));
    address_index_reset(&pool->index);
}

void region_detach(struct bfc_pool *pool, region_index r) {
    struct region *region = &pool->regions[r];
    block_index b = pool->blocks[region->head].next;
    address_index_remove(&pool->index, &pool->blocks[b]);
    address_index_remove(&pool->index, &pool->blocks[region->head]);
    slot_vacate(pool, b);
    slot_vacate(pool, region->head);
    pool->shared_regions -= region->shared;
    pool->apart_regions -= region->apart;
    pool->stats->regions--;
    vacate_region_record(pool, r);
    if (!pool->stats->regions)
        forget_region_records(pool);
}

block_index find_holding(const struct bfc_pool *pool, bfc_addr address) {
    block_index b = map_find(&pool->map, pool->blocks, address & ~BLOCK_TAG_MASK);
    if (b)
        return b;
    /* The index has nodes for only some blocks. So the search begins at the last node at or before
     * the address, and the loop walks from there to the block that holds the address. */
    b = pool->index.nodes[address_index_find(&pool->index, address)].block;
    if (block_state(&pool->blocks[b]) == BLOCK_HEAD)
        b = pool->blocks[b].next;
    while (b && address - block_start(&pool->blocks[b]) >= block_size(&pool->blocks[b]))
        b = pool->blocks[b].next;
    return b;
}
