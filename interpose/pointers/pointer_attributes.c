/* Answers the program's questions about pointers. */
#include "interpose/pointers/pointer_attributes.h"

#include <string.h>

#include "base/sizes.h"
#include "interpose/pointers/pointer_lookup.h"
#include "interpose/pointers/sync_memops.h"
#include "interpose/reuse/sharing.h"

/* Added to a block's id for CU_POINTER_ATTRIBUTE_BUFFER_ID. The sum is above all ids that a driver
 * counts up to, and positive even if a program stores it as a signed number. */
#define OUR_BUFFER_IDS (UINT64_C(1) << 62)

static bool is_ours(const struct bfc_pointer *span) {
    return span->kind == BFC_POINTER_POOLED || span->kind == BFC_POINTER_IMPORTED;
}

/* Returns the address about which the driver is asked: `pointer`, or for freed memory an address at
 * which nothing is allocated. */
static CUdeviceptr asked_of(const struct bfc_pointer *span, CUdeviceptr pointer) {
    return span->kind == BFC_POINTER_GONE ? BFC_NOWHERE : pointer;
}

CUresult bfc_address_range(const struct bfc_driver *driver, CUdeviceptr *start, size_t *size,
                           CUdeviceptr pointer) {
    struct bfc_pointer span;
    bfc_pointer_lookup(pointer, &span);
    bool spilled = bfc_pointer_is_spilled(&span);
    CUresult result = spilled
                          ? CUDA_SUCCESS
                          : driver->cuMemGetAddressRange_v2(start, size, asked_of(&span, pointer));
    if (result != CUDA_SUCCESS || !is_ours(&span))
        return result;
    if (start)
        *start = span.start;
    if (size)
        *size = span.size;
    return CUDA_SUCCESS;
}

/* To be called before devices other than the context's, such as a network card, use the block. */
static CUresult show_region(const struct bfc_driver *driver, const struct bfc_pointer *span) {
    if (span->kind != BFC_POINTER_POOLED)
        return CUDA_SUCCESS;
    bfc_store_release(&span->arena->registered, true);
    return bfc_share_block(driver, span->arena, span->start);
}

/* Returns the context in which the pages of a block were allocated or opened. NULL: the block is
 * not made of pages, so that the driver itself knows the context. */
static CUcontext context_of_pages(const struct bfc_pointer *span) {
    if (span->kind == BFC_POINTER_IMPORTED)
        return span->of_pages;
    return span->block.paged ? span->arena->context : NULL;
}

static bool put_value(void *data, uint64_t value) {
    memcpy(data, &value, sizeof value);
    return true;
}

static bool put_int(void *data, int value) {
    memcpy(data, &value, sizeof value);
    return true;
}

/* Writes 0 or 1. cuda.h does not say how wide a boolean is, but the driver has written all of its
 * bytes before, so writing the first one is enough. */
static bool put_truth(void *data, bool value) {
    *(unsigned char *)data = value;
    return true;
}

/* The functions below replace the driver's answer for one attribute where it is wrong for a block;
 * false: it is right. answer_for_pages gives the answers that the driver has for memory of
 * cudaMalloc. */
static bool answer_for_pages(const struct bfc_pointer *span, CUpointer_attribute attribute,
                             void *data) {
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        return put_value(data, (uint64_t)context_of_pages(span));
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        return put_truth(data, span->kind == BFC_POINTER_POOLED);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        return put_value(data, 0);
    default:
        return false;
    }
}

/* A spilled block is host memory to the driver, but to the program it is device memory that no
 * other process can reach. */
static bool answer_for_spilled(const struct bfc_pointer *span, CUpointer_attribute attribute,
                               void *data) {
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        return put_value(data, (uint64_t)span->arena->context);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        return put_int(data, CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        return put_int(data, span->arena->device);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        return put_value(data, 0);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        return put_truth(data, false);
    default:
        return false;
    }
}

/* What the driver maps for an allocation of its own is whole pages of 2 MiB, which small
 * allocations share, as was seen on an H100. */
#define MAPPED_PAGE (2 * MIB)

static uint64_t mapping_start(const struct bfc_pointer *span) {
    return span->start & ~(MAPPED_PAGE - 1);
}

static uint64_t mapping_end(const struct bfc_pointer *span) {
    return (span->start + span->size + MAPPED_PAGE - 1) & ~(MAPPED_PAGE - 1);
}

/* replaces the driver's answer, which is for the region, by the block's; false: they are equal */
static bool answer_for_span(const struct bfc_pointer *span, CUpointer_attribute attribute,
                            void *data) {
    if (bfc_pointer_is_spilled(span) && answer_for_spilled(span, attribute, data))
        return true;
    if (context_of_pages(span) && answer_for_pages(span, attribute, data))
        return true;
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        return put_value(data, span->start);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        return put_value(data, span->size);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        return put_value(data, mapping_start(span));
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        return put_value(data, mapping_end(span) - mapping_start(span));
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        return put_value(data, OUR_BUFFER_IDS | span->id);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        return put_truth(data, bfc_sync_memops_is_set(span));
    default:
        return false;
    }
}

/* Answers for a spilled block. The driver is asked, too: its answer holds where answer_for_span has
 * none, and its errors are returned, except CUDA_ERROR_INVALID_VALUE where answer_for_span has an
 * answer: the driver may return that error because the memory is the host's. */
static CUresult spilled_attribute(const struct bfc_driver *driver, const struct bfc_pointer *span,
                                  void *data, CUpointer_attribute attribute, CUdeviceptr pointer) {
    if (attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS)
        return bfc_pointer_refuse_spilled("cuPointerGetAttribute(P2P_TOKENS)");
    CUresult result = driver->cuPointerGetAttribute(data, attribute, pointer);
    if (!data || (result != CUDA_SUCCESS && result != CUDA_ERROR_INVALID_VALUE))
        return result;
    return answer_for_span(span, attribute, data) ? CUDA_SUCCESS : result;
}

CUresult bfc_pointer_attribute(const struct bfc_driver *driver, void *data,
                               CUpointer_attribute attribute, CUdeviceptr pointer) {
    struct bfc_pointer span;
    bfc_pointer_lookup(pointer, &span);
    if (bfc_pointer_is_spilled(&span))
        return spilled_attribute(driver, &span, data, attribute, pointer);
    /* A program asks for P2P_TOKENS to register the block with a network card. The driver then sets
     * SYNC_MEMOPS for the whole region. */
    bool registers = attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS && is_ours(&span);
    CUresult result = registers ? show_region(driver, &span) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS)
        result = driver->cuPointerGetAttribute(data, attribute, asked_of(&span, pointer));
    if (result != CUDA_SUCCESS || !is_ours(&span))
        return result;
    if (registers)
        bfc_sync_memops_narrow(driver, &span, pointer);
    answer_for_span(&span, attribute, data);
    return CUDA_SUCCESS;
}

CUresult bfc_pointer_attributes(const struct bfc_driver *driver, unsigned count,
                                CUpointer_attribute *attributes, void **data, CUdeviceptr pointer) {
    struct bfc_pointer span;
    bfc_pointer_lookup(pointer, &span);
    CUresult result =
        driver->cuPointerGetAttributes(count, attributes, data, asked_of(&span, pointer));
    if (result != CUDA_SUCCESS || !is_ours(&span))
        return result;
    for (unsigned i = 0; i < count; i++)
        if (data[i])
            answer_for_span(&span, attributes[i], data[i]);
    return CUDA_SUCCESS;
}

CUresult bfc_set_pointer_attribute(const struct bfc_driver *driver, const void *value,
                                   CUpointer_attribute attribute, CUdeviceptr pointer) {
    struct bfc_pointer span;
    bfc_pointer_lookup(pointer, &span);
    if (!is_ours(&span) || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !value) {
        CUresult got = driver->cuPointerSetAttribute(value, attribute, asked_of(&span, pointer));
        /* this is the error for memory of cudaMalloc; for pages the driver has another */
        return is_ours(&span) && got == CUDA_ERROR_NOT_SUPPORTED ? CUDA_ERROR_INVALID_VALUE : got;
    }
    unsigned on;
    memcpy(&on, value, sizeof on);
    CUresult result = on ? show_region(driver, &span) : CUDA_SUCCESS;
    return result == CUDA_SUCCESS ? bfc_sync_memops_set(driver, &span, pointer, on) : result;
}
