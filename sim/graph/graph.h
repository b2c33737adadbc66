// Graphs and their nodes. Guarded by the lock.
#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

#include "sim/base/work.h"
#include "sim/graph/nodes.h"
#include "sim/graph/objects.h"

struct CUgraphNode_st {
    struct CUgraphNode_st *next; // in its graph, in order of making
    struct CUgraph_st *graph;
    CUgraphNodeType type;
    struct sim_work *work;    // what it does; NULL: nothing, or one of the next
    struct CUgraph_st *child; // owned
    struct CUevent_st *event;
    struct sim_graph_memory *memory; // that it allocates
    CUdeviceptr freed;               // that it frees
    struct sim_nodes needs;
    struct CUgraphNode_st *twin; // scratch: its copy in a clone, or what it was cloned from
    bool disabled;
    unsigned mark; // scratch
};

struct CUgraph_st {
    struct CUgraphNode_st *first, **last;
    size_t count;
    struct sim_objects objects; // that it keeps alive
};

struct CUgraph_st *sim_graph_new(void);
void sim_graph_drop(struct CUgraph_st *graph);
struct CUgraph_st *sim_graph_clone(struct CUgraph_st *graph);
// A node that depends on others; takes the work, also when it fails.
struct CUgraphNode_st *sim_node_new(struct CUgraph_st *graph, CUgraphNodeType type,
                                    struct sim_work *work, CUgraphNode const *needs, size_t count);
void sim_node_drop(struct CUgraphNode_st *node);
// All that the nodes depend on, themselves included, gets `mark` 1; all others 0.
void sim_graph_mark(struct CUgraph_st *graph, const struct sim_nodes *from);

#endif
