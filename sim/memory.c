// Device memory: cuMemAlloc and its kin.
//
// A request of up to 1 MiB is cut, by grains of 512 bytes, from a slab of one page of 2 MiB that
// belongs to its context; a larger one takes whole pages. Freeing waits for the owning context, all
// of its streams included, before anything is unmapped; the second of two frees fails at once.
// Look-up by address is O(1): page to owner, slab to allocation. Guarded by the lock.
#include "sim/sim.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { GRAINS = 4096, SMALL = 1 << 20 };
_Static_assert(GRAINS *SIM_GRAIN == SIM_PAGE, "a slab is a page");

struct sim_slab {
    struct sim_slab *next;
    struct sim_device *device;
    uintptr_t start;
    size_t used; // grains
    struct sim_allocation *owner[GRAINS];
};

static const uintptr_t SLAB = 1; // tag in a page's owner word

// ---- slabs ----

static struct sim_slab *slab_new(struct CUctx_st *context) {
    struct sim_slab *slab = calloc(1, sizeof *slab);
    if (slab == NULL) {
        return NULL;
    }
    slab->device = context->device;
    slab->start = sim_pages_take(context->device, 1, (uintptr_t)slab | SLAB);
    if (slab->start == 0) {
        free(slab);
        return NULL;
    }
    slab->next = context->slabs;
    context->slabs = slab;
    return slab;
}

static void slab_end(struct CUctx_st *context, struct sim_slab *slab) {
    struct sim_slab **link = &context->slabs;
    while (*link != slab) {
        link = &(*link)->next;
    }
    *link = slab->next;
    sim_pages_give(slab->device, slab->start, 1);
    free(slab);
}

static bool slab_cut(struct sim_slab *slab, size_t grains, struct sim_allocation *allocation) {
    size_t run = 0;
    for (size_t i = 0; i < GRAINS && GRAINS - slab->used >= grains; i++) {
        run = slab->owner[i] == NULL ? run + 1 : 0;
        if (run < grains) {
            continue;
        }
        size_t first = i + 1 - grains;
        for (size_t j = first; j <= i; j++) {
            slab->owner[j] = allocation;
        }
        slab->used += grains;
        allocation->slab = slab;
        allocation->start = slab->start + first * SIM_GRAIN;
        return true;
    }
    return false;
}

static bool take_small(struct CUctx_st *context, struct sim_allocation *allocation) {
    size_t grains = (allocation->size + SIM_GRAIN - 1) / SIM_GRAIN;
    allocation->taken = grains * SIM_GRAIN;
    for (struct sim_slab *slab = context->slabs; slab != NULL; slab = slab->next) {
        if (slab_cut(slab, grains, allocation)) {
            return true;
        }
    }
    struct sim_slab *slab = slab_new(context);
    return slab != NULL && slab_cut(slab, grains, allocation);
}

static void give_small(struct sim_allocation *allocation) {
    struct sim_slab *slab = allocation->slab;
    size_t first = (allocation->start - slab->start) / SIM_GRAIN;
    size_t grains = allocation->taken / SIM_GRAIN;
    memset(&slab->owner[first], 0, grains * sizeof *slab->owner);
    memset(sim_reach(allocation->start, allocation->taken), SIM_STALE, allocation->taken);
    slab->used -= grains;
    if (slab->used == 0) {
        slab_end(allocation->context, slab);
    }
}

// ---- allocations ----

static bool take_large(struct sim_allocation *allocation) {
    size_t pages = allocation->size / SIM_PAGE + (allocation->size % SIM_PAGE != 0);
    allocation->taken = pages * SIM_PAGE;
    allocation->start = sim_pages_take(allocation->device, pages, (uintptr_t)allocation);
    return allocation->start != 0;
}

static void enlist(struct sim_allocation *allocation) {
    struct CUctx_st *context = allocation->context;
    allocation->next = context->allocations;
    allocation->link = &context->allocations;
    if (allocation->next != NULL) {
        allocation->next->link = &allocation->next;
    }
    context->allocations = allocation;
}

unsigned long long sim_next_buffer_id(void) {
    static unsigned long long next_id = 1;
    return next_id++;
}

CUresult sim_allocate(struct CUctx_st *context, size_t size, enum sim_kind kind,
                      struct sim_allocation **out) {
    struct sim_allocation *allocation = calloc(1, sizeof *allocation);
    if (allocation == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    allocation->size = size;
    allocation->kind = kind;
    allocation->context = context;
    allocation->device = context->device;
    bool taken = size <= SMALL ? take_small(context, allocation) : take_large(allocation);
    if (!taken) {
        free(allocation);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    allocation->buffer_id = sim_next_buffer_id();
    enlist(allocation);
    *out = allocation;
    return CUDA_SUCCESS;
}

void sim_allocation_end(struct sim_allocation *allocation) {
    sim_pool_forget(allocation);
    sim_ipc_forget(allocation);
    *allocation->link = allocation->next;
    if (allocation->next != NULL) {
        allocation->next->link = allocation->link;
    }
    if (allocation->slab != NULL) {
        give_small(allocation);
    } else {
        sim_pages_give(allocation->device, allocation->start, allocation->taken / SIM_PAGE);
    }
    free(allocation);
}

void sim_context_memory_end(struct CUctx_st *context) {
    while (context->allocations != NULL) {
        sim_allocation_end(context->allocations);
    }
}

struct sim_allocation *sim_allocation_at(uintptr_t address) {
    const struct sim_device *device = sim_device_at(address);
    if (device == NULL) {
        return sim_virtual_allocation(address);
    }
    uintptr_t owner = device->owner[(address - device->base) / SIM_PAGE];
    struct sim_allocation *allocation = NULL;
    if (owner == SIM_HIDDEN_PAGE) {
        return NULL;
    }
    if (owner & SLAB) {
        const struct sim_slab *slab = (const struct sim_slab *)(owner & ~SLAB);
        allocation = slab->owner[(address - slab->start) / SIM_GRAIN];
    } else {
        allocation = (struct sim_allocation *)owner;
    }
    if (allocation == NULL || allocation->freed ||
        address - allocation->start >= allocation->size) {
        return NULL;
    }
    return allocation;
}

// ---- the API ----

static CUresult allocate(CUdeviceptr *out, size_t size) {
    struct sim_allocation *allocation = NULL;
    if (out == NULL || size == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = sim_allocate(sim_current(), size, SIM_PLAIN, &allocation);
    if (result == CUDA_SUCCESS) {
        *out = allocation->start;
    }
    return result;
}

// The interface of before CUDA 3.2 has 32-bit pointers, which no allocation here fits in.
static CUresult allocate_32(CUdeviceptr_v1 *out, unsigned size) {
    return out == NULL || size == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_CALL(cuMemAlloc, SIM_CURRENT | SIM_UNSAFE, (CUdeviceptr_v1 * out, unsigned size),
         allocate_32(out, size))
SIM_CALL(cuMemAlloc_v2, SIM_CURRENT | SIM_UNSAFE, (CUdeviceptr * out, size_t size),
         allocate(out, size))

// Stream-ordered memory: the program says that all use of it is over, so nothing is waited for.
static CUresult release_unordered(struct sim_allocation *allocation) {
    CUresult result = sim_context_error(allocation->context);
    if (result == CUDA_SUCCESS && allocation->kind == SIM_ASYNC) {
        sim_pool_release(allocation);
    }
    return result;
}

// By pointer: whatever is current. The error of the owning context's earlier work is the answer.
static CUresult release(CUdeviceptr pointer) {
    if (pointer == 0) {
        return sim_current() != NULL ? sim_context_error(sim_current()) : CUDA_SUCCESS;
    }
    if (sim_host_at(pointer) != NULL) {
        return sim_managed_free(pointer);
    }
    struct sim_allocation *allocation = sim_allocation_at(pointer);
    if (allocation == NULL || allocation->start != pointer ||
        (allocation->kind != SIM_PLAIN && allocation->kind != SIM_ASYNC &&
         allocation->kind != SIM_GRAPH_MEMORY)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (allocation->kind != SIM_PLAIN) {
        return release_unordered(allocation);
    }
    struct CUctx_st *context = allocation->context;
    unsigned long long life = context->id;
    CUresult result = sim_context_error(context);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    allocation->freed = true;
    result = sim_context_finish(context);
    // Its context may have ended meanwhile, and taken the allocation with it.
    if (context->alive && context->id == life) {
        sim_allocation_end(allocation);
    }
    return result;
}

SIM_CALL(cuMemFree, SIM_READY | SIM_UNSAFE, (CUdeviceptr_v1 pointer), release(pointer))
SIM_CALL(cuMemFree_v2, SIM_READY | SIM_UNSAFE, (CUdeviceptr pointer), release(pointer))

// Rows start at multiples of 512 bytes, what recent devices are seen to do; the formula is not
// published.
static CUresult allocate_rows(CUdeviceptr *out, size_t *pitch, size_t width, size_t height,
                              unsigned element) {
    size_t row = 0, bytes = 0;
    if (out == NULL || pitch == NULL || width == 0 || height == 0 ||
        (element != 4 && element != 8 && element != 16)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (__builtin_add_overflow(width, SIM_GRAIN - 1, &row)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    row = row / SIM_GRAIN * SIM_GRAIN;
    if (__builtin_mul_overflow(row, height, &bytes)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = allocate(out, bytes);
    if (result == CUDA_SUCCESS) {
        *pitch = row;
    }
    return result;
}

SIM_CALL(cuMemAllocPitch_v2, SIM_CURRENT | SIM_UNSAFE,
         (CUdeviceptr * out, size_t *pitch, size_t width, size_t height, unsigned element),
         allocate_rows(out, pitch, width, height, element))

static CUresult info(size_t *free_bytes, size_t *total) {
    const struct sim_device *device = sim_current()->device;
    if (free_bytes != NULL) {
        size_t used = device->used + sim_share_others(device);
        *free_bytes = used < device->limit ? (device->limit - used) * SIM_PAGE : 0;
    }
    if (total != NULL) {
        *total = device->limit * SIM_PAGE;
    }
    return CUDA_SUCCESS;
}

static unsigned narrow(size_t bytes) {
    return bytes > UINT_MAX ? UINT_MAX : (unsigned)bytes;
}

static CUresult info_32(unsigned *free_bytes, unsigned *total) {
    size_t wide_free = 0, wide_total = 0;
    info(&wide_free, &wide_total);
    if (free_bytes != NULL) {
        *free_bytes = narrow(wide_free);
    }
    if (total != NULL) {
        *total = narrow(wide_total);
    }
    return CUDA_SUCCESS;
}

SIM_CALL(cuMemGetInfo, SIM_CURRENT, (unsigned *free_bytes, unsigned *total),
         info_32(free_bytes, total))
SIM_CALL(cuMemGetInfo_v2, SIM_CURRENT, (size_t * free_bytes, size_t *total),
         info(free_bytes, total))

static CUresult range_of(CUdeviceptr *start, size_t *size, CUdeviceptr pointer) {
    const struct sim_allocation *allocation = sim_allocation_at(pointer);
    const struct sim_host_range *host = allocation == NULL ? sim_host_at(pointer) : NULL;
    if (allocation == NULL && host == NULL) {
        return CUDA_ERROR_NOT_FOUND;
    }
    if (start != NULL) {
        *start = allocation != NULL ? allocation->start : host->start;
    }
    if (size != NULL) {
        *size = allocation != NULL ? allocation->size : host->size;
    }
    return CUDA_SUCCESS;
}

SIM_CALL(cuMemGetAddressRange_v2, SIM_CURRENT,
         (CUdeviceptr * start, size_t *size, CUdeviceptr pointer), range_of(start, size, pointer))
