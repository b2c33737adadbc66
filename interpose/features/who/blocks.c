#include "interpose/features/who/blocks.h"

#include <unistd.h>

#include "base/clock.h"
#include "interpose/arena/arena.h"
#include "interpose/arena/region_map.h"
#include "interpose/features/common/answer_file.h"

static enum bfc_who_state state_of(const struct bfc_block_info *block) {
    if (block->bare)
        return BFC_WHO_BARE;
    if (block->live)
        return BFC_WHO_IN_USE;
    return block->fence == BFC_NO_FENCE ? BFC_WHO_READY : BFC_WHO_PENDING;
}

/*
 * Describes a block, or only its part from the address `at` on: the part below `at` was listed
 * before, as a block that the pool has since merged with the rest. If the merged block was then
 * allocated, the part from `at` on is listed as free, as it was before the merge, because an
 * allocation is listed only whole.
 */
static struct bfc_who_block describe_block(const struct bfc_block_info *block, uint64_t at) {
    uint64_t size = block->start + block->size - at;
    if (block->live && block->start != at)
        return (struct bfc_who_block){.start = at, .size = size, .state = BFC_WHO_READY};
    return (struct bfc_who_block){.start = at,
                                  .size = size,
                                  .requested = block->requested,
                                  .id = block->id,
                                  .state = state_of(block)};
}

/* Lists the blocks of a region. False: the region was given back meanwhile, or the list is full. */
static bool list_blocks(struct bfc_blocks *list, struct bfc_arena *arena,
                        struct bfc_who_region *region) {
    struct bfc_block_info block;
    uint64_t end = region->start + region->size, at = region->start;
    region->first = list->block_count;
    while (at < end) {
        if (list->block_count == BFC_LISTED_BLOCKS || !bfc_pool_find(arena->pool, at, &block) ||
            block.region_start != region->start)
            return false;
        list->blocks[list->block_count++] = describe_block(&block, at);
        at = block.start + block.size;
    }
    region->paged = block.paged;
    region->blocks = list->block_count - region->first;
    return true;
}

static void list_arena(struct bfc_blocks *list, struct bfc_arena *arena) {
    struct bfc_who_region region = {.pool = arena->stats.section_index};
    while (bfc_region_next(region.start + region.size, arena, &region.start, &region.size)) {
        bool room = list->region_count < BFC_LISTED_REGIONS;
        if (room && list_blocks(list, arena, &region)) {
            list->regions[list->region_count++] = region;
            continue;
        }
        if (!room || list->block_count == BFC_LISTED_BLOCKS)
            list->left_out += region.size;
        if (room)
            list->block_count = region.first;
    }
}

void bfc_blocks_list(struct bfc_blocks *list) {
    struct bfc_arena *arena = NULL;
    while ((arena = bfc_arena_next(arena)))
        if (arena->stats.segment)
            list_arena(list, arena);
}

#define PART(array, count) ((struct bfc_answer_part){(array), (count) * sizeof *(array)})

static void fill_header(const struct bfc_sites *sites, struct bfc_who_header *header) {
    header->magic = BFC_WHO_MAGIC;
    header->version = BFC_WHO_VERSION;
    header->header_size = sizeof *header;
    header->site_size = sizeof *sites->sites;
    header->frame_size = sizeof *sites->frames;
    header->object_size = sizeof *sites->objects;
    header->pid = getpid();
    header->sites = sites->site_count;
    header->frames = sites->frame_count;
    header->objects = sites->object_count;
    header->texts = sites->text_bytes;
    header->written_ns = bfc_wall_clock_ns();
}

/* Adds a list of blocks to the file of layout/who.h: the lengths of the list's arrays to the file's
 * header, and the arrays themselves to `parts`, which are written after it. */
static void add_blocks(const struct bfc_blocks *blocks, struct bfc_who_header *header,
                       struct bfc_answer_part *parts) {
    header->regions = blocks->region_count;
    header->blocks = blocks->block_count;
    header->living = blocks->living_count;
    header->recent = blocks->recent_count;
    header->left_out = blocks->left_out;
    parts[0] = PART(blocks->regions, blocks->region_count);
    parts[1] = PART(blocks->blocks, blocks->block_count);
    parts[2] = PART(blocks->living, blocks->living_count);
    parts[3] = PART(blocks->recent, blocks->recent_count);
}

void bfc_who_write_file(const struct bfc_sites *sites, struct bfc_who_header *header,
                        const struct bfc_blocks *blocks) {
    fill_header(sites, header);
    struct bfc_answer_part parts[] = {
        PART(header, 1),
        PART(sites->sites, sites->site_count),
        PART(sites->frames, sites->frame_count),
        PART(sites->objects, sites->object_count),
        [8] = PART(sites->texts, sites->text_bytes),
    };
    if (blocks)
        add_blocks(blocks, header, &parts[4]);
    bfc_answer_write(BFC_ANSWER_WHO, parts, sizeof parts / sizeof parts[0]);
}
