// Sets of nodes. Guarded by the lock.
#include "sim/graph/nodes.h"

#include <stdlib.h>
#include <string.h>

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

void sim_nodes_remove(struct sim_nodes *nodes, const struct CUgraphNode_st *node) {
    for (size_t i = 0; i < nodes->count; i++) {
        if (nodes->at[i] == node) {
            memmove(&nodes->at[i], &nodes->at[i + 1],
                    (nodes->count - i - 1) * sizeof(struct CUgraphNode_st *));
            nodes->count--;
            return;
        }
    }
}
