// A pool of stream-ordered memory as a record, and its counts. Guarded by the lock.
#ifndef SIM_POOL_COUNTS_H
#define SIM_POOL_COUNTS_H

#include <cuda.h>

struct sim_allocation;

struct CUmemPoolHandle_st {
    struct sim_device *device;
    cuuint64_t threshold, used, used_high, reserved, reserved_high;
    int follow_events, opportunistic, dependencies;
};

void sim_pool_count_used(struct CUmemPoolHandle_st *pool, const struct sim_allocation *allocation);
void sim_pool_count_reserved(struct CUmemPoolHandle_st *pool,
                             const struct sim_allocation *allocation);
// As an allocation's memory goes back to the device, for whatever reason.
void sim_pool_forget(const struct sim_allocation *allocation);

#endif
