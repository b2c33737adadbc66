// Host functions in streams. Guarded by the lock.
#ifndef SIM_CALLBACK_H
#define SIM_CALLBACK_H

#include <cuda.h>

struct sim_work *sim_host_work_new(CUhostFn function, void *data);

#endif
