// Host memory that the device may reach. Guarded by the lock.
#ifndef SIM_RANGES_H
#define SIM_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_host_range {
    uintptr_t start;
    size_t size;
    unsigned flags;
    bool registered, managed, sync_memops;
    unsigned long long buffer_id;
    struct CUctx_st *context;
};

struct sim_host_range *sim_host_at(uintptr_t address);
bool sim_host_add(struct sim_host_range range);
void sim_host_remove(struct sim_host_range *range);
unsigned long long sim_pinned_bytes(void); // of what was not registered

#endif
