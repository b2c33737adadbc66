/* Making an arena; no lock is held. */
#include "interpose/api/make_arena.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "interpose/arena/arena.h"
#include "interpose/arena/device.h"
#include "interpose/arena/stream_frees.h"
#include "interpose/arena/upstream.h"
#include "interpose/config/process.h"
#include "interpose/features/pages/page_calls.h"
#include "interpose/features/pages/support.h"
#include "interpose/fences/fences.h"
#include "interpose/reuse/settle_arena.h"
#include "interpose/stats/events.h"
#include "interpose/stats/published_segment.h"

/* Asks the driver all that is to be known. */
static bool ask_driver(struct bfc_arena *arena, const struct bfc_driver *driver,
                       const struct bfc_options *options) {
    size_t total;
    if (driver->cuCtxGetDevice(&arena->device) != CUDA_SUCCESS ||
        driver->cuDeviceTotalMem_v2(&total, arena->device) != CUDA_SUCCESS ||
        !(arena->on = bfc_device_find(arena->device)))
        return false;
    arena->device_total = total;
    arena->limit = bfc_amount_bytes(&options->limit, total);
    arena->left_to_others = bfc_amount_bytes(&options->reserve, total);
    arena->pending_budget = options->pending_budget;
    arena->bypass_above = options->bypass_above;
    return true;
}

/* A section of host memory has no uuid, since nothing in it is the device's. */
static void fill_section(const struct bfc_arena *arena, const struct bfc_driver *driver) {
    struct bfc_segment_pool *section = arena->stats.section;
    bool host = bfc_arena_is_host(arena);
    CUuuid uuid = {{0}};
    memset(section, 0, sizeof *section);
    section->memory = host ? BFC_MEMORY_HOST : BFC_MEMORY_DEVICE;
    section->device = arena->device;
    section->context_id = arena->id;
    section->device_total = host ? arena->limit : arena->device_total;
    if (driver->cuDeviceGetName)
        driver->cuDeviceGetName(section->device_name, (int)sizeof section->device_name,
                                arena->device);
    if (driver->cuDeviceGetUuid && !host)
        driver->cuDeviceGetUuid(&uuid, arena->device);
    memcpy(section->device_uuid, uuid.bytes, sizeof section->device_uuid);
}

static void take_section(struct bfc_arena *arena) {
    arena->stats.section = bfc_segment_take_section();
    if (!arena->stats.section) {
        arena->stats.section = &arena->own_section;
        return;
    }
    arena->stats.segment = bfc_segment_published();
    arena->stats.section_index = bfc_segment_section_index(arena->stats.section);
    arena->stats.event_pool = bfc_event_what(BFC_EVENT_NONE, arena->stats.section_index, 0);
}

static uint64_t upstream_now(void *context) {
    (void)context;
    return bfc_now_ns();
}

static bool make_pool(struct bfc_arena *arena, struct bfc_pool_config *config) {
    const struct bfc_page_calls pages = bfc_page_calls(arena);
    const struct bfc_upstream upstream = {
        .context = arena,
        .reserve = bfc_upstream_reserve,
        .release = bfc_upstream_release,
        .poll = bfc_reuse_poll,
        .wait = bfc_reuse_wait,
        .now = upstream_now,
        .pages = arena->paging.granule ? &pages : NULL,
    };
    config->reuse_pending = arena->free_mode == BFC_FREE_ORDERED;
    config->stats = &arena->stats.section->stats;
    return bfc_pool_create(&arena->pool, config, &upstream) == BFC_OK;
}

static struct bfc_arena *begin(CUcontext context, unsigned long long id) {
    struct bfc_arena *arena = calloc(1, sizeof *arena);
    if (arena) {
        arena->references = 1;
        arena->context = context;
        arena->id = id;
    }
    return arena;
}

/* What comes after what the arena is for; NULL: the host has no memory, and the arena is gone. */
static struct bfc_arena *complete(struct bfc_arena *arena, const struct bfc_driver *driver,
                                  int free_mode, struct bfc_pool_config *config) {
    take_section(arena);
    fill_section(arena, driver);
    if (driver->can_fence)
        arena->fences = bfc_fences_create();
    arena->free_mode = arena->fences ? free_mode : BFC_FREE_SYNC;
    arena->stream_frees = bfc_stream_frees_create();
    if (arena->stream_frees && make_pool(arena, config))
        return arena;
    bfc_arena_drop(arena);
    return NULL;
}

static uint64_t plain_most(const struct bfc_arena *arena) {
    if (arena->free_mode == BFC_FREE_ORDERED)
        return 0;
    return arena->device_total < arena->bypass_above ? arena->device_total : arena->bypass_above;
}

/* Small blocks share a region; a larger one has its own, which goes when it is freed. */
static void configure_host(const struct bfc_options *options, struct bfc_pool_config *config) {
    bfc_pool_config_default(config);
    config->growth = BFC_GROWTH_FIXED;
    config->growth_size = options->growth_size;
    config->pending_budget = options->pending_budget;
}

/*
 * An arena of host memory (interpose/reuse/spill.h), of the context of `home`, of which it keeps a
 * reference. It counts against BFC_SPILL.
 */
static struct bfc_arena *make_host(const struct bfc_driver *driver, struct bfc_arena *home) {
    const struct bfc_process *process = bfc_process();
    struct bfc_device *on = bfc_device_find(BFC_DEVICE_HOST);
    struct bfc_arena *arena = process && on ? begin(home->context, home->id) : NULL;
    struct bfc_pool_config config;
    if (!arena)
        return NULL;
    bfc_arena_keep(home);
    arena->home = home;
    arena->on = on;
    arena->device = home->device;
    arena->device_total = home->device_total;
    arena->limit = process->options.spill;
    arena->pending_budget = process->options.pending_budget;
    configure_host(&process->options, &config);
    int mode = home->free_mode == BFC_FREE_SYNC ? BFC_FREE_SYNC : BFC_FREE_LAZY;
    return complete(arena, driver, mode, &config);
}

struct bfc_arena *bfc_arena_make(const struct bfc_driver *driver, CUcontext context,
                                 unsigned long long id) {
    static unsigned long long own_ids;
    const struct bfc_process *process = bfc_process();
    struct bfc_arena *arena = process ? begin(context, id) : NULL;
    struct bfc_pool_config config;
    if (!arena)
        return NULL;
    if (!id)
        arena->id = bfc_add_fetch_relaxed(&own_ids, 1);
    if (!ask_driver(arena, driver, &process->options)) {
        free(arena);
        return NULL;
    }
    bfc_backing_choose(driver, &process->options, arena);
    bfc_pool_config_default(&config);
    bfc_options_configure(&process->options, arena->device_total, &config);
    arena = complete(arena, driver, process->options.free_mode, &config);
    if (arena) {
        arena->plain_most = arena->plain_without_plan = plain_most(arena);
        arena->make_host = make_host;
    }
    return arena;
}
