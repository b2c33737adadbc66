/* Registers the feature `sleep`, which sleep.h describes. */
#include <stdlib.h>

#include "base/atomic.h"
#include "interpose/arena/arena.h"
#include "interpose/config/process.h"
#include "interpose/features/sleep/sleep.h"
#include "interpose/table/feature.h"
#include "pool/pages.h"

/* Wakes the process for a pool that has to grow. A forked child cannot wake, so that there the pool
 * gets an error. */
static int wake_for_pool(void *arena) {
    (void)arena;
    return bfc_process_is_forked() ? CUDA_ERROR_NOT_INITIALIZED : (int)bfc_wake_up();
}

/* Gives the pool a copy of the driver calls for its pages that has in addition the call which wakes
 * the process. The feature `pages`, which sets those calls, is registered before this one. */
static void serve_pool(const struct bfc_driver *driver, struct bfc_arena *arena,
                       struct bfc_upstream *upstream) {
    (void)driver;
    struct bfc_page_calls *calls = upstream->pages ? malloc(sizeof *calls) : NULL;
    if (!calls)
        return;
    *calls = *upstream->pages;
    calls->wake = wake_for_pool;
    arena->features[bfc_load_relaxed(&bfc_sleep_slot)] = calls;
    upstream->pages = calls;
}

static void free_calls(struct bfc_arena *arena) {
    free(arena->features[bfc_load_relaxed(&bfc_sleep_slot)]);
}

static void forget_arena(const struct bfc_driver *driver, struct bfc_arena *arena) {
    (void)driver, (void)arena;
    bfc_sleep_forget_ended();
}

static const struct bfc_feature sleeping = {
    .name = "sleep",
    .slot = &bfc_sleep_slot,
    .segment_opened = bfc_sleeper_begin,
    .reader_asked = bfc_sleeper_asked,
    .arena_making = serve_pool,
    .arena_ended = forget_arena,
    .arena_freed = free_calls,
    .resorts = {{.rung = BFC_RUNG_SLEEP,
                 .event = BFC_EVENT_SAVED_SLEEP,
                 .serve = bfc_beg_neighbours}},
};
BFC_REGISTER_FEATURE(sleeping);
