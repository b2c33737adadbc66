// Which contexts there are, and what they answer. Guarded by the lock.
#ifndef SIM_CONTEXTS_H
#define SIM_CONTEXTS_H

#include <cuda.h>
#include <stdbool.h>

struct sim_device;

void sim_context_enlist(struct CUctx_st *context); // for good: its record is kept after its end
struct CUctx_st *sim_context_next(struct CUctx_st *before); // NULL: the first, or no more
bool sim_context_known(CUcontext handle);
struct CUctx_st *sim_context_of_life(unsigned long long id); // NULL: it has ended
CUresult sim_context_error(const struct CUctx_st *context);
void sim_context_fail(struct CUctx_st *context, CUresult error);
bool sim_context_reaches(const struct CUctx_st *context, const struct sim_device *device);

#endif
