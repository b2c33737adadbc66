/* Decides whether a pool is backed by pages, and with which properties pages are created. */
#include "interpose/features/pages/page_backing.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "interpose/config/log.h"
#include "interpose/config/process.h"
#include "interpose/context/capture.h"
#include "interpose/features/common/retry_release.h"
#include "pool/pool.h"

unsigned bfc_paging_slot;

static bool has_attribute(const struct bfc_driver *driver, CUdevice_attribute attribute,
                          CUdevice device) {
    int value = 0;
    return driver->cuDeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS && value != 0;
}

/* Pages are made exportable, and usable by network cards, where the device supports it, since
 * neither can be added later. */
static CUmemAllocationProp properties_on(const struct bfc_driver *driver, CUdevice device) {
    CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
    };
    if (has_attribute(driver, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
                      device))
        properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.allocFlags.gpuDirectRDMACapable =
        has_attribute(driver, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, device);
    return properties;
}

static bool find_granule(const struct bfc_driver *driver, struct bfc_paging *paging) {
    size_t granule = 0;
    if (driver->cuMemGetAllocationGranularity(&granule, &paging->properties,
                                              CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS)
        return false;
    paging->granule = granule;
    return granule >= BFC_ALIGNMENT && (granule & (granule - 1)) == 0;
}

static CUresult try_page(const struct bfc_driver *driver, const struct bfc_paging *paging) {
    CUmemGenericAllocationHandle page;
    CUresult result = driver->cuMemCreate(&page, paging->granule, &paging->properties, 0);
    return result == CUDA_SUCCESS ? bfc_retry_release(driver, page) : result;
}

static CUresult try_addresses(const struct bfc_driver *driver, const struct bfc_paging *paging) {
    CUdeviceptr start;
    CUresult result = driver->cuMemAddressReserve(&start, paging->granule, 0, 0, 0);
    return result == CUDA_SUCCESS ? bfc_retry_free_addresses(driver, start, paging->granule)
                                  : result;
}

/* Whether a call for pages works, when tried on one page; a lack of memory does not count as a
 * failure. Nothing is mapped, since unmapping might wait for the device. */
static bool works_in_context(CUresult (*try)(const struct bfc_driver *, const struct bfc_paging *),
                             const struct bfc_driver *driver, const struct bfc_paging *paging) {
    CUstreamCaptureMode mode = bfc_capture_relax_now(driver);
    CUresult result = try(driver, paging);
    bfc_capture_restore(driver, mode);
    return result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY;
}

/* Fills in the page size and properties of `paging`. Returns NULL, or why there can be no pages. */
static const char *fill_in(const struct bfc_driver *driver, CUdevice device,
                           struct bfc_paging *paging) {
    if (!driver->can_page)
        return "the driver has no calls for it";
    if (!has_attribute(driver, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device))
        return "the device does not support it";
    paging->properties = properties_on(driver, device);
    if (!driver->can_share_pages || !paging->properties.requestedHandleTypes)
        return "its memory could not be shared with other processes";
    if (!find_granule(driver, paging))
        return "the driver names no size for pages";
    if (!works_in_context(try_page, driver, paging))
        return "the driver refused to make a page";
    if (!works_in_context(try_addresses, driver, paging))
        return "the driver refused addresses";
    return NULL;
}

/* Whether the machine has only one device. With several, a plain copy between two devices that have
 * no peer access does not reach pages. */
static bool is_alone(const struct bfc_driver *driver) {
    int devices = 0;
    return driver->cuDeviceGetCount && driver->cuDeviceGetCount(&devices) == CUDA_SUCCESS &&
           devices == 1;
}

/* Whether making a page takes so long that a GiB of pages would take more than 160 ms, ten times
 * what an H100 takes. The first call may set something up, and any may be interrupted, so the
 * fastest of TRIES calls counts. */
static bool is_slow(const struct bfc_driver *driver, const struct bfc_paging *paging) {
    enum { TRIES = 4 };
    const uint64_t most = UINT64_C(160000000) * paging->granule >> 30;
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < TRIES && least > most; i++) {
        uint64_t start = bfc_now_ns();
        works_in_context(try_page, driver, paging);
        least = bfc_min(least, bfc_now_ns() - start);
    }
    return least > most;
}

/* Whether the settings ask for sleep, in which a job's memory moves to the host; only pages can do
 * that. */
static bool is_to_sleep(void) {
    const struct bfc_process *process = bfc_process_if_made();
    return process && (process->options.sleep_idle >= 0 || process->options.sleep_quantum >= 0);
}

const char *bfc_pages_unwanted(const struct bfc_arena *arena) {
    if (bfc_capture_was_seen() && !is_to_sleep())
        return "the program captures streams";
    return bfc_load_relaxed(&arena->shown) ? "the program exports or registers memory" : NULL;
}

/* Returns why BFC_BACKING=auto takes no pages on this device, although the device supports them;
 * NULL: it takes them. */
static const char *find_objection(const struct bfc_driver *driver, const struct bfc_arena *arena,
                                  const struct bfc_paging *paging) {
    if (!is_alone(driver))
        return "there are several devices";
    return is_slow(driver, paging) ? "the driver takes long to make a page"
                                   : bfc_pages_unwanted(arena);
}

static void log_regions(const struct bfc_options *options, CUdevice device, const char *why) {
    static unsigned seen;
    bfc_log_repeated(BFC_LOG_INFO, &seen, "device %d: BFC_BACKING=%s acts as malloc: %s",
                     (int)device, options->backing == BFC_BACKING_AUTO ? "auto" : "pages", why);
}

struct bfc_paging *bfc_paging_make(const struct bfc_driver *driver,
                                   const struct bfc_options *options,
                                   const struct bfc_arena *arena) {
    struct bfc_paging found = {0};
    if (options->backing == BFC_BACKING_MALLOC)
        return NULL;
    found.is_automatic = options->backing == BFC_BACKING_AUTO;
    const char *why = fill_in(driver, arena->device, &found);
    if (!why && found.is_automatic)
        why = find_objection(driver, arena, &found);
    struct bfc_paging *paging = why ? NULL : malloc(sizeof *paging);
    if (paging)
        *paging = found;
    else
        log_regions(options, arena->device, why ? why : "the host has no memory");
    return paging;
}
