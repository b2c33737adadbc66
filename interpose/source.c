/*
 * The pools' source of memory: the driver.
 *
 * Called by the pool without its lock. Regions enter the map before the pool cuts them, and leave
 * it before the driver has them back.
 */
#include "interpose/source.h"

#include <time.h>

#include "interpose/capture.h"
#include "interpose/clock.h"
#include "interpose/marks.h"
#include "interpose/observe.h"
#include "interpose/occupancy.h"
#include "interpose/region_map.h"
#include "interpose/reuse.h"
#include "interpose/segment.h"
#include "interpose/yield.h"

static __thread CUresult last_error __attribute__((tls_model("initial-exec")));

CUresult bfc_source_take_error(void) {
    CUresult error = last_error;
    last_error = CUDA_SUCCESS;
    return error;
}

/* Usually the context is current already: pools grow in the thread that allocates. */
static CUresult enter_context(const struct bfc_driver *driver, CUcontext context, bool *pushed) {
    CUcontext current = NULL;
    *pushed = false;
    CUresult result = driver->cuCtxGetCurrent(&current);
    if (result != CUDA_SUCCESS || current == context)
        return result;
    result = driver->cuCtxPushCurrent_v2(context);
    *pushed = result == CUDA_SUCCESS;
    return result;
}

static void leave_context(const struct bfc_driver *driver, bool pushed) {
    if (pushed)
        bfc_pop_context(driver);
}

/* BFC_RESERVE: would the device still have so much for others? */
static bool leaves_enough(const struct bfc_driver *driver, const struct bfc_domain *domain,
                          uint64_t bytes) {
    size_t free_bytes, total;
    if (!domain->left_to_others || !driver->cuMemGetInfo_v2 ||
        driver->cuMemGetInfo_v2(&free_bytes, &total) != CUDA_SUCCESS)
        return true;
    return free_bytes >= domain->left_to_others && bytes <= free_bytes - domain->left_to_others;
}

/* What the device has left, for the segment; its context is current. */
static void note_device_free(const struct bfc_driver *driver, struct bfc_domain *domain) {
    size_t free_bytes, total_bytes;
    struct timespec time;
    if (!driver->cuMemGetInfo_v2 ||
        driver->cuMemGetInfo_v2(&free_bytes, &total_bytes) != CUDA_SUCCESS)
        return;
    clock_gettime(CLOCK_REALTIME, &time);
    __atomic_store_n(&domain->section->device_free, free_bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&domain->section->device_free_ns,
                     (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec,
                     __ATOMIC_RELAXED);
}

static CUresult reserve_region(struct bfc_domain *domain, uint64_t bytes, CUdeviceptr *pointer) {
    const struct bfc_driver *driver = bfc_driver();
    bool pushed;
    CUresult result = enter_context(driver, domain->context, &pushed);
    if (result != CUDA_SUCCESS)
        return result;
    result = leaves_enough(driver, domain, bytes) ? driver->cuMemAlloc_v2(pointer, bytes)
                                                  : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS && !bfc_region_add(*pointer, bytes, domain)) {
        driver->cuMemFree_v2(*pointer);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    note_device_free(driver, domain);
    leave_context(driver, pushed);
    return result;
}

static enum bfc_reserve_result reserve(void *context, uint64_t bytes, bfc_addr *start) {
    CUdeviceptr pointer = 0;
    CUresult result = reserve_region(context, bytes, &pointer);
    if (result != CUDA_SUCCESS) {
        last_error = result;
        bfc_observe_landmark(context, BFC_EVENT_REFUSED, 0, bytes);
        return result == CUDA_ERROR_OUT_OF_MEMORY ? BFC_REFUSED : BFC_FAILED;
    }
    *start = pointer;
    bfc_observe_landmark(context, BFC_EVENT_GROW, pointer, bytes);
    return BFC_RESERVED;
}

/* Possibly from the helper thread, which has no context. Once the context has ended, so has its
 * memory. */
static void release(void *context, bfc_addr start, uint64_t bytes) {
    struct bfc_domain *domain = context;
    const struct bfc_driver *driver = bfc_driver();
    bool pushed;
    bfc_region_remove(start, domain);
    bfc_observe_landmark(domain, BFC_EVENT_RELEASE, start, bytes);
    if (enter_context(driver, domain->context, &pushed) != CUDA_SUCCESS)
        return;
    CUstreamCaptureMode mode = bfc_capture_relax(driver);
    driver->cuMemFree_v2(start);
    note_device_free(driver, domain);
    bfc_capture_restore(driver, mode);
    leave_context(driver, pushed);
}

static uint64_t now(void *context) {
    (void)context;
    return bfc_now_ns();
}

/* ---- making and trimming pools ---- */

static uint64_t ask_neighbours(void *context, uint64_t bytes) {
    return bfc_yield_ask(context, bytes);
}

bool bfc_source_make_pool(struct bfc_domain *domain, const struct bfc_options *options) {
    const struct bfc_source source = {
        .context = domain,
        .reserve = reserve,
        .release = release,
        .poll = domain->marks ? bfc_reuse_poll : NULL,
        .wait = domain->marks ? bfc_reuse_wait : NULL,
        .ask_neighbours = options->yield ? ask_neighbours : NULL,
        .now = now,
    };
    struct bfc_pool_config config;
    bfc_pool_config_default(&config);
    bfc_options_configure(options, domain->device_total, &config);
    config.reuse_dirty = domain->free_mode == BFC_FREE_ORDERED;
    config.stats = &domain->section->stats;
    return bfc_pool_create(&domain->pool, &config, &source) == BFC_OK;
}

uint64_t bfc_source_trim(uint64_t bytes) {
    uint64_t released = 0;
    struct bfc_domain *domain;
    for (unsigned i = 0; released < bytes && (domain = bfc_domain_at(i)); i++) {
        bfc_reuse_settle(domain);
        released += bfc_pool_trim(domain->pool, bytes - released);
        bfc_domain_drop(domain);
    }
    return released;
}

uint64_t bfc_source_trim_idle(uint64_t idle_ns) {
    uint64_t released = 0;
    struct bfc_domain *domain;
    for (unsigned i = 0; (domain = bfc_domain_at(i)); i++) {
        bfc_reuse_settle(domain);
        released += bfc_pool_trim_idle(domain->pool, idle_ns);
        bfc_domain_drop(domain);
    }
    return released;
}

static uint64_t empty(const struct bfc_driver *driver, struct bfc_domain *domain) {
    if (domain->marks)
        bfc_marks_wait(domain->marks, driver, bfc_marks_last(domain->marks), UINT64_MAX, NULL);
    bfc_reuse_settle(domain);
    return bfc_pool_trim(domain->pool, UINT64_MAX);
}

bool bfc_source_relieve(const struct bfc_driver *driver) {
    CUdevice device;
    struct bfc_domain *domain;
    uint64_t released = 0;
    if (!bfc_process_if_made() || bfc_capture_state(driver) != BFC_CAPTURE_NONE ||
        driver->cuCtxGetDevice(&device) != CUDA_SUCCESS)
        return false;
    for (unsigned i = 0; (domain = bfc_domain_at(i)); i++) {
        if (domain->device == device)
            released += empty(driver, domain);
        bfc_domain_drop(domain);
    }
    return released > 0;
}

void bfc_source_open_segment(const struct bfc_process *process) {
    static const struct bfc_segment_services services = {
        .trim = bfc_source_trim,
        .refresh = bfc_occupancy_refresh,
        .trim_idle = bfc_source_trim_idle,
    };
    bfc_segment_open(process, &services);
}
