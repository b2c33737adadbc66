// Graphs that run. Guarded by the lock.
#ifndef SIM_EXEC_H
#define SIM_EXEC_H

#include <cuda.h>

// An executable graph's copy of a node, or NULL.
struct CUgraphNode_st *sim_exec_node(CUgraphExec exec, CUgraphNode original);

#endif
