/* Figures derived from a segment's counters and texts. No state; thread-safe. */
#ifndef BFC_SEGMENT_FIGURES_H
#define BFC_SEGMENT_FIGURES_H

#include <stdbool.h>
#include <stddef.h>

#include "layout/segment.h"

/* Finds the value of NAME in lines NAME=value and sets *length to its length without the line's
 * end; NULL if there is no such line. At most `size` bytes are read. */
const char *bfc_configuration_find(const char *lines, size_t size, const char *name,
                                   size_t *length);

/* Returns how many cells of a row of the segment's map cover bytes of the row's region. */
unsigned bfc_map_row_cells(const struct bfc_map_row *row);

/* Fills in the histogram of requested sizes, which is the sum of those that the pool's threads
 * count separately (lanes). */
void bfc_pool_sizes(const struct bfc_segment_pool *pool, uint64_t sizes[BFC_SIZE_BINS]);

/* Returns the latency in nanoseconds that `share` (0 to 1) of the timed calls did not exceed; 0
 * when no call was timed. It is rounded up to the end of a bin; there are four bins for each power
 * of two. */
uint64_t bfc_latency_quantile(const uint64_t bins[BFC_LATENCY_BINS], double share);

/* Returns how often one last resort, a step after the device has refused memory, was tried for the
 * pool's allocations, and how often it served them. */
struct bfc_rung_counts bfc_pool_rung(const struct bfc_segment_pool *pool, enum bfc_rung rung);

/* Whether the pool hands out host memory in place of device memory (BFC_SPILL). */
bool bfc_pool_is_host(const struct bfc_segment_pool *pool);

/* How many driver calls the pool made to take memory and to give it back; with BFC_BACKING=pages,
 * its calls of virtual memory management. */
uint64_t bfc_pool_driver_calls(const struct bfc_segment_pool *pool);

/* Returns the bytes that are free in the pool's regions: ready, pending and deferred. A sum that
 * is too large becomes UINT64_MAX. */
uint64_t bfc_pool_cached(const struct bfc_pool_stats *stats);

/*
 * The share (0 to 1) of the ready bytes that cannot serve the largest recent request of the job,
 * since they lie in smaller blocks: the unusable free space index (M. Gorman, A. Whitcroft, "The
 * what, the why and the where to of anti-fragmentation", 2006). 0 when nothing is ready, and when
 * nothing is in use, as then all regions could go back to the device. Negative when the job has not
 * measured it.
 */
double bfc_pool_fragmentation(const struct bfc_segment_pool *pool);

/* Returns the share (0 to 1) of the allocations that the pool served without asking the device;
 * negative: there were no allocations. */
double bfc_pool_hit_rate(const struct bfc_pool_stats *stats);

#endif
