#include "segment/figures.h"

#include <string.h>

#include "base/numbers.h"

/* Returns the newline at the end of the line, or the end of the text if the line has none. */
static const char *line_end(const char *line, const char *end) {
    const char *newline = memchr(line, '\n', (size_t)(end - line));
    return newline ? newline : end;
}

const char *bfc_configuration_find(const char *lines, size_t size, const char *name,
                                   size_t *length) {
    size_t name_length = strlen(name);
    const char *end = lines + strnlen(lines, size);
    for (const char *line = lines; line < end; line = line_end(line, end) + 1) {
        size_t line_length = (size_t)(line_end(line, end) - line);
        if (line_length > name_length && line[name_length] == '=' &&
            memcmp(line, name, name_length) == 0) {
            *length = line_length - name_length - 1;
            return line + name_length + 1;
        }
    }
    return NULL;
}

struct bfc_rung_counts bfc_pool_rung(const struct bfc_segment_pool *pool, enum bfc_rung rung) {
    const struct bfc_pool_stats *stats = &pool->stats;
    if (rung == BFC_RUNG_POOL)
        return (struct bfc_rung_counts){stats->last_resorts, stats->last_resorts_saved,
                                        stats->last_resort_ns};
    return pool->rungs[rung];
}

bool bfc_pool_is_host(const struct bfc_segment_pool *pool) {
    return pool->memory == BFC_MEMORY_HOST;
}

uint64_t bfc_pool_driver_calls(const struct bfc_segment_pool *pool) {
    return pool->pages.calls ? pool->pages.calls
                             : pool->stats.reserve_calls + pool->stats.release_calls;
}

uint64_t bfc_pool_cached(const struct bfc_pool_stats *stats) {
    return bfc_add_saturating(bfc_add_saturating(stats->ready, stats->pending), stats->deferred);
}

double bfc_pool_fragmentation(const struct bfc_segment_pool *pool) {
    const struct bfc_pool_stats *stats = &pool->stats;
    if (stats->in_use == 0 || stats->ready == 0)
        return 0;
    if (pool->fit.request == 0)
        return -1;
    return (double)bfc_min(pool->fit.too_small, stats->ready) / (double)stats->ready;
}

double bfc_pool_hit_rate(const struct bfc_pool_stats *stats) {
    double hits = (double)stats->hits, all = hits + (double)stats->misses;
    return all > 0 ? hits / all : -1;
}

unsigned bfc_map_row_cells(const struct bfc_map_row *row) {
    return (unsigned)((row->size - 1) / row->cell_bytes) + 1;
}

void bfc_pool_sizes(const struct bfc_segment_pool *pool, uint64_t sizes[BFC_SIZE_BINS]) {
    for (unsigned bin = 0; bin < BFC_SIZE_BINS; bin++) {
        sizes[bin] = 0;
        for (unsigned lane = 0; lane < BFC_LANES; lane++)
            sizes[bin] += pool->lanes[lane].sizes[bin];
    }
}

uint64_t bfc_latency_quantile(const uint64_t bins[BFC_LATENCY_BINS], double share) {
    double all = 0, so_far = 0;
    for (unsigned bin = 0; bin < BFC_LATENCY_BINS; bin++)
        all += (double)bins[bin];
    if (all <= 0)
        return 0;
    unsigned bin = 0;
    for (; bin < BFC_LATENCY_BINS - 1; bin++)
        if ((so_far += (double)bins[bin]) >= share * all && so_far > 0)
            break;
    return bfc_latency_bin_start(bin + 1);
}
