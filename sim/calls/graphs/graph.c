// Graphs and their edges. Searches are O(nodes + edges). Guarded by the lock.
#include "sim/graph/graph.h"
#include "sim/base/handle.h"
#include "sim/border/border.h"
#include "sim/graph/nodes.h"

#include <string.h>

static CUresult create(CUgraph *out, unsigned flags) {
    if (out == NULL || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = sim_graph_new();
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult destroy(CUgraph graph) {
    if (!sim_handle_is(graph, SIM_GRAPH)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_graph_drop(graph);
    return CUDA_SUCCESS;
}

static CUresult clone_graph(CUgraph *out, CUgraph graph) {
    if (out == NULL || !sim_handle_is(graph, SIM_GRAPH)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = sim_graph_clone(graph);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_CALL(cuGraphCreate, SIM_READY, (CUgraph * graph, unsigned flags), create(graph, flags))
SIM_CALL(cuGraphDestroy, SIM_READY, (CUgraph graph), destroy(graph))
SIM_CALL(cuGraphClone, SIM_READY, (CUgraph * copy, CUgraph graph), clone_graph(copy, graph))

static CUresult nodes_of(CUgraph graph, CUgraphNode *out, size_t *count, bool roots) {
    if (!sim_handle_is(graph, SIM_GRAPH) || count == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    size_t found = 0;
    for (struct CUgraphNode_st *n = graph->first; n != NULL; n = n->next) {
        if (roots && n->needs.count > 0) {
            continue;
        }
        if (out != NULL && found < *count) {
            out[found] = n;
        }
        found++;
    }
    for (size_t i = found; out != NULL && i < *count; i++) {
        out[i] = NULL;
    }
    *count = found;
    return CUDA_SUCCESS;
}

SIM_CALL(cuGraphGetNodes, SIM_READY, (CUgraph graph, CUgraphNode *nodes, size_t *count),
         nodes_of(graph, nodes, count, false))
SIM_CALL(cuGraphGetRootNodes, SIM_READY, (CUgraph graph, CUgraphNode *nodes, size_t *count),
         nodes_of(graph, nodes, count, true))

static CUresult edges_of(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count) {
    if (!sim_handle_is(graph, SIM_GRAPH) || count == NULL || (from == NULL) != (to == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    size_t found = 0;
    for (struct CUgraphNode_st *n = graph->first; n != NULL; n = n->next) {
        for (size_t i = 0; i < n->needs.count; i++, found++) {
            if (from != NULL && found < *count) {
                from[found] = n->needs.at[i];
                to[found] = n;
            }
        }
    }
    *count = found;
    return CUDA_SUCCESS;
}

static void plain_edges(CUgraphEdgeData *edges, const size_t *count) {
    if (edges != NULL && count != NULL) {
        memset(edges, 0, *count * sizeof *edges);
    }
}

static CUresult edges_with_data(CUgraph graph, CUgraphNode *from, CUgraphNode *to,
                                CUgraphEdgeData *edges, size_t *count) {
    plain_edges(edges, count);
    return edges_of(graph, from, to, count);
}

SIM_CALL(cuGraphGetEdges, SIM_READY,
         (CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count),
         edges_of(graph, from, to, count))
SIM_CALL(cuGraphGetEdges_v2, SIM_READY,
         (CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges, size_t *count),
         edges_with_data(graph, from, to, edges, count))

static CUresult needs_of(CUgraphNode node, CUgraphNode *out, size_t *count) {
    if (!sim_handle_is(node, SIM_NODE) || count == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; out != NULL && i < *count; i++) {
        out[i] = i < node->needs.count ? node->needs.at[i] : NULL;
    }
    *count = node->needs.count;
    return CUDA_SUCCESS;
}

static CUresult needs_with_data(CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *edges,
                                size_t *count) {
    plain_edges(edges, count);
    return needs_of(node, out, count);
}

SIM_CALL(cuGraphNodeGetDependencies, SIM_READY,
         (CUgraphNode node, CUgraphNode *needs, size_t *count), needs_of(node, needs, count))
SIM_CALL(cuGraphNodeGetDependencies_v2, SIM_READY,
         (CUgraphNode node, CUgraphNode *needs, CUgraphEdgeData *edges, size_t *count),
         needs_with_data(node, needs, edges, count))

static CUresult link(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count,
                     bool add) {
    if (!sim_handle_is(graph, SIM_GRAPH) || (count > 0 && (from == NULL || to == NULL))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count; i++) {
        if (!sim_handle_is(from[i], SIM_NODE) || !sim_handle_is(to[i], SIM_NODE) ||
            from[i]->graph != graph || to[i]->graph != graph) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (!add) {
            sim_nodes_remove(&to[i]->needs, from[i]);
        } else if (!sim_nodes_add(&to[i]->needs, from[i])) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    return CUDA_SUCCESS;
}

SIM_CALL(cuGraphAddDependencies, SIM_READY,
         (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count),
         link(graph, from, to, count, true))
SIM_CALL(cuGraphAddDependencies_v2, SIM_READY,
         (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
          const CUgraphEdgeData *edges, size_t count),
         edges != NULL ? CUDA_ERROR_NOT_SUPPORTED : link(graph, from, to, count, true))
SIM_CALL(cuGraphRemoveDependencies, SIM_READY,
         (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count),
         link(graph, from, to, count, false))
SIM_CALL(cuGraphRemoveDependencies_v2, SIM_READY,
         (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
          const CUgraphEdgeData *edges, size_t count),
         edges != NULL ? CUDA_ERROR_NOT_SUPPORTED : link(graph, from, to, count, false))

static CUresult destroy_node(CUgraphNode node) {
    if (!sim_handle_is(node, SIM_NODE)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct CUgraph_st *graph = node->graph;
    struct CUgraphNode_st **link = &graph->first;
    while (*link != node) {
        link = &(*link)->next;
    }
    *link = node->next;
    if (graph->last == &node->next) {
        graph->last = link;
    }
    graph->count--;
    for (struct CUgraphNode_st *n = graph->first; n != NULL; n = n->next) {
        sim_nodes_remove(&n->needs, node);
    }
    sim_node_drop(node);
    return CUDA_SUCCESS;
}

SIM_CALL(cuGraphDestroyNode, SIM_READY, (CUgraphNode node), destroy_node(node))

static CUresult type_of(CUgraphNode node, CUgraphNodeType *type) {
    if (!sim_handle_is(node, SIM_NODE) || type == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *type = node->type;
    return CUDA_SUCCESS;
}

SIM_CALL(cuGraphNodeGetType, SIM_READY, (CUgraphNode node, CUgraphNodeType *type),
         type_of(node, type))
