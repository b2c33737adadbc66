#include "interpose/features/watch/watching.h"

#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/numbers.h"
#include "interpose/arena/arena.h"
#include "interpose/arena/region_map.h"
#include "interpose/stats/published_segment.h"
#include "pool/pages.h"

/* The most blocks, over all pools, that one refresh of the map reads, which takes some
 * milliseconds. */
#define MOST_BLOCKS 200000u

/* For each cell of a row of the map: how many of its bytes are in use, how many are pending, and
 * how many have no page behind them. */
struct row_sums {
    uint64_t in_use[BFC_MAP_CELLS], pending[BFC_MAP_CELLS], bare[BFC_MAP_CELLS];
};

/* Adds the bytes of a block to the sums of the map's cells that it lies in. */
static void add_block_to_row(const struct bfc_map_row *row, uint64_t *sums,
                             const struct bfc_block_info *block) {
    uint64_t at = block->start - row->start, end = bfc_min(at + block->size, row->size);
    while (at < end) {
        uint64_t cell = at / row->cell_bytes;
        uint64_t next = bfc_min((cell + 1) * row->cell_bytes, end);
        sums[cell] += next - at;
        at = next;
    }
}

static void add_to_sums(const struct bfc_map_row *row, struct row_sums *sums,
                        const struct bfc_block_info *block) {
    if (block->bare)
        add_block_to_row(row, sums->bare, block);
    else if (block->live)
        add_block_to_row(row, sums->in_use, block);
    else if (block->fence != BFC_NO_FENCE)
        add_block_to_row(row, sums->pending, block);
}

static unsigned in_fifteenths(uint64_t part, uint64_t whole) {
    return part >= whole ? 15 : (unsigned)((part * 15 + whole - 1) / whole);
}

static void set_cells(struct bfc_map_row *row, const struct row_sums *sums) {
    memset(row->cells, 0, sizeof row->cells);
    for (uint64_t i = 0; i * row->cell_bytes < row->size; i++) {
        uint64_t bytes = bfc_min(row->cell_bytes, row->size - i * row->cell_bytes);
        unsigned in_use = in_fifteenths(sums->in_use[i], bytes);
        unsigned pending = in_fifteenths(sums->pending[i], bytes);
        row->cells[i] =
            sums->bare[i] == bytes ? (uint8_t)BFC_MAP_BARE : (uint8_t)(in_use << 4 | pending);
    }
}

/* Fills the map's row of the region [start, start + size); false: the region was given back
 * meanwhile, or the limit on blocks is reached. */
static bool fill_row(struct bfc_arena *arena, struct bfc_map_row *row, uint64_t start,
                     uint64_t size, unsigned *blocks_left) {
    struct row_sums sums = {0};
    struct bfc_block_info block;
    row->start = start;
    row->size = size;
    row->cell_bytes =
        ((size + BFC_MAP_CELLS - 1) / BFC_MAP_CELLS + BFC_GRANULE - 1) / BFC_GRANULE * BFC_GRANULE;
    for (uint64_t at = start; at - start < size && *blocks_left; --*blocks_left) {
        if (!bfc_pool_find(arena->pool, at, &block) || block.region_start != start)
            return false;
        add_to_sums(row, &sums, &block);
        at = block.start + block.size;
    }
    set_cells(row, &sums);
    return *blocks_left != 0;
}

/* Returns how many bytes of a region the map shows. A region of pages reserves many more addresses
 * than it has pages. The addresses behind the last page are not shown, because the map would show
 * little else. */
static uint64_t backed_size(struct bfc_arena *arena, uint64_t start, uint64_t size) {
    struct bfc_block_info last;
    return arena->has_pages && bfc_pool_find(arena->pool, start + size - 1, &last) && last.bare
               ? last.start - start
               : size;
}

static void note_pages(struct bfc_arena *arena) {
    struct bfc_page_stats stats;
    struct bfc_segment_pages *pages = &arena->stats.section->pages;
    if (!bfc_pool_page_stats(arena->pool, &stats))
        return;
    bfc_store_relaxed(&pages->ready, stats.ready);
    bfc_store_relaxed(&pages->pinned, stats.pinned);
    bfc_store_relaxed(&pages->looked_ns, bfc_wall_clock_ns());
}

static void map_arena(struct bfc_arena *arena, unsigned pool, struct bfc_map *map,
                      unsigned *blocks_left) {
    uint64_t start = 0, size = 0;
    while (bfc_region_next(start + size, arena, &start, &size)) {
        struct bfc_map_row *row = &map->row[map->rows];
        bool room = map->rows < BFC_MAP_ROWS && *blocks_left;
        uint64_t shown = backed_size(arena, start, size);
        if (!shown)
            continue;
        if (room && fill_row(arena, row, start, shown, blocks_left)) {
            row->pool = pool;
            map->rows++;
        } else if (!room) {
            map->left_out++;
        }
    }
}

/* Publishes the map in the segment. The map's sequence number is odd while it is copied; a reader
 * that has seen an odd or changed number reads again. */
static void publish_map(struct bfc_map *to, const struct bfc_map *from) {
    size_t words = (offsetof(struct bfc_map, row) + from->rows * sizeof from->row[0]) / 8;
    bfc_store_relaxed(&to->sequence, to->sequence + 1);
    bfc_barrier_release();
    for (size_t i = 1; i < words; i++)
        bfc_store_relaxed((uint64_t *)to + i, ((const uint64_t *)from)[i]);
    bfc_store_release(&to->sequence, to->sequence + 1);
}

void bfc_occupancy_refresh(void) {
    /* static, because it is too large for the stack of the helper thread */
    static struct bfc_map map;
    struct bfc_segment_header *header = bfc_segment_published();
    struct bfc_arena *arena = NULL;
    struct bfc_pool_stats stats;
    unsigned blocks_left = MOST_BLOCKS;
    if (!header)
        return;
    map.rows = map.left_out = 0;
    while ((arena = bfc_arena_next(arena))) {
        bfc_pool_read_stats(arena->pool, &stats); /* this also updates the segment's largest_free */
        note_pages(arena);
        if (arena->stats.segment)
            map_arena(arena, arena->stats.section_index, &map, &blocks_left);
    }
    bfc_fragmentation_measure();
    map.refreshed_ns = bfc_wall_clock_ns();
    publish_map((struct bfc_map *)(void *)((char *)header + BFC_SEGMENT_MAP_OFFSET), &map);
}
