// Stream-ordered memory. Guarded by the lock.
#ifndef SIM_POOL_H
#define SIM_POOL_H

#include <stddef.h>

struct sim_allocation;

void sim_pool_release(struct sim_allocation *allocation);

#endif
