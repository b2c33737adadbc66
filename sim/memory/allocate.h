// Device memory, allocated and looked up. Guarded by the lock.
#ifndef SIM_ALLOCATE_H
#define SIM_ALLOCATE_H

#include "sim/memory/allocation.h"
#include <cuda.h>

CUresult sim_allocate(struct CUctx_st *context, size_t size, enum sim_kind kind,
                      struct sim_allocation **out);
void sim_allocation_end(struct sim_allocation *allocation);
struct sim_allocation *sim_allocation_at(uintptr_t address); // NULL also for freed ones
void sim_context_memory_end(struct CUctx_st *context);

#endif
