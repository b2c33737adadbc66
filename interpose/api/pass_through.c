/* Counts allocations that the driver serves without the pool, and serves cuMemAllocPitch. */
#include "interpose/api/memory.h"
#include "interpose/api/open_arena.h"
#include "interpose/config/process.h"
#include "interpose/stats/published_segment.h"
#include "interpose/table/feature.h"

/* Whether calls of this kind return an address of device memory. Other calls return a handle, which
 * may be an address of the driver's own records and must not be taken for device memory. */
static bool gives_address(enum bfc_bypass_kind kind) {
    return kind != BFC_BYPASS_VMM && kind != BFC_BYPASS_ARRAY;
}

/* Makes the segment if there is none: bfcstat needs it also to explain a job that has no pool. */
void bfc_count_past_pool(enum bfc_bypass_kind kind, uintptr_t start, size_t bytes) {
    const struct bfc_process *process = bfc_process();
    if (!process || !process->active)
        return;
    if (gives_address(kind))
        bfc_arena_given_out(start, bytes);
    bfc_segment_open(process);
    bfc_segment_count_bypassed(kind, bytes);
}

CUresult bfc_allocate_pitched(const struct bfc_driver *driver, CUdeviceptr *pointer, size_t *pitch,
                              size_t width, size_t height, unsigned element) {
    CUresult result;
    BFC_FOR_EACH_FEATURE(feature)
    if ((*feature)->allocate_pitched &&
        (*feature)->allocate_pitched(driver, pointer, pitch, width, height, element, &result))
        return result;
    result = driver->cuMemAllocPitch_v2(pointer, pitch, width, height, element);
    if (result == CUDA_SUCCESS)
        bfc_count_past_pool(BFC_BYPASS_PITCH, *pointer, *pitch * height);
    return result;
}

size_t bfc_bytes_of_array(CUarray_format format, unsigned channels, size_t width, size_t height,
                          size_t depth) {
    size_t element = 1;
    if (format == CU_AD_FORMAT_UNSIGNED_INT16 || format == CU_AD_FORMAT_SIGNED_INT16 ||
        format == CU_AD_FORMAT_HALF)
        element = 2;
    else if (format == CU_AD_FORMAT_UNSIGNED_INT32 || format == CU_AD_FORMAT_SIGNED_INT32 ||
             format == CU_AD_FORMAT_FLOAT)
        element = 4;
    return element * (channels ? channels : 1) * width * (height ? height : 1) *
           (depth ? depth : 1);
}
