/* The feature `sleep` (sleep.h). */
#include "interpose/arena/arena.h"
#include "interpose/features/pages/paging.h"
#include "interpose/features/sleep/sleep.h"
#include "interpose/table/feature.h"

static bool wake_for_pool(void *arena) {
    (void)arena;
    return bfc_wake_up() == CUDA_SUCCESS;
}

static void serve_pool(const struct bfc_driver *driver, struct bfc_arena *arena,
                       struct bfc_upstream *upstream) {
    (void)driver;
    if (upstream->pages)
        bfc_paging_of(arena)->calls.wake = wake_for_pool;
}

static void forget_arena(const struct bfc_driver *driver, struct bfc_arena *arena) {
    (void)driver, (void)arena;
    bfc_sleep_forget_ended();
}

static const struct bfc_feature sleeping = {
    .name = "sleep",
    .segment_opened = bfc_sleeper_begin,
    .reader_asked = bfc_sleeper_asked,
    .arena_making = serve_pool,
    .arena_ended = forget_arena,
    .resorts = {{.rung = BFC_RUNG_SLEEP,
                 .event = BFC_EVENT_SAVED_SLEEP,
                 .serve = bfc_beg_neighbours}},
    .explain_holders = bfc_explain_sleepers,
};
BFC_REGISTER_FEATURE(sleeping);
