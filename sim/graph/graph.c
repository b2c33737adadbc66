// Graphs: nodes and what each depends on. Guarded by the lock.
//
// A node lists the nodes that it needs; a graph lists its nodes in the order of their making.
// Searches are O(nodes + edges).
#include "sim/graph/graph.h"

#include "sim/base/handle.h"
#include "sim/graph/memory.h"
#include "sim/graph/nodes.h"

#include <stdlib.h>

void sim_node_drop(struct CUgraphNode_st *node) {
    sim_handle_remove(node);
    if (node->work != NULL) {
        node->work->type->drop(node->work);
    }
    if (node->child != NULL) {
        sim_graph_drop(node->child);
    }
    sim_graph_memory_release(node->memory);
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
            sim_node_drop(node);
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
        sim_node_drop(node);
    }
    sim_objects_drop(&graph->objects);
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
    node->memory = sim_graph_memory_hold(from->memory);
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
    bool good = copy != NULL && sim_objects_copy(&copy->objects, &graph->objects);
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
