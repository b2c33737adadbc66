/* Answers about pointers. */
#include "interpose/attributes.h"

#include <string.h>

#include "interpose/imports.h"
#include "interpose/notes.h"
#include "interpose/reuse.h"
#include "interpose/span.h"

/* Above all ids that a driver counts up to, and positive where a program keeps it signed. */
#define OUR_BUFFER_IDS (UINT64_C(1) << 62)

static bool is_ours(const struct bfc_span *span) {
    return span->kind == BFC_SPAN_POOLED || span->kind == BFC_SPAN_IMPORTED;
}

/* The address that the driver is asked about. */
static CUdeviceptr asked_of(const struct bfc_span *span, CUdeviceptr pointer) {
    return span->kind == BFC_SPAN_GONE ? BFC_NOWHERE : pointer;
}

/* ---- ranges ---- */

CUresult bfc_address_range(const struct bfc_driver *driver, CUdeviceptr *start, size_t *size,
                           CUdeviceptr pointer) {
    struct bfc_span span;
    bfc_span_of(pointer, &span);
    CUresult result = driver->cuMemGetAddressRange_v2(start, size, asked_of(&span, pointer));
    if (result != CUDA_SUCCESS || !is_ours(&span))
        return result;
    if (start)
        *start = span.start;
    if (size)
        *size = span.size;
    return CUDA_SUCCESS;
}

/* ---- registration ---- */

static bool sync_memops(const struct bfc_span *span) {
    struct bfc_note note;
    if (span->kind == BFC_SPAN_IMPORTED)
        return bfc_import_sync_memops(span->id);
    return bfc_note_find(span->id, &note) && note.sync_memops;
}

/* False: the host has no memory. To forget what was never noted needs none. */
static bool note_sync_memops(const struct bfc_span *span, bool on) {
    if (span->kind == BFC_SPAN_IMPORTED)
        bfc_import_set_sync_memops(span->id, on);
    else if (on || sync_memops(span))
        return bfc_note_sync_memops(span->id, span->domain, on);
    return true;
}

/* Others than this context's work may use the block from now on: a network card, for one. */
static void show(const struct bfc_driver *driver, const struct bfc_span *span) {
    if (span->kind == BFC_SPAN_POOLED)
        bfc_reuse_show(driver, span->domain, span->start);
}

/* ---- getting attributes ---- */

static void put(void *data, uint64_t value) {
    memcpy(data, &value, sizeof value);
}

/*
 * What the driver's answer for the region is to be replaced with. SYNC_MEMOPS is a boolean of which
 * the header leaves the width open: the driver has written all of it, for the region, for which it
 * is at least as often set; the first byte makes the difference.
 */
static void answer_for_span(const struct bfc_span *span, CUpointer_attribute attribute,
                            void *data) {
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        put(data, span->start);
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        put(data, span->size);
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        put(data, OUR_BUFFER_IDS | span->id);
        break;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *(unsigned char *)data = sync_memops(span);
        break;
    default:
        break;
    }
}

CUresult bfc_pointer_attribute(const struct bfc_driver *driver, void *data,
                               CUpointer_attribute attribute, CUdeviceptr pointer) {
    struct bfc_span span;
    bfc_span_of(pointer, &span);
    /* Tokens for a network card; asking for them sets SYNC_MEMOPS. */
    bool registers = attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS && is_ours(&span);
    if (registers)
        show(driver, &span);
    CUresult result = driver->cuPointerGetAttribute(data, attribute, asked_of(&span, pointer));
    if (result != CUDA_SUCCESS || !is_ours(&span))
        return result;
    if (registers)
        note_sync_memops(&span, true);
    answer_for_span(&span, attribute, data);
    return CUDA_SUCCESS;
}

CUresult bfc_pointer_attributes(const struct bfc_driver *driver, unsigned count,
                                CUpointer_attribute *attributes, void **data, CUdeviceptr pointer) {
    struct bfc_span span;
    bfc_span_of(pointer, &span);
    CUresult result =
        driver->cuPointerGetAttributes(count, attributes, data, asked_of(&span, pointer));
    if (result != CUDA_SUCCESS || !is_ours(&span))
        return result;
    for (unsigned i = 0; i < count; i++)
        if (data[i])
            answer_for_span(&span, attributes[i], data[i]);
    return CUDA_SUCCESS;
}

/* ---- setting them ---- */

/*
 * The region is one to the driver: once set for any of its blocks it stays set, which is only the
 * slower way, and a block's own state is in its note. To clear it the driver is merely asked for
 * its answer.
 */
static CUresult clear_sync_memops(const struct bfc_driver *driver, const struct bfc_span *span,
                                  CUdeviceptr pointer) {
    uint64_t state;
    CUresult result =
        driver->cuPointerGetAttribute(&state, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, pointer);
    if (result == CUDA_SUCCESS)
        note_sync_memops(span, false);
    return result;
}

static CUresult set_sync_memops(const struct bfc_driver *driver, const struct bfc_span *span,
                                const void *value, CUdeviceptr pointer) {
    bool before = sync_memops(span);
    show(driver, span);
    if (!note_sync_memops(span, true))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result =
        driver->cuPointerSetAttribute(value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, pointer);
    if (result != CUDA_SUCCESS && !before)
        note_sync_memops(span, false);
    return result;
}

CUresult bfc_set_pointer_attribute(const struct bfc_driver *driver, const void *value,
                                   CUpointer_attribute attribute, CUdeviceptr pointer) {
    struct bfc_span span;
    bfc_span_of(pointer, &span);
    if (!is_ours(&span) || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !value)
        return driver->cuPointerSetAttribute(value, attribute, asked_of(&span, pointer));
    unsigned on;
    memcpy(&on, value, sizeof on);
    return on ? set_sync_memops(driver, &span, value, pointer)
              : clear_sync_memops(driver, &span, pointer);
}
