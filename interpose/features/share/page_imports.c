/* Imports blocks that lie in pages of other processes. */
#include "interpose/features/share/page_imports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cancel.h"
#include "interpose/config/log.h"
#include "interpose/context/capture.h"
#include "interpose/driver/current.h"
#include "interpose/features/common/retry_release.h"
#include "interpose/features/share/page_message.h"

#define LEAST_PAGE (UINT64_C(64) << 10) /* in bytes; no device has smaller pages */

/* The pages of a block that this process has got from the exporter so far. */
struct pages {
    uint64_t count, wanted; /* how many pages have come; how many the block has */
    struct page {
        CUmemGenericAllocationHandle handle;
        uint64_t bytes;
    } page[];
};

static void report_refusal(const struct bfc_token *token, enum bfc_fetch_answer answer) {
    static const char *const reasons[] = {
        [BFC_FETCH_SILENT] = "that process has ended, or does not answer",
        [BFC_FETCH_STALE] = "its memory was freed there",
        [BFC_FETCH_REFUSED] = "the driver there does not export its memory",
    };
    const char *reason = answer == BFC_FETCH_FAILED ? strerror(errno) : reasons[answer];
    bfc_log(BFC_LOG_ERROR, "cuIpcOpenMemHandle: a token of process %d cannot be opened: %s",
            token->pid, reason);
}

static CUresult import_page(const struct bfc_driver *driver, struct pages *pages, int file,
                            uint64_t bytes) {
    struct page *page = &pages->page[pages->count];
    CUresult result = driver->cuMemImportFromShareableHandle(
        &page->handle, (void *)(intptr_t)file, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    page->bytes = bytes;
    pages->count += result == CUDA_SUCCESS;
    return result;
}

static CUresult import_batch(const struct bfc_driver *driver, struct pages *pages,
                             const struct bfc_page_reply *reply, const int *files) {
    CUresult result =
        reply->count <= pages->wanted - pages->count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    for (uint64_t i = 0; i < reply->count; i++) {
        if (result == CUDA_SUCCESS)
            result = import_page(driver, pages, files[i], reply->bytes[i]);
        close(files[i]);
    }
    return result;
}

static CUresult import_all(const struct bfc_driver *driver, struct bfc_page_fetch *fetch,
                           enum bfc_fetch_answer *answer, struct pages *pages) {
    struct bfc_page_reply reply;
    int files[BFC_LOCAL_FILES];
    CUresult result = CUDA_SUCCESS;
    while (result == CUDA_SUCCESS && pages->count < pages->wanted) {
        *answer = bfc_page_fetch_next(fetch, &reply, files);
        result = *answer == BFC_FETCH_DONE ? import_batch(driver, pages, &reply, files)
                                           : CUDA_ERROR_INVALID_HANDLE;
    }
    return result;
}

/* Gets all pages of the block from the exporter. Cancellation is disabled, since the program may
 * cancel its thread while this library waits. */
static CUresult fetch_all(const struct bfc_driver *driver, const struct bfc_token *token,
                          struct pages *pages) {
    struct bfc_page_fetch fetch;
    int before = errno, cancel = bfc_cancel_disable();
    CUresult result = CUDA_ERROR_INVALID_HANDLE;
    enum bfc_fetch_answer answer = bfc_page_fetch_begin(&fetch, token);
    if (answer == BFC_FETCH_DONE)
        result = import_all(driver, &fetch, &answer, pages);
    if (answer != BFC_FETCH_DONE)
        report_refusal(token, answer);
    bfc_local_end(&fetch.exporter);
    bfc_cancel_restore(cancel);
    errno = before;
    return result;
}

/* Unmaps the first `mapped` bytes of the import, and frees its range of addresses. */
static void unmap_pages(const struct bfc_driver *driver, const struct bfc_page_import *import,
                        uint64_t mapped) {
    if (mapped == 0 || bfc_retry_unmap(driver, import->base, mapped) == CUDA_SUCCESS)
        bfc_retry_free_addresses(driver, import->base, import->bytes);
}

static CUresult map_each(const struct bfc_driver *driver, const struct pages *pages,
                         CUdeviceptr base, uint64_t *mapped) {
    CUresult result = CUDA_SUCCESS;
    *mapped = 0;
    for (uint64_t i = 0; i < pages->count && result == CUDA_SUCCESS; i++) {
        const struct page *page = &pages->page[i];
        result = driver->cuMemMap(base + *mapped, page->bytes, 0, page->handle, 0);
        *mapped += result == CUDA_SUCCESS ? page->bytes : 0;
    }
    return result;
}

/* Gives the importing device, and the device that the memory is on, access to the pages, as
 * cuIpcOpenMemHandle does. */
static CUresult allow_access(const struct bfc_driver *driver, const struct pages *pages,
                             const struct bfc_page_import *import) {
    CUdevice device;
    CUmemAllocationProp properties;
    CUresult result = driver->cuCtxGetDevice(&device);
    if (result == CUDA_SUCCESS)
        result = driver->cuMemGetAllocationPropertiesFromHandle(&properties, pages->page[0].handle);
    if (result != CUDA_SUCCESS)
        return result;
    CUmemAccessDesc access[2] = {
        {.location = properties.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
        {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
         .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
    };
    result = driver->cuMemSetAccess(import->base, import->bytes, access,
                                    properties.location.id == device ? 1 : 2);
    /* without peer access, cuIpcOpenMemHandle is documented to return CUDA_ERROR_MAP_FAILED */
    return result == CUDA_ERROR_INVALID_DEVICE ? CUDA_ERROR_MAP_FAILED : result;
}

static CUresult map_pages(const struct bfc_driver *driver, const struct pages *pages,
                          struct bfc_page_import *import) {
    uint64_t mapped;
    CUresult result = driver->cuMemAddressReserve(&import->base, import->bytes, 0, 0, 0);
    if (result != CUDA_SUCCESS)
        return result;
    result = map_each(driver, pages, import->base, &mapped);
    if (result == CUDA_SUCCESS)
        result = allow_access(driver, pages, import);
    if (result != CUDA_SUCCESS)
        unmap_pages(driver, import, mapped);
    return result;
}

static bool add_up_to(const struct pages *pages, uint64_t bytes) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < pages->count; i++) {
        if (pages->page[i].bytes > bytes - sum)
            return false;
        sum += pages->page[i].bytes;
    }
    return sum == bytes;
}

/* Gets the pages from the exporter and maps them. All handles are then released, also if that has
 * succeeded, since a page that is mapped needs no handle any more. */
static CUresult import_into(const struct bfc_driver *driver, const struct bfc_token *token,
                            struct pages *pages, struct bfc_page_import *import) {
    CUstreamCaptureMode mode = bfc_capture_relax_now(driver);
    CUresult result = fetch_all(driver, token, pages);
    if (result == CUDA_SUCCESS)
        result = add_up_to(pages, import->bytes) ? map_pages(driver, pages, import)
                                                 : CUDA_ERROR_INVALID_HANDLE;
    for (uint64_t i = 0; i < pages->count; i++)
        bfc_retry_release(driver, pages->page[i].handle);
    bfc_capture_restore(driver, mode);
    return result;
}

CUresult bfc_page_import(const struct bfc_driver *driver, const struct bfc_token *token,
                         const struct bfc_row *row, struct bfc_page_import *import) {
    if (!driver->can_share_pages)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (row->pages > row->region_size / LEAST_PAGE)
        return CUDA_ERROR_INVALID_HANDLE;
    struct pages *pages = calloc(1, sizeof *pages + row->pages * sizeof pages->page[0]);
    if (!pages)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pages->wanted = row->pages;
    *import = (struct bfc_page_import){.bytes = row->region_size};
    CUresult result = import_into(driver, token, pages, import);
    free(pages);
    return result;
}

/* The size in bytes of an allocation that is made only to free it, since the free waits for the
 * device. When a smaller one is freed, the driver may keep the memory and not wait. */
enum { WAIT_BYTES = 2 << 20 };

/* Waits for all work of the current context by an allocation and a free, which works during
 * captures too. interpose/arena/upstream.c does the same for arenas, but an importing process may
 * have none. */
static CUresult wait_as_free(const struct bfc_driver *driver) {
    CUdeviceptr memory;
    CUresult result = driver->cuMemAlloc_v2(&memory, WAIT_BYTES);
    return result == CUDA_SUCCESS ? driver->cuMemFree_v2(memory) : result;
}

static CUresult wait_for_context(const struct bfc_driver *driver) {
    struct bfc_waits *waits = bfc_capture_enter_wait();
    if (!waits)
        return wait_as_free(driver);
    CUresult result = driver->cuCtxSynchronize();
    bfc_capture_leave_wait(waits);
    return result;
}

/* Waits for all work of the context, then unmaps the pages. It waits because cuIpcCloseMemHandle
 * does, while cuMemUnmap is not documented to. */
static CUresult wait_and_unmap(const struct bfc_driver *driver,
                               const struct bfc_page_import *import, CUcontext context) {
    bool pushed;
    CUresult result = bfc_current_enter(driver, context, &pushed);
    if (result != CUDA_SUCCESS)
        return result;
    result = wait_for_context(driver);
    bfc_current_leave(driver, pushed);
    if (result == CUDA_SUCCESS)
        result = driver->cuMemUnmap(import->base, import->bytes);
    if (result == CUDA_SUCCESS)
        bfc_retry_free_addresses(driver, import->base, import->bytes);
    return result;
}

CUresult bfc_page_import_close(const struct bfc_driver *driver,
                               const struct bfc_page_import *import, CUcontext context) {
    CUstreamCaptureMode mode = bfc_capture_relax_now(driver);
    CUresult result = wait_and_unmap(driver, import, context);
    bfc_capture_restore(driver, mode);
    return result;
}

void bfc_page_import_drop(const struct bfc_driver *driver, const struct bfc_page_import *import) {
    CUstreamCaptureMode mode = bfc_capture_relax_now(driver);
    unmap_pages(driver, import, import->bytes);
    bfc_capture_restore(driver, mode);
}
