// Copies of rows and layers. Guarded by the lock.
#ifndef SIM_COPY3D_H
#define SIM_COPY3D_H

#include <cuda.h>

struct sim_work;

CUresult sim_copy_new(const CUDA_MEMCPY3D *p, struct sim_work **out);

#endif
