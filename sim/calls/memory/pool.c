// Stream-ordered memory: cuMemAllocAsync and its pools.
//
// An allocation's address is given at the call; its free takes effect in the stream's order. Freed
// memory stays in its pool, reserved, up to the pool's release threshold, and is handed out again
// to a request of the same size; what is above goes back to the device, and all of it when that is
// full. A context's end takes all.
#include "sim/calls/memory/pool.h"

#include "sim/base/handle.h"
#include "sim/base/ids.h"
#include "sim/base/limits.h"
#include "sim/border/border.h"
#include "sim/device/contexts.h"
#include "sim/device/devices.h"
#include "sim/graph/memory.h"
#include "sim/memory/allocate.h"
#include "sim/memory/pool_counts.h"
#include "sim/order/capture.h"
#include "sim/order/meant.h"
#include "sim/order/queue.h"
#include "sim/order/stream.h"

#include <stdlib.h>

static struct CUmemPoolHandle_st *defaults[SIM_MAX_DEVICES], *current[SIM_MAX_DEVICES];

static struct CUmemPoolHandle_st *pool_new(struct sim_device *device) {
    struct CUmemPoolHandle_st *pool = calloc(1, sizeof *pool);
    if (pool == NULL || !sim_handle_add(pool, SIM_POOL)) {
        free(pool);
        return NULL;
    }
    pool->device = device;
    pool->follow_events = pool->opportunistic = pool->dependencies = 1;
    return pool;
}

static struct CUmemPoolHandle_st *default_of(struct sim_device *device) {
    struct CUmemPoolHandle_st **slot = &defaults[device->ordinal];
    if (*slot == NULL) {
        *slot = pool_new(device);
    }
    return *slot;
}

static struct CUmemPoolHandle_st *current_of(struct sim_device *device) {
    struct CUmemPoolHandle_st *chosen = current[device->ordinal];
    return chosen != NULL ? chosen : default_of(device);
}

// ---- allocating ----

static struct sim_allocation *reuse(struct CUctx_st *context, struct CUmemPoolHandle_st *pool,
                                    size_t size) {
    for (struct sim_allocation *a = context->allocations; a != NULL; a = a->next) {
        if (a->cached && a->pool == pool && a->size == size) {
            a->cached = false;
            a->freed = false;
            a->buffer_id = sim_next_buffer_id();
            return a;
        }
    }
    return NULL;
}

static void trim_in(struct CUctx_st *context, const struct CUmemPoolHandle_st *pool, size_t keep) {
    struct sim_allocation *next = NULL;
    for (struct sim_allocation *a = context->allocations; a != NULL; a = next) {
        next = a->next;
        if (a->cached && a->pool == pool && pool->reserved > keep) {
            sim_allocation_end(a);
        }
    }
}

static void trim_everywhere(const struct CUmemPoolHandle_st *pool, size_t keep) {
    for (struct CUctx_st *context = sim_context_next(NULL); context != NULL;
         context = sim_context_next(context)) {
        trim_in(context, pool, keep);
    }
}

// What a pool holds serves requests of other sizes too: here by way of the device.
static CUresult grow(struct CUctx_st *context, struct CUmemPoolHandle_st *pool, size_t size,
                     struct sim_allocation **out) {
    CUresult result = sim_allocate(context, size, SIM_ASYNC, out);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        trim_everywhere(pool, 0);
        result = sim_allocate(context, size, SIM_ASYNC, out);
    }
    return result;
}

static CUresult allocate_captured(CUdeviceptr *out, size_t size, struct CUstream_st *stream) {
    CUresult result = CUDA_SUCCESS;
    struct CUgraphNode_st *node =
        sim_capture_node(stream, CU_GRAPH_NODE_TYPE_MEM_ALLOC, NULL, &result);
    return node == NULL ? result : sim_graph_memory_new(stream->context, size, &node->memory, out);
}

static CUresult allocate(CUdeviceptr *out, size_t size, CUmemoryPool wanted, CUstream handle,
                         bool per_thread) {
    CUresult result = CUDA_SUCCESS;
    struct CUstream_st *stream = sim_stream_of(handle, per_thread, &result);
    if (out == NULL || size == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (stream == NULL) {
        return result;
    }
    if (sim_capturing(stream)) {
        return allocate_captured(out, size, stream);
    }
    struct CUctx_st *context = stream->context;
    struct CUmemPoolHandle_st *pool = wanted != NULL ? wanted : current_of(context->device);
    if (pool == NULL || !sim_handle_is(pool, SIM_POOL)) {
        return pool == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_allocation *allocation = reuse(context, pool, size);
    if (allocation == NULL) {
        result = grow(context, pool, size, &allocation);
        if (result != CUDA_SUCCESS) {
            return result;
        }
        allocation->pool = pool;
        sim_pool_count_reserved(pool, allocation);
    }
    sim_pool_count_used(pool, allocation);
    *out = allocation->start;
    return CUDA_SUCCESS;
}

SIM_PAIR(cuMemAllocAsync, cuMemAllocAsync_ptsz, SIM_CURRENT,
         (CUdeviceptr * out, size_t size, CUstream stream),
         allocate(out, size, NULL, stream, per_thread))
SIM_PAIR(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz, SIM_CURRENT,
         (CUdeviceptr * out, size_t size, CUmemoryPool pool, CUstream stream),
         pool == NULL ? CUDA_ERROR_INVALID_VALUE : allocate(out, size, pool, stream, per_thread))

// ---- freeing ----

struct release {
    struct sim_work work;
    struct sim_allocation *allocation;
    bool reached; // else the stream did not take it
};

static CUresult reach(struct sim_work *work) {
    ((struct release *)work)->reached = true;
    return CUDA_SUCCESS;
}

// Back to the pool, or to the device when the pool holds enough.
void sim_pool_release(struct sim_allocation *allocation) {
    struct CUmemPoolHandle_st *pool = allocation->pool;
    bool keeps = pool != NULL && sim_handle_is(pool, SIM_POOL) && pool->reserved <= pool->threshold;
    if (!keeps) {
        sim_allocation_end(allocation);
        return;
    }
    pool->used -= allocation->size;
    allocation->freed = true;
    allocation->cached = true;
}

static void drop_release(struct sim_work *work) {
    struct release *release = (struct release *)work;
    if (release->reached) {
        sim_pool_release(release->allocation);
    }
    free(release);
}

static const struct sim_work_type release_type = {.run = reach, .drop = drop_release};

static CUresult free_captured(const struct sim_allocation *allocation, struct CUstream_st *stream) {
    CUresult result = CUDA_SUCCESS;
    if (allocation->kind != SIM_GRAPH_MEMORY) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct CUgraphNode_st *node =
        sim_capture_node(stream, CU_GRAPH_NODE_TYPE_MEM_FREE, NULL, &result);
    if (node != NULL) {
        node->freed = allocation->start;
    }
    return result;
}

static CUresult release(CUdeviceptr pointer, CUstream handle, bool per_thread) {
    CUresult result = CUDA_SUCCESS;
    struct CUstream_st *stream = sim_stream_of(handle, per_thread, &result);
    struct sim_allocation *allocation = sim_allocation_at(pointer);
    if (stream == NULL) {
        return result;
    }
    if (allocation == NULL || allocation->start != pointer ||
        (allocation->kind != SIM_PLAIN && allocation->kind != SIM_ASYNC &&
         allocation->kind != SIM_GRAPH_MEMORY)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_capturing(stream)) {
        return free_captured(allocation, stream);
    }
    if (allocation->kind == SIM_GRAPH_MEMORY) {
        return CUDA_SUCCESS; // stays with its graph
    }
    struct release *work = calloc(1, sizeof *work);
    if (work == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    allocation->freed = true;
    work->allocation = allocation;
    work->work.type = &release_type;
    result = sim_submit(stream, &work->work);
    if (result != CUDA_SUCCESS) {
        allocation->freed = false;
    }
    return result;
}

SIM_PAIR(cuMemFreeAsync, cuMemFreeAsync_ptsz, SIM_READY | SIM_STICKY,
         (CUdeviceptr pointer, CUstream stream), release(pointer, stream, per_thread))

// ---- pools ----

static CUresult put(CUmemoryPool *out, CUdevice ordinal,
                    struct CUmemPoolHandle_st *(*which)(struct sim_device *device)) {
    struct sim_device *device = sim_device_of(ordinal);
    if (out == NULL || device == NULL) {
        return device == NULL ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    }
    *out = which(device);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult set_current(CUdevice ordinal, CUmemoryPool pool) {
    if (sim_device_of(ordinal) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (!sim_handle_is(pool, SIM_POOL) || pool->device->ordinal != ordinal) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    current[ordinal] = pool;
    return CUDA_SUCCESS;
}

SIM_CALL(cuDeviceGetDefaultMemPool, SIM_READY, (CUmemoryPool * pool, CUdevice device),
         put(pool, device, default_of))
SIM_CALL(cuDeviceGetMemPool, SIM_READY, (CUmemoryPool * pool, CUdevice device),
         put(pool, device, current_of))
SIM_CALL(cuDeviceSetMemPool, SIM_READY, (CUdevice device, CUmemoryPool pool),
         set_current(device, pool))

static bool on_device(const CUmemLocation *location, CUmemAllocationType type) {
    return location != NULL && location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
           type == CU_MEM_ALLOCATION_TYPE_PINNED;
}

SIM_CALL(cuMemGetDefaultMemPool, SIM_READY,
         (CUmemoryPool * pool, CUmemLocation *location, CUmemAllocationType type),
         !on_device(location, type) ? CUDA_ERROR_NOT_SUPPORTED
                                    : put(pool, location->id, default_of))
SIM_CALL(cuMemGetMemPool, SIM_READY,
         (CUmemoryPool * pool, CUmemLocation *location, CUmemAllocationType type),
         !on_device(location, type) ? CUDA_ERROR_NOT_SUPPORTED
                                    : put(pool, location->id, current_of))
SIM_CALL(cuMemSetMemPool, SIM_READY,
         (CUmemLocation * location, CUmemAllocationType type, CUmemoryPool pool),
         !on_device(location, type) ? CUDA_ERROR_NOT_SUPPORTED : set_current(location->id, pool))

static CUresult create(CUmemoryPool *out, const CUmemPoolProps *wanted) {
    if (out == NULL || wanted == NULL || !on_device(&wanted->location, wanted->allocType)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_device *device = sim_device_of(wanted->location.id);
    if (device == NULL || wanted->handleTypes != CU_MEM_HANDLE_TYPE_NONE) {
        return device == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
    }
    *out = pool_new(device);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

// Allocations outlive their pool until they are freed.
static CUresult destroy(CUmemoryPool pool) {
    if (!sim_handle_is(pool, SIM_POOL) || pool == defaults[pool->device->ordinal]) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    trim_everywhere(pool, 0);
    if (current[pool->device->ordinal] == pool) {
        current[pool->device->ordinal] = NULL;
    }
    sim_handle_remove(pool);
    free(pool);
    return CUDA_SUCCESS;
}

SIM_CALL(cuMemPoolCreate, SIM_READY, (CUmemoryPool * pool, const CUmemPoolProps *wanted),
         create(pool, wanted))
SIM_CALL(cuMemPoolDestroy, SIM_READY, (CUmemoryPool pool), destroy(pool))

static CUresult trim(CUmemoryPool pool, size_t keep) {
    if (!sim_handle_is(pool, SIM_POOL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    trim_everywhere(pool, keep);
    return CUDA_SUCCESS;
}

SIM_CALL(cuMemPoolTrimTo, SIM_READY, (CUmemoryPool pool, size_t keep), trim(pool, keep))

static int *reuse_flag(struct CUmemPoolHandle_st *pool, CUmemPool_attribute which) {
    return which == CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES     ? &pool->follow_events
           : which == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC         ? &pool->opportunistic
           : which == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES ? &pool->dependencies
                                                                        : NULL;
}

static cuuint64_t *figure(struct CUmemPoolHandle_st *pool, CUmemPool_attribute which) {
    return which == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD      ? &pool->threshold
           : which == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ? &pool->reserved
           : which == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH    ? &pool->reserved_high
           : which == CU_MEMPOOL_ATTR_USED_MEM_CURRENT     ? &pool->used
           : which == CU_MEMPOOL_ATTR_USED_MEM_HIGH        ? &pool->used_high
                                                           : NULL;
}

static CUresult get(CUmemoryPool pool, CUmemPool_attribute which, void *out) {
    if (!sim_handle_is(pool, SIM_POOL) || out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (reuse_flag(pool, which) != NULL) {
        *(int *)out = *reuse_flag(pool, which);
    } else if (figure(pool, which) != NULL) {
        *(cuuint64_t *)out = *figure(pool, which);
    } else {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult set(CUmemoryPool pool, CUmemPool_attribute which, const void *value) {
    if (!sim_handle_is(pool, SIM_POOL) || value == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    bool high =
        which == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH || which == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
    if (reuse_flag(pool, which) != NULL) {
        *reuse_flag(pool, which) = *(const int *)value;
    } else if (which == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
        pool->threshold = *(const cuuint64_t *)value;
    } else if (high && *(const cuuint64_t *)value == 0) { // "can only be reset to 0"
        *figure(pool, which) = which == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? pool->used : pool->reserved;
    } else {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

SIM_CALL(cuMemPoolGetAttribute, SIM_READY,
         (CUmemoryPool pool, CUmemPool_attribute which, void *value), get(pool, which, value))
SIM_CALL(cuMemPoolSetAttribute, SIM_READY,
         (CUmemoryPool pool, CUmemPool_attribute which, void *value), set(pool, which, value))
