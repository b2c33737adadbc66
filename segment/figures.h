/* Figures derived from a segment's counters and texts. No state; thread-safe. */
#ifndef BFC_SEGMENT_FIGURES_H
#define BFC_SEGMENT_FIGURES_H

#include <stdbool.h>
#include <stddef.h>

#include "layout/segment.h"

/* The value of NAME in NAME=value lines, up to the line's end, or NULL; *length is set. At most
 * `size` bytes are read. */
const char *bfc_configuration_find(const char *lines, size_t size, const char *name,
                                   size_t *length);

/* Cells of a row of the map that are in use. */
unsigned bfc_map_row_cells(const struct bfc_map_row *row);

/* The histogram of sizes: the sum of its lanes. */
void bfc_pool_sizes(const struct bfc_segment_pool *pool, uint64_t sizes[BFC_SIZE_BINS]);

/*
 * The latency that `share` (0 to 1) of the timed calls did not exceed, in nanoseconds, to the end
 * of its bin (a quarter octave); 0 when none was timed.
 */
uint64_t bfc_latency_quantile(const uint64_t bins[BFC_LATENCY_BINS], double share);

/* What a last resort did for the pool's allocations. */
struct bfc_rung_counts bfc_pool_rung(const struct bfc_segment_pool *pool, enum bfc_rung rung);

/* Whether the pool hands out host memory in place of device memory (BFC_SPILL). */
bool bfc_pool_is_host(const struct bfc_segment_pool *pool);

/* Calls by which the pool took memory from the device and gave it back: of virtual memory
 * management with BFC_BACKING=pages. */
uint64_t bfc_pool_driver_calls(const struct bfc_segment_pool *pool);

/* Bytes free in the pool's regions: ready, pending and deferred. Saturates. */
uint64_t bfc_pool_cached(const struct bfc_pool_stats *stats);

/*
 * The share of the ready bytes that cannot serve the largest request the job made lately, since
 * they lie in smaller blocks: 0 to 1 (M. Gorman, A. Whitcroft, "The what, the why and the where to
 * of anti-fragmentation", 2006: the unusable free space index). 0 when nothing is ready, or nothing
 * in use, so that all of it could go back to the device. Negative when the job has not measured it.
 */
double bfc_pool_fragmentation(const struct bfc_segment_pool *pool);

/* The share of allocations that did not ask the device, 0 to 1; negative when there were none. */
double bfc_pool_hit_rate(const struct bfc_pool_stats *stats);

#endif
