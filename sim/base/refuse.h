// Refusals on demand (SIM_FAIL). Guarded by the lock.
#ifndef SIM_REFUSE_H
#define SIM_REFUSE_H

#include <cuda.h>

struct sim_call;

CUresult sim_refusal_of(struct sim_call *call);
const int *sim_codes_of(const char *call); // documented ones, ended by 0; NULL: never at random

#endif
