/*
 * Makes the driver's calls for pages.
 *
 * The pool calls these functions without its lock, and only one thread at a time makes or moves
 * pages of a pool. Each call is made in the arena's context until that has ended, and in relaxed
 * capture mode, since on some drivers a call that creates memory would invalidate another thread's
 * capture. The driver's calls themselves name a device or an address, and need no context.
 */
#include "interpose/features/pages/page_backing.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/numbers.h"
#include "interpose/arena/arena.h"
#include "interpose/arena/device.h"
#include "interpose/arena/region_map.h"
#include "interpose/arena/upstream.h"
#include "interpose/config/log.h"
#include "interpose/context/capture.h"
#include "interpose/driver/current.h"
#include "interpose/features/common/retry_release.h"
#include "interpose/host/background.h"
#include "interpose/stats/events.h"

/* How many addresses a pool reserves at once, in multiples of the device's memory. They cost
 * nothing, and with enough of them no block has to wait for addresses. */
enum { ADDRESSES_FACTOR = 4 };

/* The context and the capture mode that a function of this file has set in the calling thread, to
 * be undone before it returns. */
struct visit {
    const struct bfc_driver *driver;
    /* the arena whose context was made current; NULL: the context has ended, or its end takes long
     */
    struct bfc_arena *arena;
    bool pushed;
    CUstreamCaptureMode mode;
};

static bool enter_context(struct visit *visit, struct bfc_arena *arena) {
    *visit = (struct visit){.driver = bfc_driver(), .arena = arena};
    if (bfc_background_is_stopped() || !bfc_arena_await(arena))
        return false;
    if (bfc_arena_make_current(visit->driver, arena, &visit->pushed) != CUDA_SUCCESS) {
        bfc_arena_leave(arena);
        return false;
    }
    visit->mode = bfc_capture_relax_now(visit->driver);
    return true;
}

/* Prepares calls that give pages back: makes the arena's context current, or, if it has ended or
 * its end takes long, lets them be made without a context, since nothing would make them later.
 * False: such calls must not be made now. */
static bool enter_if_possible(struct visit *visit, struct bfc_arena *arena) {
    if (enter_context(visit, arena))
        return true;
    visit->arena = NULL;
    if (bfc_background_is_stopped())
        return false;
    visit->mode = bfc_capture_relax_now(visit->driver);
    return true;
}

static void leave_context(const struct visit *visit) {
    bfc_capture_restore(visit->driver, visit->mode);
    if (!visit->arena)
        return;
    bfc_current_leave(visit->driver, visit->pushed);
    bfc_arena_leave(visit->arena);
}

/* Counts a call for pages and logs a failure. True: the call succeeded. */
static bool note_result(const struct bfc_arena *arena, const char *call, uint64_t bytes,
                        CUresult result) {
    static unsigned seen;
    bfc_add_fetch_relaxed(&arena->stats.section->pages.calls, 1);
    if (result != CUDA_SUCCESS)
        bfc_log_repeated(BFC_LOG_INFO, &seen, "device %d: %s of %s was refused (CUresult %d)",
                         (int)arena->device, call, BFC_BYTES(bytes), (int)result);
    return result == CUDA_SUCCESS;
}

static enum bfc_reserve_result reserve_addresses(void *context, uint64_t bytes, bfc_addr *start) {
    struct bfc_arena *arena = context;
    struct visit visit;
    CUdeviceptr pointer = 0;
    if (!enter_context(&visit, arena))
        return BFC_FAILED;
    CUresult result = visit.driver->cuMemAddressReserve(&pointer, bytes, 0, 0, 0);
    bool done = note_result(arena, "cuMemAddressReserve", bytes, result);
    if (done && !bfc_region_add(pointer, bytes, arena)) {
        bfc_retry_free_addresses(visit.driver, pointer, bytes);
        done = false;
    }
    bfc_upstream_note_device_free(visit.driver, arena);
    leave_context(&visit);
    if (!done)
        return BFC_REFUSED;
    *start = pointer;
    bfc_add_fetch_relaxed(&arena->stats.section->pages.addresses, bytes);
    bfc_log(BFC_LOG_DEBUG, "device %d, context %llu: addresses 0x%llx of %s were reserved",
            (int)arena->device, arena->id, (unsigned long long)pointer, BFC_BYTES(bytes));
    return BFC_RESERVED;
}

static void free_addresses(void *context, bfc_addr start, uint64_t bytes) {
    struct bfc_arena *arena = context;
    struct visit visit;
    bfc_region_remove(start, arena);
    if (!enter_if_possible(&visit, arena))
        return;
    note_result(arena, "cuMemAddressFree", bytes,
                bfc_retry_free_addresses(visit.driver, start, bytes));
    leave_context(&visit);
    bfc_fetch_sub_relaxed(&arena->stats.section->pages.addresses, bytes);
}

static CUresult create_charged(struct bfc_arena *arena, uint64_t bytes, bool is_first,
                               CUmemGenericAllocationHandle *handle, const char **why) {
    const struct bfc_driver *driver = bfc_driver();
    CUresult result = bfc_upstream_charge(arena, bytes, is_first, why);
    if (result != CUDA_SUCCESS)
        return result;
    *why = "the driver refused it";
    result = driver->cuMemCreate(handle, bytes, &bfc_paging_of(arena)->properties, 0);
    bfc_add_fetch_relaxed(&arena->stats.section->pages.calls, 1);
    if (result != CUDA_SUCCESS)
        bfc_device_refund(arena, bytes);
    bfc_upstream_note_device_free(driver, arena);
    return result;
}

static enum bfc_reserve_result create_page(void *context, uint64_t bytes, bfc_page *page,
                                           struct bfc_ask *ask) {
    struct bfc_arena *arena = context;
    struct visit visit;
    CUmemGenericAllocationHandle handle = 0;
    const char *why = "its context cannot be entered";
    CUresult result = CUDA_ERROR_INVALID_CONTEXT;
    if (enter_context(&visit, arena)) {
        result = create_charged(arena, bytes, ask->is_first, &handle, &why);
        leave_context(&visit);
    }
    if (result != CUDA_SUCCESS)
        return bfc_upstream_note_refused(arena, bytes, why, result, ask);
    *page = handle;
    bfc_add_fetch_relaxed(&arena->stats.section->pages.created, bytes);
    bfc_paging_of(arena)->unreported += bytes;
    return BFC_RESERVED;
}

/* Reports how far a pool has grown by pages as one event, however many pages were created. */
static void report_growth(struct bfc_arena *arena, bfc_addr start) {
    if (bfc_paging_of(arena)->unreported)
        bfc_events_add_landmark(&arena->stats, BFC_EVENT_GROW, start,
                                bfc_paging_of(arena)->unreported);
    bfc_paging_of(arena)->unreported = 0;
}

/* Reserved addresses of an ended context that are not given back yet. */
struct bfc_kept_addresses {
    uint64_t start, bytes;
    struct bfc_kept_addresses *next;
};

static void keep_addresses(struct bfc_paging *paging, struct bfc_kept_addresses *kept) {
    kept->next = bfc_load_relaxed(&paging->kept);
    while (!bfc_compare_exchange_seq_cst(&paging->kept, &kept->next, kept))
        ;
}

static bool free_range(const struct bfc_driver *driver, struct bfc_arena *arena, uint64_t start,
                       uint64_t bytes) {
    return note_result(arena, "cuMemAddressFree", bytes,
                       bfc_retry_free_addresses(driver, start, bytes));
}

/* Gives the addresses in the list `kept` back. The driver refuses those behind which another thread
 * still has pages, since the context ended while the process was falling asleep or waking; that
 * thread calls this again when it has unmapped them. No lock is held, as a tool's callback may call
 * us in the driver's calls. So if that thread finds the list empty because this one is just trying,
 * this one sees that `unmapped` has changed, and tries once more. */
static void free_kept(const struct bfc_driver *driver, struct bfc_arena *arena) {
    struct bfc_paging *paging = bfc_paging_of(arena);
    struct bfc_kept_addresses *kept, *next;
    unsigned seen;
    do {
        seen = bfc_load_seq_cst(&paging->unmapped);
        for (kept = bfc_exchange_seq_cst(&paging->kept, NULL); kept; kept = next) {
            next = kept->next;
            if (free_range(driver, arena, kept->start, kept->bytes))
                free(kept);
            else
                keep_addresses(paging, kept);
        }
    } while (bfc_load_seq_cst(&paging->unmapped) != seen);
}

/* To be called when the thread has unmapped pages of an ended context. */
static void free_kept_again(struct bfc_arena *arena) {
    struct visit visit;
    bfc_fetch_add_seq_cst(&bfc_paging_of(arena)->unmapped, 1);
    if (!enter_if_possible(&visit, arena))
        return;
    free_kept(visit.driver, arena);
    leave_context(&visit);
}

/* Reports pages that were given back as one event. Pages whose creation was not reported yet, since
 * the growth failed, are not counted as given back. */
static void report_released(void *context, uint64_t bytes) {
    struct bfc_arena *arena = context;
    uint64_t unreported = bfc_min(bfc_paging_of(arena)->unreported, bytes);
    bfc_paging_of(arena)->unreported -= unreported;
    if (bytes > unreported)
        bfc_events_add_landmark(&arena->stats, BFC_EVENT_RELEASE, 0, bytes - unreported);
    if (bfc_load_acquire(&arena->ended))
        free_kept_again(arena);
}

static void release_handle(const struct bfc_driver *driver, struct bfc_arena *arena, bfc_page page,
                           uint64_t bytes) {
    note_result(arena, "cuMemRelease", bytes, bfc_retry_release(driver, page));
    bfc_upstream_note_release();
    bfc_add_fetch_relaxed(&arena->stats.section->pages.released, bytes);
    bfc_device_refund(arena, bytes);
}

static void release_page(void *context, bfc_page page, uint64_t bytes) {
    struct bfc_arena *arena = context;
    struct visit visit;
    if (!enter_if_possible(&visit, arena))
        return;
    release_handle(visit.driver, arena, page, bytes);
    if (visit.arena)
        bfc_upstream_note_device_free(visit.driver, arena);
    leave_context(&visit);
}

static bool map_page(void *context, bfc_addr start, uint64_t bytes, bfc_page page) {
    struct bfc_arena *arena = context;
    struct visit visit;
    if (!enter_context(&visit, arena))
        return false;
    bool done =
        note_result(arena, "cuMemMap", bytes, visit.driver->cuMemMap(start, bytes, 0, page, 0));
    leave_context(&visit);
    if (done)
        bfc_add_fetch_relaxed(&arena->stats.section->pages.mapped, bytes);
    return done;
}

static bool unmap_page(void *context, bfc_addr start, uint64_t bytes) {
    struct bfc_arena *arena = context;
    struct visit visit;
    if (!enter_if_possible(&visit, arena))
        return false;
    bool done = note_result(arena, "cuMemUnmap", bytes, visit.driver->cuMemUnmap(start, bytes));
    leave_context(&visit);
    return done;
}

static bool allow_access(void *context, bfc_addr start, uint64_t bytes) {
    struct bfc_arena *arena = context;
    struct visit visit;
    if (!enter_context(&visit, arena))
        return false;
    bool done = note_result(arena, "cuMemSetAccess", bytes,
                            bfc_access_allow(visit.driver, arena, start, bytes));
    leave_context(&visit);
    if (done)
        report_growth(arena, start);
    return done;
}

/* Whether the pool may map its pages elsewhere now: not during a capture, and not after it has
 * ceased to take pages. */
static bool may_remake(void *context) {
    return !bfc_captures_exist() && !bfc_load_relaxed(&bfc_paging_of(context)->left);
}

static uint64_t read_left(void *context) {
    const struct bfc_arena *arena = context;
    return bfc_load_relaxed(&arena->stats.section->device_free);
}

static bool may_grow(void *context) {
    struct bfc_arena *arena = context;
    struct bfc_paging *paging = bfc_paging_of(arena);
    const char *why = paging->is_automatic ? bfc_pages_unwanted(arena) : NULL;
    if (why && !bfc_exchange_relaxed(&paging->left, true)) {
        bfc_log(BFC_LOG_INFO, "device %d: BFC_BACKING=auto takes regions from now on: %s",
                (int)arena->device, why);
        bfc_events_add_landmark(&arena->stats, BFC_EVENT_PAGES_LEFT, 0, 0);
    }
    return !why;
}

struct bfc_page_calls bfc_page_calls(const struct bfc_arena *arena) {
    uint64_t granule = bfc_paging_of(arena)->granule;
    return (struct bfc_page_calls){
        .granule = granule,
        .addresses = ((arena->device_total + granule - 1) & ~(granule - 1)) * ADDRESSES_FACTOR,
        .reserve = reserve_addresses,
        .unreserve = free_addresses,
        .create = create_page,
        .release = release_page,
        .released = report_released,
        .map = map_page,
        .unmap = unmap_page,
        .allow = allow_access,
        .may_remake = may_remake,
        .may_grow = may_grow,
        .left = read_left,
    };
}

static bool note_page(void *context, const struct bfc_page_info *page) {
    *(struct bfc_page_info *)context = *page;
    return false;
}

/* Gives one page back to the device; returns its bytes, 0 if that failed. */
static uint64_t give_page_back(const struct bfc_driver *driver, struct bfc_arena *arena,
                               const struct bfc_page_info *page) {
    if (page->asleep)
        return 0;
    if (!note_result(arena, "cuMemUnmap", page->bytes,
                     bfc_retry_unmap(driver, page->start, page->bytes)))
        return 0;
    release_handle(driver, arena, page->page, page->bytes);
    return page->bytes;
}

static void give_pages_back(const struct bfc_driver *driver, struct bfc_arena *arena) {
    struct bfc_page_info page = {0};
    uint64_t went = 0;
    while (bfc_pool_visit_pages(arena->pool, page.start + page.bytes, UINT64_MAX, note_page, &page))
        went += give_page_back(driver, arena, &page);
    if (went)
        report_released(arena, went);
}

/* Whether the addresses were reserved for pages, so that they must be freed. A plain region, which
 * the pool took when no pages could be had, has ended with the arena's context; the driver may have
 * given its addresses to others since. */
static bool is_reservation(const struct bfc_arena *arena, uint64_t start) {
    struct bfc_block_info first;
    return bfc_pool_find(arena->pool, start, &first) && first.paged;
}

static void give_addresses_back(const struct bfc_driver *driver, struct bfc_arena *arena) {
    uint64_t start = 0, bytes = 0;
    while (bfc_region_next(start + bytes, arena, &start, &bytes)) {
        if (!is_reservation(arena, start))
            continue;
        struct bfc_kept_addresses *kept = malloc(sizeof *kept);
        if (!kept) {
            free_range(driver, arena, start, bytes);
            continue;
        }
        *kept = (struct bfc_kept_addresses){start, bytes, NULL};
        keep_addresses(bfc_paging_of(arena), kept);
    }
    free_kept(driver, arena);
}

/* First keeps all other threads from making or moving pages of the pool, since one may be making a
 * page that bfc_pool_visit_pages does not list yet. Threads that would make pages later make none,
 * since they find that the context has ended. */
void bfc_pages_end(const struct bfc_driver *driver, struct bfc_arena *arena) {
    if (!bfc_paging_of(arena))
        return;
    bfc_pool_hold_pages(arena->pool);
    CUstreamCaptureMode mode = bfc_capture_relax_now(driver);
    give_pages_back(driver, arena);
    give_addresses_back(driver, arena);
    bfc_capture_restore(driver, mode);
    bfc_pool_let_pages(arena->pool);
}

void bfc_pages_forget(struct bfc_arena *arena) {
    struct bfc_paging *paging = bfc_paging_of(arena);
    struct bfc_kept_addresses *next;
    for (struct bfc_kept_addresses *kept = paging ? paging->kept : NULL; kept; kept = next) {
        next = kept->next;
        free(kept);
    }
    free(paging);
}
