/*
 * Finds the machine's devices, and adds up what the jobs that were found have on each.
 *
 * The management library tells what is used of each device now. Where it is not there, the devices
 * are those of the jobs, and what is used of them is what the job's driver said when a job last
 * asked it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "tools/bfcstat/bfcstat.h"
#include "tools/bfcstat/management_library.h"

/* The most devices that are listed. No machine has more, but a job could claim devices that do
 * not exist. */
#define MOST_GPUS 256u

static const uint8_t no_uuid[16];

/* Without a UUID (drivers before CUDA 9.2), devices are told apart by their PCI address. */
static bool is_device_of(const struct gpu *gpu, const struct bfc_segment_pool *pool,
                         const char *bus_id) {
    if (memcmp(pool->device_uuid, no_uuid, sizeof no_uuid) != 0)
        return memcmp(gpu->uuid, pool->device_uuid, sizeof gpu->uuid) == 0;
    return bus_id[0] && strcmp(gpu->bus_id, bus_id) == 0;
}

/* Adds the device of a pool to the list. If the management library lists devices, the device must
 * be one of those, since a job could make a device up. NULL: there is no such device, or it has no
 * name. */
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
    gpu->in_use += pool->stats.in_use;
    gpu->cached += bfc_pool_cached(&pool->stats);
    if (pool->device_free_ns <= gpu->asked_ns)
        return;
    gpu->asked_ns = pool->device_free_ns;
    gpu->used_known = true;
    gpu->used = bfc_subtract_saturating(pool->device_total, pool->device_free);
}

/* Bounds each figure by the device's memory. The figures are not all from one moment, and those
 * from jobs may be any numbers. */
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
