/*
 * The functions of the public interface (bfcpreload.h) that inspect and trim pools.
 */
#include <string.h>

#include "interpose/api/bfcpreload.h"
#include "interpose/arena/arena.h"
#include "interpose/config/process.h"
#include "interpose/reuse/give_back.h"

unsigned bfc_interface(void) {
    return BFCPRELOAD_INTERFACE;
}

/* Copies a struct of the library into one of the program, which may be of another version and so
 * larger or smaller. Fields that the library does not know become zero. */
static void hand_over(void *to, size_t to_size, const void *from, size_t from_size) {
    memset(to, 0, to_size);
    memcpy(to, from, to_size < from_size ? to_size : from_size);
}

static void describe_block(const struct bfc_arena *arena, const struct bfc_block_info *from,
                           void *block, size_t size) {
    struct bfcpreload_block told = {
        .start = from->start,
        .size = from->size,
        .requested = from->requested,
        .free_before = from->free_before,
        .free_after = from->free_after,
        .region_start = from->region_start,
        .region_size = from->region_size,
        .id = from->id,
        .device = arena->device,
        .state = from->live                    ? 0
                 : from->fence == BFC_NO_FENCE ? 1
                                               : 2,
    };
    hand_over(block, size, &told, sizeof told);
}

int bfc_block_info(const void *address, struct bfcpreload_block *block, size_t size) {
    struct bfc_block_info found;
    if (!block || !size)
        return BFCPRELOAD_BAD_ARGUMENT;
    struct bfc_arena *arena =
        bfc_process_if_made() ? bfc_arena_living_of((CUdeviceptr)address) : NULL;
    if (!arena || !bfc_pool_find(arena->pool, (bfc_addr)address, &found))
        return BFCPRELOAD_NOT_POOLED;
    describe_block(arena, &found, block, size);
    return 0;
}

static void add_stats(struct bfcpreload_stats *to, const struct bfc_pool_stats *from) {
    to->reserved += from->reserved;
    to->in_use += from->in_use;
    to->requested += from->requested;
    to->ready += from->ready;
    to->pending += from->pending;
    to->deferred += from->deferred;
    to->regions += from->regions;
    to->blocks += from->blocks;
    to->peak_reserved += from->peak_reserved;
    to->peak_in_use += from->peak_in_use;
    to->peak_requested += from->peak_requested;
    to->allocations += from->allocations;
    to->frees += from->frees;
    to->hits += from->hits;
    to->misses += from->misses;
    to->reserve_calls += from->reserve_calls;
    to->refusals += from->refusals;
    to->release_calls += from->release_calls;
    to->retries += from->retries;
    to->out_of_memory += from->out_of_memory;
    if (from->largest_free > to->largest_free)
        to->largest_free = from->largest_free;
}

/* Returns the living arena after `previous`, of any device if `device` is negative, with a
 * reference that the caller must drop. */
static struct bfc_arena *next_arena(int device, struct bfc_arena *previous) {
    if (!bfc_process_if_made())
        return NULL;
    return device < 0 ? bfc_arena_next(previous) : bfc_arena_next_on(device, previous);
}

int bfc_stats(int device, struct bfcpreload_stats *stats, size_t size) {
    struct bfcpreload_stats sum = {0};
    struct bfc_pool_stats one;
    struct bfc_arena *arena = NULL;
    if (!stats || !size)
        return BFCPRELOAD_BAD_ARGUMENT;
    while ((arena = next_arena(device, arena))) {
        bfc_pool_read_stats(arena->pool, &one);
        add_stats(&sum, &one);
    }
    hand_over(stats, size, &sum, sizeof sum);
    return 0;
}

size_t bfc_trim(size_t bytes) {
    return bfc_process_if_made() ? bfc_give_back_bytes(bytes) : 0;
}

struct snapshot {
    const struct bfc_arena *arena;
    char *blocks;
    size_t count, most, size;
};

static void add_block_to_snapshot(void *context, const struct bfc_block_info *block) {
    struct snapshot *snapshot = context;
    if (snapshot->count < snapshot->most)
        describe_block(snapshot->arena, block, snapshot->blocks + snapshot->count * snapshot->size,
                       snapshot->size);
    snapshot->count++;
}

long bfc_snapshot(int device, struct bfcpreload_block *blocks, size_t most, size_t size) {
    struct snapshot snapshot = {.blocks = (char *)blocks, .most = most, .size = size};
    struct bfc_arena *arena = NULL;
    if (most && (!blocks || !size))
        return BFCPRELOAD_BAD_ARGUMENT;
    while ((arena = next_arena(device, arena))) {
        snapshot.arena = arena;
        bfc_pool_visit(arena->pool, add_block_to_snapshot, &snapshot);
    }
    return (long)snapshot.count;
}
