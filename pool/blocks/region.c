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

/* Takes the records of a head and of a block; false: the host has no memory for them. */
static bool take_records(struct bfc_pool *pool, block_index *head, block_index *b) {
    *head = slot_take(pool);
    *b = *head ? slot_take(pool) : 0;
    if (*head && !*b)
        slot_vacate(pool, *head);
    return *b;
}

static bool note_head(struct bfc_pool *pool, block_index head, block_index b, region_index r,
                      bfc_addr start) {
    pool->blocks[head] = (struct block){.tagged = start, .previous = r, .next = b};
    block_set_state(&pool->blocks[head], BLOCK_HEAD);
    return address_index_add(&pool->index, &pool->blocks[head], head, r);
}

static void fill_region(struct bfc_pool *pool, const struct region *region, block_index b,
                        enum block_zone zone, region_index r) {
    pool->blocks[b] = (struct block){.tagged = region->start,
                                     .last = (uint32_t)((region->size >> BFC_GRANULE_BITS) - 1),
                                     .previous = pool->regions[r].head};
    block_set_zone(&pool->blocks[b], zone);
    if (is_indexed(b))
        address_index_add(&pool->index, &pool->blocks[b], b, r);
}

block_index region_attach(struct bfc_pool *pool, const struct region *region,
                          enum block_zone zone) {
    block_index head, b;
    if (!take_records(pool, &head, &b))
        return 0;
    region_index r = take_region_record(pool);
    if (!r || !note_head(pool, head, b, r, region->start)) {
        if (r)
            vacate_region_record(pool, r);
        slot_vacate(pool, b);
        slot_vacate(pool, head);
        return 0;
    }
    pool->regions[r] = (struct region){.start = region->start,
                                       .size = region->size,
                                       .head = head,
                                       .shared = region->shared,
                                       .planned = region->planned,
                                       .paged = region->paged};
    pool->shared_regions += region->shared;
    pool->stats->regions++;
    fill_region(pool, region, b, zone, r);
    return b;
}

/* Called when no region is left: the arrays of regions and of index nodes become empty. */
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
