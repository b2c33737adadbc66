// Sets of nodes. Guarded by the lock.
#ifndef SIM_NODES_H
#define SIM_NODES_H

#include <stdbool.h>
#include <stddef.h>

// Some nodes of a graph; none is counted.
struct sim_nodes {
    struct CUgraphNode_st **at;
    size_t count, room;
};

bool sim_nodes_add(struct sim_nodes *nodes, struct CUgraphNode_st *node);
bool sim_nodes_join(struct sim_nodes *nodes, const struct sim_nodes *more);
void sim_nodes_remove(struct sim_nodes *nodes, const struct CUgraphNode_st *node);
void sim_nodes_drop(struct sim_nodes *nodes);

#endif
