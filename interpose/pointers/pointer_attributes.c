/* Answers about pointers. */
#include "interpose/pointers/pointer_attributes.h"

#include <pthread.h>
#include <string.h>

#include "interpose/driver/current.h"
#include "interpose/features/share/imports.h"
#include "interpose/pointers/block_attributes.h"
#include "interpose/pointers/pointer_lookup.h"
#include "interpose/reuse/sharing.h"
#include "pool/pages.h"

/* Above all ids that a driver counts up to, and positive where a program keeps it signed. */
#define OUR_BUFFER_IDS (UINT64_C(1) << 62)

static bool is_ours(const struct bfc_pointer *span) {
    return span->kind == BFC_POINTER_POOLED || span->kind == BFC_POINTER_IMPORTED;
}

/* The address that the driver is asked about. */
static CUdeviceptr asked_of(const struct bfc_pointer *span, CUdeviceptr pointer) {
    return span->kind == BFC_POINTER_GONE ? BFC_NOWHERE : pointer;
}

/* ---- ranges ---- */

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

/* ---- registration ---- */

static bool sync_memops(const struct bfc_pointer *span) {
    struct bfc_block_attributes attributes;
    if (span->kind == BFC_POINTER_IMPORTED)
        return bfc_import_sync_memops(span->id);
    return bfc_block_attributes_find(span->id, &attributes) && attributes.sync_memops;
}

static bool has_pages(const struct bfc_pointer *span) {
    return span->kind == BFC_POINTER_POOLED && span->block.paged;
}

/* What shares a block's setting: its region; or all pages of its arena, since these move. */
static uint64_t region_of(const struct bfc_pointer *span) {
    return has_pages(span) ? BFC_ALL_PAGES : span->block.region_start;
}

/* False: the host has no memory. To forget what was never noted needs none. */
static bool note_sync_memops(const struct bfc_pointer *span, bool on) {
    if (span->kind == BFC_POINTER_IMPORTED)
        bfc_import_set_sync_memops(span->id, on);
    else if (on || sync_memops(span))
        return bfc_block_attributes_set_sync_memops(span->id, span->arena, region_of(span), on);
    return true;
}

/* Others than this context's work may use the block from now on: a network card, for one. */
static CUresult show(const struct bfc_driver *driver, const struct bfc_pointer *span) {
    return span->kind == BFC_POINTER_POOLED ? bfc_share_block(driver, span->arena, span->start)
                                            : CUDA_SUCCESS;
}

/* ---- getting attributes ---- */

/* The context in which the memory was allocated or opened; NULL: the driver knows. */
static CUcontext context_of_pages(const struct bfc_pointer *span) {
    if (span->kind == BFC_POINTER_IMPORTED)
        return span->of_pages;
    return has_pages(span) ? span->arena->context : NULL;
}

static void put_value(void *data, uint64_t value) {
    memcpy(data, &value, sizeof value);
}

/* What the driver says of pages, and would not of what cudaMalloc gave. */
static void answer_for_pages(const struct bfc_pointer *span, CUcontext context,
                             CUpointer_attribute attribute, void *data) {
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        memcpy(data, &context, sizeof context);
        break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *(unsigned char *)data = span->kind == BFC_POINTER_POOLED;
        break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        put_value(data, 0);
        break;
    default:
        break;
    }
}

/*
 * What the driver's answer for the region is to be replaced with. SYNC_MEMOPS is a boolean of which
 * the header leaves the width open: the driver has written all of it, for the region, for which it
 * is at least as often set; the first byte makes the difference.
 */
static void answer_for_span(const struct bfc_pointer *span, CUpointer_attribute attribute,
                            void *data) {
    CUcontext context = context_of_pages(span);
    if (context)
        answer_for_pages(span, context, attribute, data);
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        put_value(data, span->start);
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        put_value(data, span->size);
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        put_value(data, OUR_BUFFER_IDS | span->id);
        break;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *(unsigned char *)data = sync_memops(span);
        break;
    default:
        break;
    }
}

/*
 * A spilled block is host memory to the driver; to the program it is device memory that no other
 * process can reach. False: the driver's answer is right. Of booleans as above.
 */
static bool answer_for_spilled(const struct bfc_pointer *span, CUpointer_attribute attribute,
                               void *data) {
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        memcpy(data, &span->arena->context, sizeof span->arena->context);
        return true;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        memcpy(data, &(unsigned){CU_MEMORYTYPE_DEVICE}, sizeof(unsigned));
        return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        memcpy(data, &span->arena->device, sizeof span->arena->device);
        return true;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        put_value(data, 0);
        return true;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        *(unsigned char *)data = false;
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        answer_for_span(span, attribute, data);
        return true;
    default:
        return false;
    }
}

/* The driver is asked all the same, for what it answers of every pointer, and of none. */
static CUresult spilled_attribute(const struct bfc_driver *driver, const struct bfc_pointer *span,
                                  void *data, CUpointer_attribute attribute, CUdeviceptr pointer) {
    if (attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS)
        return bfc_pointer_refuse_spilled("cuPointerGetAttribute(P2P_TOKENS)");
    CUresult result = driver->cuPointerGetAttribute(data, attribute, pointer);
    if (!data || (result != CUDA_SUCCESS && result != CUDA_ERROR_INVALID_VALUE))
        return result;
    return answer_for_spilled(span, attribute, data) ? CUDA_SUCCESS : result;
}

CUresult bfc_pointer_attribute(const struct bfc_driver *driver, void *data,
                               CUpointer_attribute attribute, CUdeviceptr pointer) {
    struct bfc_pointer span;
    bfc_pointer_lookup(pointer, &span);
    if (bfc_pointer_is_spilled(&span))
        return spilled_attribute(driver, &span, data, attribute, pointer);
    /* Tokens for a network card; asking for them sets SYNC_MEMOPS. */
    bool registers = attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS && is_ours(&span);
    CUresult result = registers ? show(driver, &span) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS)
        result = driver->cuPointerGetAttribute(data, attribute, asked_of(&span, pointer));
    if (result != CUDA_SUCCESS || !is_ours(&span))
        return result;
    if (registers)
        note_sync_memops(&span, true);
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
    bool spilled = bfc_pointer_is_spilled(&span);
    for (unsigned i = 0; i < count; i++)
        if (data[i] && !(spilled && answer_for_spilled(&span, attributes[i], data[i])))
            answer_for_span(&span, attributes[i], data[i]);
    return CUDA_SUCCESS;
}

/* ---- setting them ---- */

/*
 * The region is one to the driver: it is set there as long as it is set for any of its blocks, and
 * a block's own state is in its attributes. The lock keeps attributes and regions together; it is
 * no pool's.
 */
static pthread_mutex_t setting = PTHREAD_MUTEX_INITIALIZER;

/* The driver has it for each page. So many are looked up at once. */
enum { PAGES_AT_ONCE = 64 };

struct found_pages {
    unsigned count;
    bfc_addr start[PAGES_AT_ONCE];
    bfc_addr end; /* of the last */
};

static bool add_page(void *context, const struct bfc_page_info *page) {
    struct found_pages *found = context;
    found->start[found->count++] = page->start;
    found->end = page->start + page->bytes;
    return found->count < PAGES_AT_ONCE;
}

/* For pages that stay where they are meanwhile. */
static CUresult set_on_pages(const struct bfc_driver *driver, const struct bfc_arena *arena,
                             bfc_addr start, bfc_addr end, const void *value) {
    struct found_pages found = {.end = end};
    CUresult result = CUDA_SUCCESS;
    do {
        found.count = 0;
        bfc_pool_visit_pages(arena->pool, start, end - start, add_page, &found);
        for (unsigned i = 0; i < found.count && result == CUDA_SUCCESS; i++)
            result = driver->cuPointerSetAttribute(value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
                                                   found.start[i]);
        start = found.end;
    } while (found.count == PAGES_AT_ONCE && start < end && result == CUDA_SUCCESS);
    return result;
}

/* Also those that a block had which is free: whoever has them next would be slowed down. */
static CUresult set_on_all_pages(const struct bfc_driver *driver, const struct bfc_arena *arena,
                                 const void *value) {
    bfc_pool_hold_pages(arena->pool);
    CUresult result = set_on_pages(driver, arena, 0, UINT64_MAX, value);
    bfc_pool_let_pages(arena->pool);
    return result;
}

static CUresult set_at(const struct bfc_driver *driver, const struct bfc_pointer *span,
                       const void *value, CUdeviceptr pointer) {
    return has_pages(span)
               ? set_on_pages(driver, span->arena, span->start, span->start + span->size, value)
               : driver->cuPointerSetAttribute(value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, pointer);
}

/* To clear it where it must stay set, the driver is merely asked for its answer. */
static CUresult clear_at(const struct bfc_driver *driver, const struct bfc_pointer *span,
                         const void *value, CUdeviceptr pointer) {
    uint64_t state;
    bool stays = span->kind != BFC_POINTER_POOLED ||
                 bfc_block_attributes_sync_memops_in(span->arena, region_of(span));
    if (stays)
        return driver->cuPointerGetAttribute(&state, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, pointer);
    return has_pages(span)
               ? set_on_all_pages(driver, span->arena, value)
               : driver->cuPointerSetAttribute(value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, pointer);
}

/* The stored flag is set first, and set back if the call fails. */
static CUresult change_sync_memops(const struct bfc_driver *driver, const struct bfc_pointer *span,
                                   const void *value, bool on, CUdeviceptr pointer) {
    bool before = sync_memops(span);
    if (!note_sync_memops(span, on))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (bfc_pointer_is_spilled(span)) /* all synchronous copies and sets of host memory wait [D] */
        return CUDA_SUCCESS;
    CUresult result =
        on ? set_at(driver, span, value, pointer) : clear_at(driver, span, value, pointer);
    if (result != CUDA_SUCCESS && before != on)
        note_sync_memops(span, before);
    return result;
}

static CUresult set_sync_memops(const struct bfc_driver *driver, const struct bfc_pointer *span,
                                const void *value, bool on, CUdeviceptr pointer) {
    CUresult result = on ? show(driver, span) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&setting);
    result = change_sync_memops(driver, span, value, on, pointer);
    pthread_mutex_unlock(&setting);
    return result;
}

CUresult bfc_set_pointer_attribute(const struct bfc_driver *driver, const void *value,
                                   CUpointer_attribute attribute, CUdeviceptr pointer) {
    struct bfc_pointer span;
    bfc_pointer_lookup(pointer, &span);
    if (!is_ours(&span) || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !value)
        return driver->cuPointerSetAttribute(value, attribute, asked_of(&span, pointer));
    unsigned on;
    memcpy(&on, value, sizeof on);
    return set_sync_memops(driver, &span, value, on != 0, pointer);
}

/* ---- frees ---- */

/* Any thread may free, whatever context is its current one. */
static void set_on_region(const struct bfc_arena *arena, CUdeviceptr region, unsigned on) {
    const struct bfc_driver *driver = bfc_driver();
    if (bfc_arena_is_host(arena) || !driver->cuPointerSetAttribute ||
        driver->cuCtxPushCurrent_v2(arena->context) != CUDA_SUCCESS)
        return;
    if (region == BFC_ALL_PAGES)
        set_on_all_pages(driver, arena, &on);
    else
        driver->cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, region);
    bfc_current_pop(driver);
}

/* While the block lives its region does, so it is cleared before the free. */
void bfc_sync_memops_goes(struct bfc_arena *arena, uint64_t id) {
    struct bfc_block_attributes attributes;
    pthread_mutex_lock(&setting);
    if (bfc_block_attributes_set_freeing(id, true, &attributes) &&
        !bfc_block_attributes_sync_memops_in(arena, attributes.region))
        set_on_region(arena, attributes.region, 0);
    pthread_mutex_unlock(&setting);
}

void bfc_sync_memops_stays(struct bfc_arena *arena, uint64_t id) {
    struct bfc_block_attributes attributes;
    pthread_mutex_lock(&setting);
    if (bfc_block_attributes_set_freeing(id, false, &attributes))
        set_on_region(arena, attributes.region, 1);
    pthread_mutex_unlock(&setting);
}
