// What a pool of stream-ordered memory counts. Guarded by the lock.
#include "sim/memory/pool_counts.h"

#include "sim/base/handle.h"
#include "sim/memory/allocation.h"

void sim_pool_count_used(struct CUmemPoolHandle_st *pool, const struct sim_allocation *allocation) {
    pool->used += allocation->size;
    pool->used_high = pool->used > pool->used_high ? pool->used : pool->used_high;
}

void sim_pool_count_reserved(struct CUmemPoolHandle_st *pool,
                             const struct sim_allocation *allocation) {
    pool->reserved += allocation->taken;
    pool->reserved_high =
        pool->reserved > pool->reserved_high ? pool->reserved : pool->reserved_high;
}

void sim_pool_forget(const struct sim_allocation *allocation) {
    struct CUmemPoolHandle_st *pool = allocation->pool;
    if (pool != NULL && sim_handle_is(pool, SIM_POOL)) {
        pool->reserved -= allocation->taken;
        pool->used -= allocation->cached ? 0 : allocation->size;
    }
}
