// What is current in a thread.
#ifndef SIM_CURRENT_H
#define SIM_CURRENT_H

#include <cuda.h>
#include <stdbool.h>

CUresult sim_context_push(struct CUctx_st *context);
CUresult sim_context_set_current(CUcontext context);

#endif
