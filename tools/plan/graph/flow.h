/*
 * The dependencies between the nodes of a dataflow graph (edges: one node must run before another),
 * and how much memory an order of execution needs.
 */
#ifndef BFC_PLAN_FLOW_H
#define BFC_PLAN_FLOW_H

#include "tools/plan/graph/graph.h"

struct flow {
    const struct graph *graph;
    uint32_t count; /* number of nodes */
    uint32_t edges;
    uint32_t *from; /* for each edge: the node that must run first */
    uint32_t *to;   /* for each edge: the node that must run later */
    /* for each node: index in `next` of the first of its successors; one more entry marks the
     * end */
    uint32_t *next_at;
    uint32_t *next;
    /* for each node: index in `prior` of the first of its predecessors; one more entry marks the
     * end */
    uint32_t *prior_at;
    uint32_t *prior;
    /* for each tensor: its root, the first of all tensors that share its memory (aliases) */
    uint32_t *root;
    /* for each root (first of the tensors that share memory): bytes of the largest of these
     * tensors; 0 for all other tensors */
    double *size;
    /* for each root (first of the tensors that share memory): how often nodes read these tensors */
    uint32_t *readers;
    /* for each root (first of the tensors that share memory): whether one of these tensors lives to
     * the end */
    bool *kept;
};

bool flow_build(struct flow *flow, const struct graph *graph, struct plan_error *error);
void flow_free(struct flow *flow);

/* Arrays in which flow_cost computes; made once, since many orders are tried. */
struct scale {
    /* for each tensor: the step (position in the order) at which it begins to live */
    uint32_t *birth;
    uint32_t *death;
    double *change; /* for each step: by how many bytes the live memory grows */
};

bool scale_create(struct scale *scale, const struct graph *graph);
void scale_free(struct scale *scale);

struct cost {
    double peak;  /* the most bytes that are live at any step */
    double total; /* the sum of the live bytes of all steps */
    uint32_t at;  /* the first step at which the most bytes are live */
};

struct cost flow_cost(const struct flow *flow, struct scale *scale, const uint32_t *nodes);

#endif
