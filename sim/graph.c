// Graphs: nodes and what each depends on. Guarded by the lock.
//
// A node lists the nodes that it needs; a graph lists its nodes in the order of their making.
// Searches are O(nodes + edges).
#include "sim/sim.h"

#include <stdlib.h>
#include <string.h>

// Memory that a graph allocates, held by the node and by all clones of it.
struct sim_graph_memory {
    unsigned references;
    struct CUctx_st *context;
    unsigned long long life; // the context's id
    CUdeviceptr start;
};

// ---- sets of nodes ----

bool sim_nodes_add(struct sim_nodes *nodes, struct CUgraphNode_st *node) {
    for (size_t i = 0; i < nodes->count; i++) {
        if (nodes->at[i] == node) {
            return true;
        }
    }
    if (nodes->count == nodes->room) {
        size_t room = nodes->room == 0 ? 4 : nodes->room * 2;
        struct CUgraphNode_st **grown = realloc(nodes->at, room * sizeof(struct CUgraphNode_st *));
        if (grown == NULL) {
            return false;
        }
        nodes->at = grown;
        nodes->room = room;
    }
    nodes->at[nodes->count++] = node;
    return true;
}

bool sim_nodes_join(struct sim_nodes *nodes, const struct sim_nodes *more) {
    for (size_t i = 0; i < more->count; i++) {
        if (!sim_nodes_add(nodes, more->at[i])) {
            return false;
        }
    }
    return true;
}

void sim_nodes_drop(struct sim_nodes *nodes) {
    free(nodes->at);
    *nodes = (struct sim_nodes){0};
}

static void nodes_remove(struct sim_nodes *nodes, const struct CUgraphNode_st *node) {
    for (size_t i = 0; i < nodes->count; i++) {
        if (nodes->at[i] == node) {
            memmove(&nodes->at[i], &nodes->at[i + 1],
                    (nodes->count - i - 1) * sizeof(struct CUgraphNode_st *));
            nodes->count--;
            return;
        }
    }
}

// ---- nodes ----

static void memory_release(struct sim_graph_memory *memory) {
    if (memory == NULL || --memory->references > 0) {
        return;
    }
    struct sim_allocation *allocation = NULL;
    if (memory->context->alive && memory->context->id == memory->life) {
        allocation = sim_allocation_at(memory->start);
    }
    if (allocation != NULL && allocation->kind == SIM_GRAPH_MEMORY) {
        sim_allocation_end(allocation);
    }
    free(memory);
}

struct sim_graph_memory *sim_graph_memory_new(const struct sim_allocation *allocation) {
    struct sim_graph_memory *memory = malloc(sizeof *memory);
    if (memory != NULL) {
        *memory = (struct sim_graph_memory){.references = 1,
                                            .context = allocation->context,
                                            .life = allocation->context->id,
                                            .start = allocation->start};
    }
    return memory;
}

static void node_drop(struct CUgraphNode_st *node) {
    sim_handle_remove(node);
    if (node->work != NULL) {
        node->work->type->drop(node->work);
    }
    if (node->child != NULL) {
        sim_graph_drop(node->child);
    }
    memory_release(node->memory);
    sim_nodes_drop(&node->needs);
    free(node);
}

struct CUgraphNode_st *sim_node_new(struct CUgraph_st *graph, CUgraphNodeType type,
                                    struct sim_work *work, CUgraphNode const *needs, size_t count) {
    struct CUgraphNode_st *node = calloc(1, sizeof *node);
    bool made = node != NULL && sim_handle_add(node, SIM_NODE);
    for (size_t i = 0; made && i < count; i++) {
        made = sim_nodes_add(&node->needs, needs[i]);
    }
    if (!made) {
        if (node != NULL) {
            node_drop(node);
        }
        if (work != NULL) {
            work->type->drop(work);
        }
        return NULL;
    }
    node->graph = graph;
    node->type = type;
    node->work = work;
    *graph->last = node;
    graph->last = &node->next;
    graph->count++;
    return node;
}

// ---- graphs ----

struct CUgraph_st *sim_graph_new(void) {
    struct CUgraph_st *graph = calloc(1, sizeof *graph);
    if (graph == NULL || !sim_handle_add(graph, SIM_GRAPH)) {
        free(graph);
        return NULL;
    }
    graph->last = &graph->first;
    return graph;
}

void sim_graph_drop(struct CUgraph_st *graph) {
    while (graph->first != NULL) {
        struct CUgraphNode_st *node = graph->first;
        graph->first = node->next;
        node_drop(node);
    }
    sim_handle_remove(graph);
    free(graph);
}

static bool clone_node(struct CUgraph_st *to, struct CUgraphNode_st *from) {
    struct sim_work *work = from->work != NULL ? from->work->type->clone(from->work) : NULL;
    if (from->work != NULL && work == NULL) {
        return false;
    }
    struct CUgraphNode_st *node = sim_node_new(to, from->type, work, NULL, 0);
    if (node == NULL) {
        return false;
    }
    node->event = from->event;
    node->freed = from->freed;
    node->disabled = from->disabled;
    node->memory = from->memory;
    if (node->memory != NULL) {
        node->memory->references++;
    }
    node->twin = from;
    from->twin = node;
    node->child = from->child != NULL ? sim_graph_clone(from->child) : NULL;
    bool complete = (from->child == NULL) == (node->child == NULL);
    for (size_t i = 0; complete && i < from->needs.count; i++) {
        complete = from->needs.at[i]->twin != NULL;
    }
    return complete;
}

// Edges may point to later-made nodes, so they are copied when all twins exist.
struct CUgraph_st *sim_graph_clone(struct CUgraph_st *graph) {
    struct CUgraph_st *copy = sim_graph_new();
    bool good = copy != NULL;
    for (struct CUgraphNode_st *n = graph->first; n != NULL; n = n->next) {
        n->twin = n; // no copy yet; clone_node only asks whether one will be
    }
    for (struct CUgraphNode_st *n = graph->first; good && n != NULL; n = n->next) {
        good = clone_node(copy, n);
    }
    for (struct CUgraphNode_st *n = graph->first; good && n != NULL; n = n->next) {
        for (size_t i = 0; good && i < n->needs.count; i++) {
            good = sim_nodes_add(&n->twin->needs, n->needs.at[i]->twin);
        }
    }
    if (!good && copy != NULL) {
        sim_graph_drop(copy);
        copy = NULL;
    }
    return copy;
}

void sim_graph_mark(struct CUgraph_st *graph, const struct sim_nodes *from) {
    for (struct CUgraphNode_st *n = graph->first; n != NULL; n = n->next) {
        n->mark = 0;
    }
    for (size_t i = 0; i < from->count; i++) {
        from->at[i]->mark = 1;
    }
    bool more = true;
    while (more) { // until nothing new is reached
        more = false;
        for (struct CUgraphNode_st *n = graph->first; n != NULL; n = n->next) {
            for (size_t i = 0; n->mark == 1 && i < n->needs.count; i++) {
                more = more || n->needs.at[i]->mark == 0;
                n->needs.at[i]->mark = 1;
            }
        }
    }
}

// ---- the API: graphs and their edges ----

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
            nodes_remove(&to[i]->needs, from[i]);
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
        nodes_remove(&n->needs, node);
    }
    node_drop(node);
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
