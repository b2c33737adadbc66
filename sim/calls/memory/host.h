// Host memory that the device may reach. Guarded by the lock.
#ifndef SIM_HOST_H
#define SIM_HOST_H

#include <cuda.h>

CUresult sim_managed_free(CUdeviceptr pointer);

#endif
