/*
 * Finds the machine's devices, and adds up how much memory the jobs that were found use on each.
 *
 * NVIDIA's management library tells how much of each device is used now. Without that library, only
 * the devices on which jobs have pools are known, and the used memory is what the driver told a job
 * when the job last asked.
 */
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "tools/bfcstat/bfcstat.h"
#include "tools/bfcstat/management_library.h"

/* How many devices are listed at most. No machine has more, but a job could claim devices that do
 * not exist. */
#define MOST_GPUS 256u

static const uint8_t no_uuid[16];

/* Whether the pool is on this device. Devices are compared by UUID; if the pool has none (drivers
 * before CUDA 9.2), by PCI address. */
static bool is_device_of(const struct gpu *gpu, const struct bfc_segment_pool *pool,
                         const char *bus_id) {
    if (memcmp(pool->device_uuid, no_uuid, sizeof no_uuid) != 0)
        return memcmp(gpu->uuid, pool->device_uuid, sizeof gpu->uuid) == 0;
    return bus_id[0] && strcmp(gpu->bus_id, bus_id) == 0;
}

/* Adds the device of a pool to findings->gpus. A job could make a device up; so if the management
 * library lists devices (`listed`), a device that is not among them must be a MIG part that the
 * library knows. NULL: it is not, or the pool names neither UUID nor PCI address, or the list is
 * full. */
static struct gpu *add_gpu(struct findings *findings, const struct bfc_segment_pool *pool,
                           const char *bus_id, bool listed) {
    struct gpu *gpu = &findings->gpus[findings->gpu_count];
    bool named = bus_id[0] || memcmp(pool->device_uuid, no_uuid, sizeof no_uuid) != 0;
    if (!named || findings->gpu_count == MOST_GPUS)
        return NULL;
    *gpu = (struct gpu){.number = -1, .total = pool->device_total};
    snprintf(gpu->bus_id, sizeof gpu->bus_id, "%s", bus_id);
    memcpy(gpu->uuid, pool->device_uuid, sizeof gpu->uuid);
    memcpy(gpu->name, pool->device_name, sizeof gpu->name);
    if (listed && !management_part(gpu))
        return NULL;
    findings->gpu_count++;
    return gpu;
}

static struct gpu *find_gpu(const struct findings *findings, const struct bfc_segment_pool *pool,
                            const char *bus_id) {
    for (size_t i = 0; i < findings->gpu_count; i++)
        if (is_device_of(&findings->gpus[i], pool, bus_id))
            return &findings->gpus[i];
    return NULL;
}

const struct gpu *gpu_of(const struct findings *findings, const struct bfc_segment_pool *pool) {
    char bus_id[GPU_SHORT_TEXT];
    return find_gpu(findings, pool, gpu_bus_id(pool->device_bus_id, bus_id, sizeof bus_id));
}

static void add_pool(struct findings *findings, const struct bfc_segment_pool *pool, bool listed) {
    char bus_id[GPU_SHORT_TEXT];
    gpu_bus_id(pool->device_bus_id, bus_id, sizeof bus_id);
    struct gpu *gpu = find_gpu(findings, pool, bus_id);
    if (!gpu)
        gpu = add_gpu(findings, pool, bus_id, listed);
    if (!gpu)
        return;
    if (!gpu->total)
        gpu->total = pool->device_total;
    uint64_t asleep = pool->pages.asleep, in_use = bfc_min(pool->stats.in_use, asleep);
    gpu->in_use += pool->stats.in_use - in_use;
    gpu->cached += bfc_subtract_saturating(bfc_pool_cached(&pool->stats), asleep - in_use);
    if (pool->device_free_ns <= gpu->asked_ns)
        return;
    gpu->asked_ns = pool->device_free_ns;
    gpu->used_known = true;
    gpu->used = bfc_subtract_saturating(pool->device_total, pool->device_free);
}

/* Bounds the device's numbers of bytes in use, cached and used by its size. Otherwise the display
 * could show more than 100 %: the numbers were not read at the same time, and a job can write any
 * number into its shared-memory segment. */
static void bound_figures(struct gpu *gpu) {
    gpu->in_use = bfc_min(gpu->in_use, gpu->total);
    gpu->cached = bfc_min(gpu->cached, gpu->total - gpu->in_use);
    gpu->used = bfc_min(bfc_max(gpu->used, gpu->in_use + gpu->cached), gpu->total);
}

bool find_gpus(struct findings *findings) {
    findings->gpus = calloc(MOST_GPUS, sizeof *findings->gpus);
    if (!findings->gpus)
        return false;
    findings->gpu_count = management_devices(findings->gpus, MOST_GPUS);
    bool listed = findings->gpu_count > 0;
    for (size_t i = 0; i < findings->job_count; i++)
        for (unsigned k = 0; k < BFC_SEGMENT_POOLS; k++) {
            const struct bfc_segment_pool *pool = &findings->jobs[i].pools[k];
            if (findings->jobs[i].state != BFC_JOB_ENDED && pool->state == BFC_POOL_ACTIVE &&
                !bfc_pool_is_host(pool))
                add_pool(findings, pool, listed);
        }
    for (size_t i = 0; i < findings->gpu_count; i++)
        bound_figures(&findings->gpus[i]);
    return true;
}
