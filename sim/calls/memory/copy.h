// Copies and sets. Guarded by the lock.
#ifndef SIM_COPY_H
#define SIM_COPY_H

#include "sim/calls/memory/place.h"
#include <cuda.h>
#include <stdbool.h>

struct sim_work;

CUresult sim_copy_issue(const struct sim_place *to, const struct sim_place *from,
                        const struct sim_extent *extent, CUstream stream, bool per_thread,
                        enum sim_wait wait);
struct sim_work *sim_copy_work(const struct sim_place *to, const struct sim_place *from,
                               const struct sim_extent *extent);
CUresult sim_set_new(const CUDA_MEMSET_NODE_PARAMS *p, struct sim_work **out);

#endif
