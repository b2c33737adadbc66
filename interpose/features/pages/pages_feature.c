/* The feature `pages`: pools whose addresses and memory come from separate calls of the driver
 * (BFC_BACKING, pool/pages.h). */
#include "base/atomic.h"
#include "interpose/arena/arena.h"
#include "interpose/config/process.h"
#include "interpose/features/pages/page_backing.h"
#include "interpose/table/feature.h"

static void choose_backing(const struct bfc_driver *driver, struct bfc_arena *arena,
                           struct bfc_upstream *upstream) {
    if (bfc_arena_is_host(arena))
        return;
    struct bfc_paging *paging = bfc_paging_make(driver, &bfc_process()->options, arena);
    if (!paging)
        return;
    arena->features[bfc_load_relaxed(&bfc_paging_slot)] = paging;
    paging->calls = bfc_page_calls(arena);
    upstream->pages = &paging->calls;
}

static const struct bfc_feature pages = {
    .name = "pages",
    .slot = &bfc_paging_slot,
    .arena_making = choose_backing,
    .arena_ended = bfc_pages_end,
    .arena_freed = bfc_pages_forget,
    .peers_changed = bfc_access_change,
};
BFC_REGISTER_FEATURE(pages);
