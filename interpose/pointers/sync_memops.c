/* Keeps the attribute SYNC_MEMOPS of pooled and imported blocks in the driver's place. */
#include "interpose/pointers/sync_memops.h"

#include "interpose/pointers/block_attributes.h"
#include "interpose/table/counter.h"
#include "interpose/table/feature.h"

bool bfc_sync_memops_used;

static bool import_has_it(uint64_t id) {
    BFC_FOR_EACH_FEATURE(feature)
    if ((*feature)->import_has_sync_memops && (*feature)->import_has_sync_memops(id))
        return true;
    return false;
}

bool bfc_sync_memops_is_set(const struct bfc_pointer *span) {
    struct bfc_block_attributes attributes;
    if (span->kind == BFC_POINTER_IMPORTED)
        return import_has_it(span->id);
    return span->kind == BFC_POINTER_POOLED && bfc_block_attributes_find(span->id, &attributes) &&
           attributes.sync_memops;
}

/* Stores whether SYNC_MEMOPS is set. If it is to be cleared and is not set, there is nothing to
 * store. False: the host has no memory. */
static bool note_state(const struct bfc_pointer *span, bool on) {
    bool noted = true;
    if (span->kind == BFC_POINTER_IMPORTED)
        BFC_TELL_FEATURES(set_import_sync_memops, span->id, on);
    else if (on || bfc_sync_memops_is_set(span))
        noted = bfc_block_attributes_set_sync_memops(span->id, span->arena, on);
    if (on) /* from now on devices may use the block without a submission of the program */
        BFC_TELL_COUNTER(bar());
    if (on && noted)
        bfc_store_relaxed(&bfc_sync_memops_used, true);
    return noted;
}

static CUresult clear_drivers_own(const struct bfc_driver *driver, CUdeviceptr pointer) {
    return driver->cuPointerSetAttribute(&(unsigned){0}, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, pointer);
}

static bool has_pages(const struct bfc_pointer *span) {
    return span->kind == BFC_POINTER_IMPORTED ? span->of_pages != NULL : span->block.paged;
}

/* Asks the driver whether the program may set SYNC_MEMOPS now: clears the driver's own attribute,
 * which is off anyway, and returns the result for the program. For pages the driver does not
 * support the attribute, which is no error here. */
static CUresult ask_driver(const struct bfc_driver *driver, const struct bfc_pointer *span,
                           CUdeviceptr pointer) {
    /* NVIDIA documents that synchronous copies and sets of host memory wait in any case. */
    if (bfc_pointer_is_spilled(span))
        return CUDA_SUCCESS;
    CUresult result = clear_drivers_own(driver, pointer);
    return has_pages(span) && result == CUDA_ERROR_NOT_SUPPORTED ? CUDA_SUCCESS : result;
}

CUresult bfc_sync_memops_set(const struct bfc_driver *driver, const struct bfc_pointer *span,
                             CUdeviceptr pointer, bool on) {
    CUresult result = ask_driver(driver, span, pointer);
    if (result == CUDA_SUCCESS && !note_state(span, on))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    return result;
}

void bfc_sync_memops_narrow(const struct bfc_driver *driver, const struct bfc_pointer *span,
                            CUdeviceptr pointer) {
    if (note_state(span, true) && driver->cuPointerSetAttribute)
        clear_drivers_own(driver, pointer);
}

static bool must_wait_for(CUdeviceptr pointer) {
    struct bfc_pointer span;
    if (!pointer)
        return false;
    bfc_pointer_lookup(pointer, &span);
    return bfc_sync_memops_is_set(&span);
}

CUresult bfc_sync_memops_wait(const struct bfc_driver *driver, CUdeviceptr to, CUdeviceptr from,
                              bool per_thread) {
    if (!driver->cuStreamSynchronize || (!must_wait_for(to) && !must_wait_for(from)))
        return CUDA_SUCCESS;
    return driver->cuStreamSynchronize(per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY);
}
