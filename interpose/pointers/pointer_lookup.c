/* Finds what a pointer points into. */
#include "interpose/pointers/pointer_lookup.h"

#include "interpose/config/process.h"
#include "interpose/table/feature.h"

static void describe_block(struct bfc_arena *arena, CUdeviceptr pointer, struct bfc_pointer *span) {
    struct bfc_block_info *block = &span->block;
    span->kind = BFC_POINTER_GONE;
    if (!bfc_pool_find(arena->pool, pointer, block) || !block->live ||
        pointer - block->start >= block->requested)
        return;
    span->kind = BFC_POINTER_POOLED;
    span->start = block->start;
    span->size = block->requested;
    span->id = block->id;
    span->arena = arena;
}

/* Whether the address lies in a region that is being given back, and that the driver still has.
 * Once the driver has taken the region back, the address may belong to another allocation, which is
 * not the pool's. */
static bool is_leaving(CUdeviceptr pointer) {
    uint64_t start, bytes;
    CUdeviceptr driver_start = 0;
    size_t driver_bytes = 0;
    return bfc_leaving_find(pointer, &start, &bytes) && bfc_driver()->cuMemGetAddressRange_v2 &&
           bfc_driver()->cuMemGetAddressRange_v2(&driver_start, &driver_bytes, pointer) ==
               CUDA_SUCCESS &&
           driver_start == start && driver_bytes == bytes;
}

static void describe_other(CUdeviceptr pointer, struct bfc_pointer *span) {
    BFC_FOR_EACH_FEATURE(feature)
    if ((*feature)->find_import && (*feature)->find_import(pointer, span))
        return;
    if (is_leaving(pointer))
        span->kind = BFC_POINTER_GONE;
}

void bfc_pointer_lookup(CUdeviceptr pointer, struct bfc_pointer *span) {
    bool made = bfc_process_if_made();
    struct bfc_arena *arena = made ? bfc_arena_living_of(pointer) : NULL;
    span->kind = BFC_POINTER_FOREIGN;
    if (arena)
        describe_block(arena, pointer, span);
    else if (made)
        describe_other(pointer, span);
}

CUresult bfc_pointer_refuse_spilled(const char *call) {
    static unsigned seen;
    bfc_log_repeated(BFC_LOG_ERROR, &seen,
                     "%s: the block is host memory in place of device memory (BFC_SPILL), which "
                     "cannot be shared; set BFC_SPILL=0 for this program",
                     call);
    return CUDA_ERROR_NOT_SUPPORTED;
}
