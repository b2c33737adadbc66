// Device memory: what cuMemAlloc and its kin are made of.
//
// A request of up to 1 MiB is cut, by grains of 512 bytes, from a slab of one page of 2 MiB that
// belongs to its context; a larger one takes whole pages. Look-up by address is O(1): page to
// owner, slab to allocation. Guarded by the lock.
#include "sim/memory/allocate.h"

#include "sim/base/ids.h"
#include "sim/base/limits.h"
#include "sim/base/options.h"
#include "sim/device/devices.h"
#include "sim/device/pages.h"
#include "sim/memory/ledger.h"
#include "sim/memory/pool_counts.h"
#include "sim/memory/reach.h"
#include "sim/memory/window.h"

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

static bool cut(struct CUctx_st *context, size_t grains, struct sim_allocation *allocation) {
    for (struct sim_slab *slab = context->slabs; slab != NULL; slab = slab->next) {
        if (slab_cut(slab, grains, allocation)) {
            return true;
        }
    }
    struct sim_slab *slab = slab_new(context);
    return slab != NULL && slab_cut(slab, grains, allocation);
}

// Whole pages are zero in any case.
static bool take_small(struct CUctx_st *context, struct sim_allocation *allocation) {
    size_t grains = (allocation->size + SIM_GRAIN - 1) / SIM_GRAIN;
    allocation->taken = grains * SIM_GRAIN;
    bool taken = cut(context, grains, allocation);
    if (taken && sim_options.fresh_zero) {
        memset(sim_reach(allocation->start, allocation->taken), 0, allocation->taken);
    }
    return taken;
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
    sim_ledger_forget(allocation);
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
