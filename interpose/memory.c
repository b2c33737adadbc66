/* Allocating, freeing and asking, for the program. */
#include "interpose/memory.h"

#include "interpose/capture.h"
#include "interpose/domain.h"
#include "interpose/explain.h"
#include "interpose/exports.h"
#include "interpose/group.h"
#include "interpose/hooks.h"
#include "interpose/notes.h"
#include "interpose/observe.h"
#include "interpose/process.h"
#include "interpose/record.h"
#include "interpose/reuse.h"
#include "interpose/segment.h"
#include "interpose/source.h"
#include "interpose/unsafe.h"

/* ---- forwarding ---- */

static __attribute__((noinline)) CUresult forward_allocation(const struct bfc_driver *driver,
                                                             CUdeviceptr *pointer, size_t bytes,
                                                             enum bfc_forward_reason reason) {
    bfc_count_forwarded_allocation(reason);
    return driver->cuMemAlloc_v2(pointer, bytes);
}

/* ---- allocating ---- */

static CUresult explain_failure(const struct bfc_driver *driver, struct bfc_domain *domain,
                                CUresult result, size_t bytes) {
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        bfc_observe_landmark(domain, BFC_EVENT_OUT_OF_MEMORY, 0, bytes);
        bfc_explain_out_of_memory(driver, domain, bytes);
    }
    return result;
}

/* The pool could not serve it: whatever the driver said when it was asked to grow is the answer. */
static CUresult answer_failure(const struct bfc_driver *driver, enum bfc_status status,
                               CUdeviceptr *pointer, size_t bytes) {
    if (status == BFC_NO_HOST_MEMORY)
        return forward_allocation(driver, pointer, bytes, BFC_FORWARD_NO_HOST_MEMORY);
    CUresult result = bfc_source_take_error();
    return result == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : result;
}

/* More than the device has: nothing that the pool could give back would help. */
static __attribute__((noinline)) CUresult refuse_too_large(const struct bfc_driver *driver,
                                                           struct bfc_domain *domain,
                                                           CUdeviceptr *pointer, size_t bytes) {
    CUresult result = forward_allocation(driver, pointer, bytes, BFC_FORWARD_TOO_LARGE);
    return explain_failure(driver, domain, result, bytes);
}

static CUresult allocate_in(const struct bfc_driver *driver, struct bfc_domain *domain,
                            CUdeviceptr *pointer, size_t bytes, enum bfc_reuse_how how) {
    enum bfc_status status;
    uint64_t start = bfc_observe_allocate_start();
    if (bytes > domain->device_total)
        return refuse_too_large(driver, domain, pointer, bytes);
    if (bfc_group.left != 0 && bfc_group_take(domain, bytes, pointer)) {
        bfc_observe_allocation(domain, *pointer, bytes, start);
        return CUDA_SUCCESS;
    }
    CUresult result = bfc_reuse_allocate(driver, domain, bytes, how, pointer, &status);
    BFC_CHECK_POOL(domain->pool);
    if (status != BFC_OK) {
        result = answer_failure(driver, status, pointer, bytes);
        return explain_failure(driver, domain, result, bytes);
    }
    if (result == CUDA_SUCCESS)
        bfc_observe_allocation(domain, *pointer, bytes, start);
    return result;
}

/* BFC_BYPASS_ABOVE. What the pools only cache must not be what the driver lacks. */
static CUresult bypass(const struct bfc_driver *driver, CUdeviceptr *pointer, size_t bytes) {
    CUresult result = forward_allocation(driver, pointer, bytes, BFC_FORWARD_BYPASSED);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && bfc_source_relieve(driver))
        result = driver->cuMemAlloc_v2(pointer, bytes);
    return result;
}

static CUresult allocate_of(const struct bfc_driver *driver, struct bfc_domain *domain,
                            CUdeviceptr *pointer, size_t bytes, enum bfc_capture_state captures) {
    if (bytes > domain->bypass_above)
        return bypass(driver, pointer, bytes);
    return allocate_in(driver, domain, pointer, bytes,
                       captures == BFC_CAPTURE_NONE ? BFC_REUSE_ANY : BFC_REUSE_CLEAN);
}

/* From the pool of the current context, unless a capture or the want of a context forbids it. */
static CUresult allocate_pooled(const struct bfc_driver *driver, CUdeviceptr *pointer,
                                size_t bytes) {
    enum bfc_forward_reason reason = BFC_FORWARD_CAPTURE;
    enum bfc_capture_state captures = bfc_capture_state(driver);
    struct bfc_domain *domain =
        captures == BFC_CAPTURE_BARRED ? NULL : bfc_current_domain(driver, &reason);
    if (!domain)
        return forward_allocation(driver, pointer, bytes, reason);
    return allocate_of(driver, domain, pointer, bytes, captures);
}

static CUresult ask_and_allocate(const struct bfc_driver *driver, CUdeviceptr *pointer,
                                 size_t bytes) {
    const struct bfc_process *process = bfc_process();
    if (process && process->refuse)
        return CUDA_ERROR_INVALID_VALUE;
    if (!process || !process->serves)
        return forward_allocation(driver, pointer, bytes, BFC_FORWARD_DISABLED);
    if (!pointer || bytes == 0)
        return forward_allocation(driver, pointer, bytes, BFC_FORWARD_BAD_CALL);
    if (!driver->can_pool)
        return forward_allocation(driver, pointer, bytes, BFC_FORWARD_OLD_DRIVER);
    if (bfc_exports_need_own())
        return forward_allocation(driver, pointer, bytes, BFC_FORWARD_EXPORTS);
    return allocate_pooled(driver, pointer, bytes);
}

/*
 * What is not as usual: the first call, a disabled process or forked child, one that records,
 * arguments not for us, a capture.
 */
static __attribute__((noinline)) CUresult allocate_unusual(CUdeviceptr *pointer, size_t bytes) {
    BFC_FIND_DRIVER(driver, cuMemAlloc_v2);
    CUresult result = ask_and_allocate(driver, pointer, bytes);
    if (!bfc_records())
        return result;
    if (result == CUDA_SUCCESS)
        bfc_record_allocation(*pointer, bytes);
    else if (result == CUDA_ERROR_OUT_OF_MEMORY)
        bfc_record_out_of_memory(bytes);
    return result;
}

/* Nor are these: no domain, a group, an odd size, a failed context, mode ordered. */
static __attribute__((noinline)) CUresult allocate_closely(const struct bfc_driver *driver,
                                                           struct bfc_domain *domain,
                                                           CUdeviceptr *pointer, size_t bytes,
                                                           enum bfc_forward_reason reason) {
    return domain ? allocate_of(driver, domain, pointer, bytes, BFC_CAPTURE_NONE)
                  : forward_allocation(driver, pointer, bytes, reason);
}

static __attribute__((noinline)) CUresult refuse(const struct bfc_driver *driver,
                                                 struct bfc_domain *domain, enum bfc_status status,
                                                 CUdeviceptr *pointer, size_t bytes) {
    CUresult result = answer_failure(driver, status, pointer, bytes);
    return explain_failure(driver, domain, result, bytes);
}

CUresult bfc_allocate(CUdeviceptr *pointer, size_t bytes) {
    struct bfc_block_info block;
    enum bfc_forward_reason reason;
    if (__builtin_expect(!bfc_process_is_usual() || !pointer || !bytes || bfc_captures_exist(), 0))
        return allocate_unusual(pointer, bytes);
    const struct bfc_driver *driver = bfc_driver_found;
    struct bfc_domain *domain = bfc_current_domain(driver, &reason);
    if (__builtin_expect(!domain || bytes > bfc_domain_plain_most(domain) || bfc_group.left, 0))
        return allocate_closely(driver, domain, pointer, bytes, reason);
    uint64_t start = bfc_observe_allocate_start();
    enum bfc_status status = bfc_pool_allocate(domain->pool, bytes, 0, &block);
    BFC_CHECK_POOL(domain->pool);
    if (__builtin_expect(status != BFC_OK, 0))
        return refuse(driver, domain, status, pointer, bytes);
    *pointer = block.start;
    bfc_observe_allocation(domain, block.start, bytes, start);
    return CUDA_SUCCESS;
}

/* Where requests must be looked at before they are put to the pool. */
static __attribute__((noinline)) enum bfc_status take_closely(const struct bfc_driver *driver,
                                                              struct bfc_domain *domain,
                                                              size_t bytes,
                                                              struct bfc_block_info *block) {
    enum bfc_status status;
    CUdeviceptr start;
    if (bytes > domain->bypass_above || bytes > domain->device_total ||
        bfc_reuse_allocate(driver, domain, bytes, BFC_REUSE_THERE, &start, &status) != CUDA_SUCCESS)
        return BFC_OUT_OF_MEMORY;
    block->start = start;
    return BFC_OK;
}

bool bfc_allocate_at_once(CUdeviceptr *pointer, size_t bytes, unsigned long long context) {
    struct bfc_block_info block;
    if (!bfc_process_is_usual() || !bytes || bfc_captures_exist() || bfc_group.left)
        return false;
    const struct bfc_driver *driver = bfc_driver_found;
    struct bfc_domain *domain = bfc_domain_again(driver, context);
    if (!domain)
        return false;
    uint64_t start = bfc_observe_allocate_start();
    enum bfc_status status =
        bytes <= bfc_domain_plain_most(domain)
            ? bfc_pool_allocate(domain->pool, bytes, BFC_ALLOCATE_HIT_ONLY, &block)
            : take_closely(driver, domain, bytes, &block);
    BFC_CHECK_POOL(domain->pool);
    if (status != BFC_OK)
        return false;
    *pointer = block.start;
    bfc_observe_allocation(domain, block.start, bytes, start);
    return true;
}

/* ---- freeing ---- */

/* A free that has failed, whose answer the runtime is to hear from its driver. */
static __thread struct {
    CUdeviceptr pointer; /* 0: none */
    CUresult result;
} answered __attribute__((tls_model("initial-exec")));

/* Whose block it is; NULL: not ours, or not ours to touch. */
static struct bfc_domain *owner_of(CUdeviceptr pointer) {
    return bfc_process_if_made() ? bfc_domain_of(pointer) : NULL;
}

/* What a free of ours leaves to do: a freed block's notes go with it, and the segment is told. */
static CUresult note_free(struct bfc_domain *domain, CUdeviceptr pointer, CUresult result,
                          uint64_t noted, uint64_t start) {
    if (result == CUDA_SUCCESS) {
        if (noted)
            bfc_exports_freed(noted);
        bfc_observe_free(domain, pointer, start);
    } else if (result == CUDA_ERROR_INVALID_VALUE) {
        bfc_observe_landmark(domain, BFC_EVENT_INVALID_FREE, pointer, 0);
    }
    return result;
}

/* Whatever may have to be recorded, be noted, or be the driver's. */
static __attribute__((noinline)) CUresult free_unusual(CUdeviceptr pointer) {
    BFC_FIND_DRIVER(driver, cuMemFree_v2);
    if (answered.pointer && answered.pointer == pointer)
        return answered.result;
    if (bfc_records())
        bfc_record_free(pointer, NULL);
    struct bfc_domain *domain = owner_of(pointer);
    if (domain) {
        uint64_t start = bfc_observe_free_start();
        uint64_t noted = bfc_exports_noted(domain, pointer);
        return note_free(domain, pointer, bfc_reuse_free(driver, domain, pointer), noted, start);
    }
    bfc_count_forwarded_free(pointer ? BFC_FORWARD_FOREIGN : BFC_FORWARD_BAD_CALL);
    return driver->cuMemFree_v2(pointer);
}

CUresult bfc_free(CUdeviceptr pointer) {
    struct bfc_domain *domain;
    if (__builtin_expect(!bfc_process_is_usual() || bfc_notes_exist() || bfc_captures_exist() ||
                             answered.pointer || !(domain = bfc_domain_of(pointer)),
                         0))
        return free_unusual(pointer);
    return bfc_reuse_free_plainly(bfc_driver_found, domain, pointer);
}

bool bfc_free_at_once(CUdeviceptr pointer, unsigned long long context, CUresult *result) {
    if (!bfc_process_is_usual() || bfc_notes_exist() || bfc_captures_exist())
        return false;
    const struct bfc_driver *driver = bfc_driver_found;
    struct bfc_domain *domain = bfc_domain_again_of(driver, context, pointer);
    if (!domain)
        return false;
    *result = bfc_reuse_free_here(driver, domain, pointer);
    return true;
}

void bfc_free_answered(CUdeviceptr pointer, CUresult result) {
    answered.pointer = pointer;
    answered.result = result;
}

CUresult bfc_free_async(const struct bfc_driver *driver, CUdeviceptr pointer, CUstream stream,
                        bool per_thread) {
    if (bfc_records())
        bfc_record_free(pointer, stream);
    struct bfc_domain *domain = owner_of(pointer);
    if (domain) {
        uint64_t start = bfc_observe_free_start();
        uint64_t noted = bfc_exports_noted(domain, pointer);
        CUresult result = bfc_reuse_free_async(driver, domain, pointer, stream, per_thread);
        return note_free(domain, pointer, result, noted, start);
    }
    return per_thread ? driver->cuMemFreeAsync_ptsz(pointer, stream)
                      : driver->cuMemFreeAsync(pointer, stream);
}

/* ---- asking ---- */

/* A wholly free region is one free block. */
static void add_releasable(void *context, const struct bfc_block_info *block) {
    uint64_t *releasable = context;
    if (!block->live && block->size == block->region_size)
        *releasable += block->size;
}

/*
 * What the program could still get: the driver's free memory and our wholly free regions, within
 * the limit. Other cached memory does not count: it lies in pieces.
 */
static void add_cached(struct bfc_domain *domain, size_t *free_bytes, size_t *total_bytes) {
    struct bfc_pool_stats stats;
    uint64_t releasable = 0;
    bfc_reuse_settle(domain);
    bfc_pool_read_stats(domain->pool, &stats);
    bfc_pool_visit(domain->pool, add_releasable, &releasable);
    uint64_t others = domain->left_to_others;
    uint64_t free_to_us = *free_bytes > others ? *free_bytes - others : 0;
    uint64_t available = free_to_us + releasable;
    uint64_t held = stats.reserved > releasable ? stats.reserved - releasable : 0;
    uint64_t room = domain->limit > held ? domain->limit - held : 0;
    *free_bytes = available < room ? available : room;
    if (*total_bytes > domain->limit)
        *total_bytes = domain->limit;
}

CUresult bfc_memory_info(const struct bfc_driver *driver, size_t *free_bytes, size_t *total_bytes) {
    size_t device_free, device_total;
    const struct bfc_process *process = bfc_process_if_made();
    enum bfc_forward_reason reason;
    if (!process || !process->active || !driver->can_pool)
        return driver->cuMemGetInfo_v2(free_bytes, total_bytes);
    CUresult result = driver->cuMemGetInfo_v2(&device_free, &device_total);
    if (result != CUDA_SUCCESS)
        return driver->cuMemGetInfo_v2(free_bytes, total_bytes);
    struct bfc_domain *domain = bfc_current_domain(driver, &reason);
    if (domain)
        add_cached(domain, &device_free, &device_total);
    if (free_bytes)
        *free_bytes = device_free;
    if (total_bytes)
        *total_bytes = device_total;
    return CUDA_SUCCESS;
}
