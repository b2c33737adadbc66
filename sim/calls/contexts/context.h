// A context's life. Guarded by the lock.
#ifndef SIM_CONTEXT_LIFE_H
#define SIM_CONTEXT_LIFE_H

#include <cuda.h>

struct sim_device;

CUresult sim_context_retain(struct sim_device *device);
void sim_context_give_back(struct sim_device *device);

// For tests, found with dlsym: a call past every name and look-up, as NVIDIA's runtime has them
// from tables of its own; NULL: none of that name.
__attribute__((visibility("default"))) void (*sim_private_call(const char *name))(void);

#endif
