// Launches. Guarded by the lock.
#ifndef SIM_LAUNCH_H
#define SIM_LAUNCH_H

#include <cuda.h>

struct sim_work;

CUresult sim_launch_new(const CUlaunchConfig *config, CUfunction function, void **parameters,
                        void **extra, struct sim_work **out);
CUresult sim_launch_tell(const struct sim_work *work, CUDA_KERNEL_NODE_PARAMS_v2 *out);

#endif
