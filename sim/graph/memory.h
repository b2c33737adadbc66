// Memory that a graph allocates, held by the node and by all clones of it. Guarded by the lock.
#ifndef SIM_GRAPH_MEMORY_H
#define SIM_GRAPH_MEMORY_H

#include <cuda.h>
#include <stddef.h>

struct sim_graph_memory;

// Allocated now, so that its address is known from now on.
CUresult sim_graph_memory_new(struct CUctx_st *context, size_t size, struct sim_graph_memory **out,
                              CUdeviceptr *address);
struct sim_graph_memory *sim_graph_memory_hold(struct sim_graph_memory *memory); // NULL: nothing
void sim_graph_memory_release(struct sim_graph_memory *memory);

#endif
