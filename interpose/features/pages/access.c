/* Sets which devices may use a pool's pages. */
#include "interpose/features/pages/page_backing.h"

#include "interpose/arena/arena.h"
#include "interpose/context/capture.h"
#include "interpose/context/peers.h"

static CUmemAccessDesc access_of(CUdevice device, bool may) {
    return (CUmemAccessDesc){
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
        .flags = may ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE,
    };
}

CUresult bfc_access_allow(const struct bfc_driver *driver, struct bfc_arena *arena, bfc_addr start,
                          uint64_t bytes) {
    CUdevice devices[BFC_PEER_DEVICES_MOST];
    CUmemAccessDesc access[BFC_PEER_DEVICES_MOST + 1];
    size_t count = bfc_peers_devices(arena->context, arena->device, devices);
    access[0] = access_of(arena->device, true);
    for (size_t i = 0; i < count; i++)
        access[i + 1] = access_of(devices[i], true);
    return driver->cuMemSetAccess(start, bytes, access, count + 1);
}

/* A series of pages at adjacent addresses, whose access one call of the driver changes. */
struct run {
    bfc_addr start;
    uint64_t bytes;
};

static bool extend_run(void *context, const struct bfc_page_info *page) {
    struct run *run = context;
    if (page->lost || page->asleep)
        return true;
    if (!run->bytes)
        run->start = page->start;
    if (page->start != run->start + run->bytes)
        return false;
    run->bytes += page->bytes;
    return true;
}

static struct run next_run(struct bfc_pool *pool, bfc_addr from) {
    struct run run = {0};
    bfc_pool_visit_pages(pool, from, UINT64_MAX, extend_run, &run);
    return run;
}

CUresult bfc_access_change(const struct bfc_driver *driver, struct bfc_arena *arena,
                           CUdevice device) {
    CUresult result = CUDA_SUCCESS;
    if (!bfc_paging_of(arena) || device == arena->device)
        return CUDA_SUCCESS;
    bfc_pool_hold_pages(arena->pool);
    CUmemAccessDesc access = access_of(device, bfc_peers_device_may(arena->context, device));
    CUstreamCaptureMode mode = bfc_capture_relax_now(driver);
    struct run run = next_run(arena->pool, 0);
    for (; run.bytes && result == CUDA_SUCCESS; run = next_run(arena->pool, run.start + run.bytes))
        result = driver->cuMemSetAccess(run.start, run.bytes, &access, 1);
    bfc_capture_restore(driver, mode);
    bfc_pool_let_pages(arena->pool);
    return result;
}
