// Memory of other processes. Guarded by the lock.
#ifndef SIM_IPC_H
#define SIM_IPC_H

struct CUctx_st;

void sim_context_imports_end(const struct CUctx_st *context);

#endif
