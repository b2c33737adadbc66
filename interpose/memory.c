/* Allocating, freeing and asking, for the program. */
#include "interpose/memory.h"

#include "interpose/capture.h"
#include "interpose/domain.h"
#include "interpose/explain.h"
#include "interpose/exports.h"
#include "interpose/group.h"
#include "interpose/observe.h"
#include "interpose/process.h"
#include "interpose/record.h"
#include "interpose/reuse.h"
#include "interpose/segment.h"
#include "interpose/source.h"
#include "interpose/unsafe.h"

/* ---- forwarding ---- */

static CUresult forward_allocation(const struct bfc_driver *driver, CUdeviceptr *pointer,
                                   size_t bytes, enum bfc_forward_reason reason) {
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

static inline __attribute__((always_inline)) CUresult
allocate_in(const struct bfc_driver *driver, struct bfc_domain *domain, CUdeviceptr *pointer,
            size_t bytes, enum bfc_reuse_how how) {
    enum bfc_status status;
    uint64_t start = bfc_observe_allocate_start();
    if (__builtin_expect(bytes > domain->device_total, 0))
        return refuse_too_large(driver, domain, pointer, bytes);
    if (__builtin_expect(bfc_group.left != 0, 0) && bfc_group_take(domain, bytes, pointer)) {
        bfc_observe_allocation(domain, *pointer, bytes, start);
        return CUDA_SUCCESS;
    }
    CUresult result = bfc_reuse_allocate(driver, domain, bytes, how, pointer, &status);
    BFC_CHECK_POOL(domain->pool);
    if (status != BFC_OK && how == BFC_REUSE_THERE)
        return result;
    if (status != BFC_OK) {
        result = answer_failure(driver, status, pointer, bytes);
        return explain_failure(driver, domain, result, bytes);
    }
    if (result == CUDA_SUCCESS)
        bfc_observe_allocation(domain, *pointer, bytes, start);
    return result;
}

/* BFC_BYPASS_ABOVE. What the pools only cache must not be what the driver lacks. */
static __attribute__((noinline)) CUresult bypass(const struct bfc_driver *driver,
                                                 CUdeviceptr *pointer, size_t bytes) {
    CUresult result = forward_allocation(driver, pointer, bytes, BFC_FORWARD_BYPASSED);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && bfc_source_relieve(driver))
        result = driver->cuMemAlloc_v2(pointer, bytes);
    return result;
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
    if (__builtin_expect(bytes > domain->bypass_above, 0))
        return bypass(driver, pointer, bytes);
    return allocate_in(driver, domain, pointer, bytes,
                       captures == BFC_CAPTURE_NONE ? BFC_REUSE_ANY : BFC_REUSE_CLEAN);
}

/* What is not as usual: the first call, a disabled process or forked child, arguments not for us.
 */
static __attribute__((noinline)) CUresult allocate_unusual(const struct bfc_driver *driver,
                                                           CUdeviceptr *pointer, size_t bytes) {
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

static inline CUresult allocate(const struct bfc_driver *driver, CUdeviceptr *pointer,
                                size_t bytes) {
    if (bfc_process_serves() && pointer && bytes && driver->can_pool && !bfc_exports_need_own())
        return allocate_pooled(driver, pointer, bytes);
    return allocate_unusual(driver, pointer, bytes);
}

static __attribute__((noinline)) void record(CUresult result, const CUdeviceptr *pointer,
                                             size_t bytes) {
    if (result == CUDA_SUCCESS)
        bfc_record_allocation(*pointer, bytes);
    else if (result == CUDA_ERROR_OUT_OF_MEMORY)
        bfc_record_out_of_memory(bytes);
}

CUresult bfc_allocate(const struct bfc_driver *driver, CUdeviceptr *pointer, size_t bytes) {
    CUresult result = allocate(driver, pointer, bytes);
    if (bfc_records())
        record(result, pointer, bytes);
    return result;
}

bool bfc_allocate_at_once(const struct bfc_driver *driver, CUdeviceptr *pointer, size_t bytes,
                          unsigned long long context) {
    if (!bytes || !bfc_process_serves() || bfc_exports_need_own() || bfc_captures_exist())
        return false;
    struct bfc_domain *domain = bfc_domain_again(driver, context);
    if (!domain || bytes > domain->bypass_above || bytes > domain->device_total ||
        allocate_in(driver, domain, pointer, bytes, BFC_REUSE_THERE) != CUDA_SUCCESS)
        return false;
    if (bfc_records())
        bfc_record_allocation(*pointer, bytes);
    return true;
}

/* ---- freeing ---- */

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

static inline __attribute__((always_inline)) CUresult free_pooled(const struct bfc_driver *driver,
                                                                  struct bfc_domain *domain,
                                                                  CUdeviceptr pointer,
                                                                  bool current) {
    uint64_t start = bfc_observe_free_start();
    uint64_t noted = bfc_exports_noted(domain, pointer);
    CUresult result = bfc_reuse_free(driver, domain, pointer, current);
    return note_free(domain, pointer, result, noted, start);
}

/* A free that failed at once, whose answer the runtime is to hear from its driver. */
static __thread struct {
    CUdeviceptr pointer; /* 0: none */
    CUresult result;
} answered __attribute__((tls_model("initial-exec")));

CUresult bfc_free(const struct bfc_driver *driver, CUdeviceptr pointer) {
    if (__builtin_expect(answered.pointer != 0, 0) && answered.pointer == pointer) {
        answered.pointer = 0;
        return answered.result;
    }
    if (bfc_records())
        bfc_record_free(pointer, NULL);
    struct bfc_domain *domain = owner_of(pointer);
    if (domain)
        return free_pooled(driver, domain, pointer, false);
    bfc_count_forwarded_free(pointer ? BFC_FORWARD_FOREIGN : BFC_FORWARD_BAD_CALL);
    return driver->cuMemFree_v2(pointer);
}

bool bfc_free_at_once(const struct bfc_driver *driver, CUdeviceptr pointer,
                      unsigned long long context, CUresult *result) {
    if (!bfc_process_serves() || bfc_captures_exist())
        return false;
    struct bfc_domain *domain = bfc_domain_again_of(driver, context, pointer);
    if (!domain)
        return false;
    if (bfc_records())
        bfc_record_free(pointer, NULL);
    *result = free_pooled(driver, domain, pointer, true);
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
