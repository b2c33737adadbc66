/*
 * Allocating and freeing for the program.
 *
 * BFC_FREE=sync: a free waits, as the real one does, until all work of the block's context is
 * complete, and returns that wait's error; then the block is clean and may be handed out at once.
 */
#include "interpose/memory.h"

#include <time.h>

#include "interpose/domain.h"
#include "interpose/process.h"
#include "interpose/segment.h"

/* ---- forwarding ---- */

static CUresult forward_allocation(const struct bfc_driver *driver, CUdeviceptr *pointer,
                                   size_t bytes, enum bfc_forward_reason reason) {
    bfc_count_forwarded_allocation(reason);
    return driver->cuMemAlloc_v2(pointer, bytes);
}

/* ---- allocating ---- */

/*
 * The pool could not serve it. Whatever the driver said when it was asked to grow is the answer; a
 * request beyond the device's size was never asked, so the driver answers it now.
 */
static CUresult explain_failure(const struct bfc_driver *driver, const struct bfc_domain *domain,
                                enum bfc_status status, CUdeviceptr *pointer, size_t bytes) {
    if (bytes > domain->device_total)
        return forward_allocation(driver, pointer, bytes, BFC_FORWARD_TOO_LARGE);
    if (status == BFC_NO_HOST_MEMORY)
        return forward_allocation(driver, pointer, bytes, BFC_FORWARD_NO_HOST_MEMORY);
    CUresult result = bfc_last_source_error();
    return result == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : result;
}

static CUresult allocate_pooled(const struct bfc_driver *driver, struct bfc_domain *domain,
                                CUdeviceptr *pointer, size_t bytes) {
    struct bfc_block_info block;
    bfc_clear_source_error();
    enum bfc_status status = bfc_pool_allocate(domain->pool, bytes, 0, &block);
    if (status != BFC_OK)
        return explain_failure(driver, domain, status, pointer, bytes);
    *pointer = block.start;
    return CUDA_SUCCESS;
}

CUresult bfc_allocate(const struct bfc_driver *driver, CUdeviceptr *pointer, size_t bytes) {
    const struct bfc_process *process = bfc_process();
    if (!process || !process->active)
        return forward_allocation(driver, pointer, bytes, BFC_FORWARD_DISABLED);
    if (process->refuse)
        return CUDA_ERROR_INVALID_VALUE;
    if (!pointer || bytes == 0)
        return forward_allocation(driver, pointer, bytes, BFC_FORWARD_BAD_CALL);
    if (!bfc_driver_can_pool(driver))
        return forward_allocation(driver, pointer, bytes, BFC_FORWARD_OLD_DRIVER);
    enum bfc_forward_reason reason;
    struct bfc_domain *domain = bfc_current_domain(driver, &reason);
    if (!domain)
        return forward_allocation(driver, pointer, bytes, reason);
    return allocate_pooled(driver, domain, pointer, bytes);
}

/* ---- freeing ---- */

enum { TIMED_WAITS = 32 }; /* one wait in so many is timed, and stands for all of them */

static uint64_t read_clock(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Waits for the current context, and counts it. */
static CUresult synchronize_current(const struct bfc_driver *driver, struct bfc_domain *domain) {
    struct bfc_segment_pool *section = domain->section;
    uint64_t waits = __atomic_fetch_add(&section->host_waits, 1, __ATOMIC_RELAXED);
    if (waits % TIMED_WAITS != 0)
        return driver->cuCtxSynchronize();
    uint64_t before = read_clock();
    CUresult result = driver->cuCtxSynchronize();
    __atomic_fetch_add(&section->host_wait_ns, TIMED_WAITS * (read_clock() - before),
                       __ATOMIC_RELAXED);
    return result;
}

/* Waits for all work of the domain's context, whichever context is the thread's current one. */
static CUresult synchronize(const struct bfc_driver *driver, struct bfc_domain *domain) {
    CUcontext current = NULL;
    CUresult result = driver->cuCtxGetCurrent(&current);
    if (result != CUDA_SUCCESS || current == domain->context)
        return result != CUDA_SUCCESS ? result : synchronize_current(driver, domain);
    result = driver->cuCtxPushCurrent_v2(domain->context);
    if (result != CUDA_SUCCESS)
        return result;
    result = synchronize_current(driver, domain);
    CUresult popped = driver->cuCtxPopCurrent_v2(&current);
    return result != CUDA_SUCCESS ? result : popped;
}

/* Waits, then takes the block back. On an error of the wait it stays the program's. */
static CUresult free_pooled(const struct bfc_driver *driver, struct bfc_domain *domain,
                            CUdeviceptr pointer) {
    CUresult result = synchronize(driver, domain);
    if (result != CUDA_SUCCESS)
        return result;
    enum bfc_status status = bfc_pool_free(domain->pool, pointer, BFC_NO_MARK);
    return status == BFC_OK ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Whose block it is; NULL: not ours, or not ours to touch. */
static struct bfc_domain *owner_of(CUdeviceptr pointer) {
    return bfc_process_if_made() ? bfc_domain_of(pointer) : NULL;
}

CUresult bfc_free(const struct bfc_driver *driver, CUdeviceptr pointer) {
    struct bfc_domain *domain = owner_of(pointer);
    if (domain)
        return free_pooled(driver, domain, pointer);
    bfc_count_forwarded_free(pointer ? BFC_FORWARD_FOREIGN : BFC_FORWARD_BAD_CALL);
    return driver->cuMemFree_v2(pointer);
}

/* Freeing allocated memory in stream order is legal; waiting for the whole context covers the
 * stream. */
CUresult bfc_free_async(const struct bfc_driver *driver, CUdeviceptr pointer, CUstream stream,
                        CUresult (*forward)(CUdeviceptr, CUstream)) {
    struct bfc_domain *domain = owner_of(pointer);
    return domain ? free_pooled(driver, domain, pointer) : forward(pointer, stream);
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
static void add_cached(const struct bfc_domain *domain, size_t *free_bytes, size_t *total_bytes) {
    struct bfc_pool_stats stats;
    uint64_t releasable = 0;
    bfc_pool_read_stats(domain->pool, &stats);
    bfc_pool_visit(domain->pool, add_releasable, &releasable);
    uint64_t available = *free_bytes + releasable;
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
    if (!process || !process->active || !bfc_driver_can_pool(driver))
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

/*
 * The driver would export the whole region, and the importer would read its first block. Until
 * pooled blocks can be exported, a clean error is the better answer.
 */
CUresult bfc_export_handle(const struct bfc_driver *driver, CUipcMemHandle *handle,
                           CUdeviceptr pointer) {
    if (!owner_of(pointer))
        return driver->cuIpcGetMemHandle(handle, pointer);
    bfc_log(BFC_LOG_ERROR, "cuIpcGetMemHandle: pooled memory cannot be exported to other processes "
                           "yet; run this program with BFC_DISABLE=1");
    return CUDA_ERROR_NOT_SUPPORTED;
}
