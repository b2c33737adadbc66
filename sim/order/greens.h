// The order of work in green contexts. Guarded by the lock.
#ifndef SIM_GREENS_H
#define SIM_GREENS_H

#include <cuda.h>

struct sim_marks;

struct CUgreenCtx_st *sim_green_current(void); // of this thread, or NULL
void sim_green_marks(const struct CUgreenCtx_st *green, struct sim_marks *marks);
// By the view: the CUcontext that the green context was converted to.
CUresult sim_green_record(struct CUctx_st *view, CUevent event);
CUresult sim_green_wait(struct CUctx_st *view, CUevent event);

#endif
