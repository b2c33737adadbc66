/* Makes arenas. No lock is held while one is made. */
#include "interpose/api/make_arena.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/numbers.h"
#include "interpose/arena/arena.h"
#include "interpose/arena/device.h"
#include "interpose/arena/stream_frees.h"
#include "interpose/arena/upstream.h"
#include "interpose/config/process.h"
#include "interpose/fences/fences.h"
#include "interpose/reuse/settle_arena.h"
#include "interpose/stats/events.h"
#include "interpose/stats/published_segment.h"

/* Asks the driver about the context's device, and sets the arena's limits. */
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

/* Fills the arena's section of the segment. A section of host memory has no uuid of a device. */
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
    if (driver->cuDeviceGetPCIBusId)
        driver->cuDeviceGetPCIBusId(section->device_bus_id, (int)sizeof section->device_bus_id,
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

static bool make_pool(const struct bfc_driver *driver, struct bfc_arena *arena,
                      struct bfc_pool_config *config) {
    struct bfc_upstream upstream = {
        .context = arena,
        .reserve = bfc_upstream_reserve,
        .release = bfc_upstream_release,
        .poll = bfc_reuse_poll,
        .wait = bfc_reuse_wait,
        .now = upstream_now,
    };
    BFC_TELL_FEATURES(arena_making, driver, arena, &upstream);
    arena->has_pages = upstream.pages;
    config->reuse_pending = arena->free_mode == BFC_FREE_ORDERED;
    config->stats = &arena->stats.section->stats;
    return bfc_pool_create(&arena->pool, config, &upstream) == BFC_OK;
}

struct bfc_arena *bfc_arena_begin(const struct bfc_memory_source *source, CUcontext context,
                                  unsigned long long id) {
    struct bfc_arena *arena = calloc(1, sizeof *arena);
    if (arena) {
        arena->references = 1;
        arena->waited_for = UINT64_MAX;
        arena->source = source;
        arena->context = context;
        arena->id = id;
    }
    return arena;
}

struct bfc_arena *bfc_arena_complete(struct bfc_arena *arena, const struct bfc_driver *driver,
                                     int free_mode, struct bfc_pool_config *config) {
    take_section(arena);
    fill_section(arena, driver);
    if (driver->can_fence)
        arena->fences = bfc_fences_create();
    arena->free_mode = arena->fences ? free_mode : BFC_FREE_SYNC;
    arena->stream_frees = bfc_stream_frees_create();
    if (arena->stream_frees && make_pool(driver, arena, config))
        return arena;
    bfc_arena_drop(arena);
    return NULL;
}

struct bfc_arena *bfc_arena_make(const struct bfc_driver *driver, CUcontext context,
                                 unsigned long long id) {
    static unsigned long long own_ids;
    const struct bfc_process *process = bfc_process();
    struct bfc_arena *arena = process ? bfc_arena_begin(&bfc_device_memory, context, id) : NULL;
    struct bfc_pool_config config;
    if (!arena)
        return NULL;
    if (!id)
        arena->id = bfc_add_fetch_relaxed(&own_ids, 1);
    if (!ask_driver(arena, driver, &process->options)) {
        free(arena);
        return NULL;
    }
    bfc_pool_config_default(&config);
    bfc_options_configure(&process->options, arena->device_total, &config);
    arena = bfc_arena_complete(arena, driver, process->options.free_mode, &config);
    if (arena && arena->free_mode != BFC_FREE_ORDERED)
        arena->plain_most = arena->plain_limit = bfc_min(arena->device_total, arena->bypass_above);
    return arena;
}
