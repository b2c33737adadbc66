#include "interpose/features/sleep/sleeping_arena.h"

#include "base/atomic.h"
#include "interpose/arena/arena.h"
#include "interpose/context/capture.h"
#include "interpose/driver/current.h"
#include "interpose/host/scratch.h"
#include "interpose/reuse/free_fence.h"

unsigned bfc_sleep_slot;

struct visit {
    const struct bfc_driver *driver;
    struct bfc_arena *arena;
    bool pushed;
    CUstreamCaptureMode mode;
};

static bool enter_context(struct visit *visit, struct bfc_arena *arena) {
    *visit = (struct visit){.driver = bfc_driver(), .arena = arena};
    if (!bfc_arena_enter(arena))
        return false;
    if (bfc_arena_make_current(visit->driver, arena, &visit->pushed) != CUDA_SUCCESS) {
        bfc_arena_leave(arena);
        return false;
    }
    visit->mode = bfc_capture_relax_now(visit->driver);
    return true;
}

static void leave_context(const struct visit *visit) {
    bfc_capture_restore(visit->driver, visit->mode);
    bfc_current_leave(visit->driver, visit->pushed);
    bfc_arena_leave(visit->arena);
}

bool bfc_sleeping_arena_ends(const struct bfc_sleeping_arena *sleeping) {
    return bfc_load_seq_cst(&sleeping->arena->closers) || bfc_load_acquire(&sleeping->arena->ended);
}

static const struct bfc_page_calls *calls_of(const struct bfc_sleeping_arena *sleeping) {
    return sleeping->arena->features[bfc_load_relaxed(&bfc_sleep_slot)];
}

/* Returns the published count of bytes that are asleep. cuMemGetInfo subtracts it from what the
 * driver says is free (interpose/api/memory_info.c), since this memory still belongs to the
 * program. */
static uint64_t *asleep_of(struct bfc_sleeping_arena *sleeping) {
    return &sleeping->arena->stats.section->pages.asleep;
}

/* Unmaps the page and gives its memory back to the device; returns how many bytes went back. A page
 * that the driver does not unmap keeps its memory, and the next call for it tries again. */
static uint64_t uncreate_page(struct bfc_sleeping_arena *sleeping, struct bfc_sleeping_page *page) {
    const struct bfc_page_calls *calls = calls_of(sleeping);
    for (int tries = 0; tries < 8 && page->mapped; tries++)
        page->mapped = !calls->unmap(sleeping->arena, page->start, page->bytes);
    if (!page->page || page->mapped)
        return 0;
    bfc_fetch_add_relaxed(asleep_of(sleeping), page->bytes);
    calls->release(sleeping->arena, page->page, page->bytes);
    page->page = 0;
    return page->bytes;
}

void bfc_sleeping_arena_give_back(struct bfc_sleeping_arena *sleeping) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < sleeping->count; i++)
        bytes += uncreate_page(sleeping, &sleeping->pages[i]);
    if (bytes)
        calls_of(sleeping)->released(sleeping->arena, bytes);
}

static bool count_page(void *context, const struct bfc_page_info *page) {
    (void)page;
    ++*(uint32_t *)context;
    return true;
}

static bool list_page(void *context, const struct bfc_page_info *page) {
    struct bfc_sleeping_arena *sleeping = context;
    if (page->pins || page->lost || sleeping->count == sleeping->room)
        return true;
    uint64_t at = sleeping->count ? sleeping->pages[sleeping->count - 1].at +
                                        sleeping->pages[sleeping->count - 1].bytes
                                  : sleeping->bytes;
    sleeping->pages[sleeping->count++] =
        (struct bfc_sleeping_page){page->start, page->bytes, at, page->page, false};
    return true;
}

static bool open_copier(struct bfc_sleeping_arena *sleeping) {
    struct visit visit;
    if (!enter_context(&visit, sleeping->arena))
        return false;
    CUresult result = bfc_page_copier_open(visit.driver, &sleeping->copier);
    leave_context(&visit);
    return result == CUDA_SUCCESS;
}

/* Lists the arena's pages in two passes over them: the first counts them for the size of the list,
 * and the second fills it. The caller has frozen the pool's pages, so none is added in between. */
static void list_pages(struct bfc_sleeping_arena *sleeping, uint64_t at) {
    struct bfc_pool *pool = sleeping->arena->pool;
    bfc_pool_visit_pages(pool, 0, UINT64_MAX, count_page, &sleeping->room);
    sleeping->pages = bfc_scratch_begin((sleeping->room + 1) * sizeof *sleeping->pages);
    if (!sleeping->pages)
        return;
    sleeping->bytes = at;
    bfc_pool_visit_pages(pool, 0, UINT64_MAX, list_page, sleeping);
    sleeping->bytes = 0;
    for (uint32_t i = 0; i < sleeping->count; i++)
        sleeping->bytes += sleeping->pages[i].bytes;
}

struct bfc_sleeping_arena *bfc_sleeping_arena_open(struct bfc_arena *arena, uint64_t at,
                                                   const char **why) {
    struct bfc_sleeping_arena *sleeping = bfc_scratch_begin(sizeof *sleeping);
    *why = "the host has no memory";
    if (!sleeping)
        return NULL;
    bfc_arena_keep(arena);
    sleeping->arena = arena;
    bfc_pool_freeze_pages(arena->pool);
    list_pages(sleeping, at);
    if (sleeping->pages) {
        *why = "the driver refused a pinned buffer or a stream for copies";
        if (!sleeping->count || open_copier(sleeping))
            return sleeping;
    }
    bfc_sleeping_arena_close(sleeping);
    return NULL;
}

/* Destroys the streams and buffers for copies, unless the context has ended and they with it. */
static void close_copier(struct bfc_sleeping_arena *sleeping) {
    struct visit visit;
    if (!sleeping->copier.buffers[0] || !enter_context(&visit, sleeping->arena))
        return;
    bfc_page_copier_close(visit.driver, &sleeping->copier);
    leave_context(&visit);
}

void bfc_sleeping_arena_close(struct bfc_sleeping_arena *sleeping) {
    if (sleeping->asleep)
        bfc_sleeping_arena_give_back(sleeping);
    close_copier(sleeping);
    bfc_pool_thaw_pages(sleeping->arena->pool);
    bfc_scratch_end(sleeping->pages, (sleeping->room + 1) * sizeof *sleeping->pages);
    bfc_arena_drop(sleeping->arena);
    bfc_scratch_end(sleeping, sizeof *sleeping);
}

typedef CUresult copy_function(const struct bfc_driver *, const struct bfc_page_copier *,
                               CUdeviceptr, uint64_t, int, uint64_t, bool (*)(void), int *);

/* Copies all pages by the function `copy`. Pages with adjoining addresses are copied as one range,
 * since a copy of a small page alone would leave the bus idle most of the time. */
static CUresult copy_runs(struct bfc_sleeping_arena *sleeping, copy_function *copy, int file,
                          bool (*goes_on)(void), int *error) {
    const struct bfc_sleeping_page *pages = sleeping->pages;
    CUresult result = CUDA_SUCCESS;
    for (uint32_t i = 0, end; i < sleeping->count && result == CUDA_SUCCESS; i = end) {
        struct visit visit;
        uint64_t bytes = pages[i].bytes;
        for (end = i + 1; end < sleeping->count && pages[end].start == pages[i].start + bytes;
             end++)
            bytes += pages[end].bytes;
        if (!enter_context(&visit, sleeping->arena))
            return CUDA_ERROR_CONTEXT_IS_DESTROYED;
        result = copy(visit.driver, &sleeping->copier, pages[i].start, bytes, file, pages[i].at,
                      goes_on, error);
        leave_context(&visit);
    }
    return result;
}

CUresult bfc_sleeping_arena_save(struct bfc_sleeping_arena *sleeping, int file,
                                 bool (*goes_on)(void), int *error) {
    return copy_runs(sleeping, bfc_copy_pages_out, file, goes_on, error);
}

/* Tells the pool whether the pages are asleep; the pool never gives back the memory of sleeping
 * pages. False: the arena's context has ended, and the pool was told nothing. When a context ends,
 * bfc_pages_end gives back the pages that the pool does not know to be asleep. */
static bool hand_pages(struct bfc_sleeping_arena *sleeping, const struct bfc_sleeping_page *pages,
                       uint32_t count, bool asleep) {
    struct bfc_arena *arena = sleeping->arena;
    bfc_pool_hold_pages(arena->pool);
    bool lives = !bfc_load_acquire(&arena->ended);
    for (uint32_t i = 0; i < count && lives; i++)
        bfc_pool_set_page(arena->pool, pages[i].start, asleep ? 0 : pages[i].page, asleep);
    bfc_pool_let_pages(arena->pool);
    return lives;
}

/* Gives one page back to the device. False: the page keeps its memory and its contents. */
static bool release_page(struct bfc_sleeping_arena *sleeping, struct bfc_sleeping_page *page) {
    const struct bfc_page_calls *calls = calls_of(sleeping);
    if (!hand_pages(sleeping, page, 1, true))
        return false;
    page->mapped = !calls->unmap(sleeping->arena, page->start, page->bytes);
    if (page->mapped && hand_pages(sleeping, page, 1, false))
        return false;
    uncreate_page(sleeping, page);
    return true;
}

uint64_t bfc_sleeping_arena_release(struct bfc_sleeping_arena *sleeping, bool (*goes_on)(void)) {
    struct bfc_arena *arena = sleeping->arena;
    uint32_t gone = 0;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < sleeping->count; i++) {
        struct bfc_sleeping_page page = sleeping->pages[i];
        if (!goes_on() || !release_page(sleeping, &page))
            continue;
        sleeping->pages[gone++] = page;
        bytes += page.bytes;
    }
    if (bytes)
        calls_of(sleeping)->released(arena, bytes);
    sleeping->asleep = true;
    sleeping->count = gone;
    sleeping->bytes = bytes;
    return bytes;
}

static bool create_page(struct bfc_sleeping_arena *sleeping, struct bfc_sleeping_page *page,
                        struct bfc_ask *ask) {
    if (page->page)
        return true;
    bool made =
        calls_of(sleeping)->create(sleeping->arena, page->bytes, &page->page, ask) == BFC_RESERVED;
    if (made)
        bfc_fetch_sub_relaxed(asleep_of(sleeping), page->bytes);
    else
        page->page = 0;
    return made;
}

bool bfc_sleeping_arena_create(struct bfc_sleeping_arena *sleeping, bool is_first,
                               CUresult *error) {
    struct bfc_ask ask = {.is_first = is_first};
    uint32_t made = 0;
    while (made < sleeping->count && create_page(sleeping, &sleeping->pages[made], &ask))
        made++;
    if (made == sleeping->count)
        return true;
    bfc_sleeping_arena_give_back(sleeping);
    *error = ask.error ? (CUresult)ask.error : CUDA_ERROR_OUT_OF_MEMORY;
    return false;
}

static bool map_page(struct bfc_sleeping_arena *sleeping, struct bfc_sleeping_page *page) {
    const struct bfc_page_calls *calls = calls_of(sleeping);
    if (!page->mapped)
        page->mapped = calls->map(sleeping->arena, page->start, page->bytes, page->page);
    return page->mapped && calls->allow(sleeping->arena, page->start, page->bytes);
}

CUresult bfc_sleeping_arena_restore(struct bfc_sleeping_arena *sleeping, int file,
                                    bool (*goes_on)(void), int *error) {
    CUresult result = CUDA_SUCCESS;
    for (uint32_t i = 0; i < sleeping->count && result == CUDA_SUCCESS; i++)
        if (!map_page(sleeping, &sleeping->pages[i]))
            result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS)
        result = copy_runs(sleeping, bfc_copy_pages_in, file, goes_on, error);
    return result;
}

bool bfc_sleeping_arena_hand_over(struct bfc_sleeping_arena *sleeping) {
    bool lives = hand_pages(sleeping, sleeping->pages, sleeping->count, false);
    if (lives)
        sleeping->count = 0;
    return lives;
}
