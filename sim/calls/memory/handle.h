// What a handle of cuMemCreate stands for. Guarded by the lock.
#ifndef SIM_MEMORY_HANDLE_H
#define SIM_MEMORY_HANDLE_H

#include <cuda.h>

struct sim_chunk *sim_chunk_of(CUmemGenericAllocationHandle handle); // NULL: none

#endif
