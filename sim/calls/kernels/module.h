// Modules. Guarded by the lock.
#ifndef SIM_MODULE_H
#define SIM_MODULE_H

struct CUctx_st;
struct CUmod_st;

struct CUctx_st *sim_module_context(const struct CUmod_st *module);
void sim_context_modules_end(struct CUctx_st *context);

#endif
