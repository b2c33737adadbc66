/* Calls past the pool that need device memory: forwarded, counted, and helped when it is full. */
#include "interpose/bypass.h"

#include "interpose/hooks.h"
#include "interpose/process.h"
#include "interpose/segment.h"
#include "interpose/source.h"

/*
 * The segment is made here too, at the first allocation of whatever kind: a job that never comes to
 * the pool is to be explained as well.
 */
static void count(enum bfc_bypass_kind kind, size_t bytes) {
    const struct bfc_process *process = bfc_process();
    if (!process || !process->active)
        return;
    bfc_source_open_segment(process);
    bfc_count_bypassed(kind, bytes);
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

#define BYPASS(name, kind, parameters, arguments, bytes)                                           \
    BFC_HOOK(name, parameters) {                                                                   \
        BFC_FIND_DRIVER(driver, name);                                                             \
        CUresult result = driver->name arguments;                                                  \
        if (result == CUDA_ERROR_OUT_OF_MEMORY && bfc_source_relieve(driver))                      \
            result = driver->name arguments;                                                       \
        if (result == CUDA_SUCCESS)                                                                \
            count(BFC_BYPASS_##kind, bytes);                                                       \
        return result;                                                                             \
    }
BFC_BYPASS_CALLS(BYPASS)

#define NEEDY(name, parameters, arguments)                                                         \
    BFC_HOOK(name, parameters) {                                                                   \
        BFC_FIND_DRIVER(driver, name);                                                             \
        CUresult result = driver->name arguments;                                                  \
        if (result == CUDA_ERROR_OUT_OF_MEMORY && bfc_source_relieve(driver))                      \
            result = driver->name arguments;                                                       \
        return result;                                                                             \
    }
BFC_NEEDY_CALLS(NEEDY)
