// Arrays. Guarded by the lock.
#ifndef SIM_ARRAY_H
#define SIM_ARRAY_H

#include <cuda.h>
#include <stdbool.h>

struct sim_place;

// Where an array's bytes are; false: no array.
bool sim_array_place(CUarray array, struct sim_place *place);
void sim_context_arrays_end(struct CUctx_st *context);

#endif
