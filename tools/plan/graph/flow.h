/*
 * The edges between the nodes of a graph (which must run before which), and the memory that an
 * order of them needs.
 */
#ifndef BFC_PLAN_FLOW_H
#define BFC_PLAN_FLOW_H

#include "tools/plan/graph/graph.h"

struct flow {
    const struct graph *graph;
    uint32_t count; /* number of nodes */
    uint32_t edges;
    uint32_t *from;    /* by edge: the node that must run first */
    uint32_t *to;      /* by edge: the node that must run later */
    uint32_t *next_at; /* by node, with one entry more for the end: where its successors start in
                          `next` */
    uint32_t *next;
    uint32_t *prior_at; /* by node, with one entry more for the end: where its predecessors start in
                           `prior` */
    uint32_t *prior;
    uint32_t *root;    /* by tensor: the first of the tensors that share its memory, their root */
    double *size;      /* by root: bytes of the largest tensor that shares its memory; else 0 */
    uint32_t *readers; /* by root: how often nodes read tensors that share its memory */
    bool *kept;        /* by root: whether a tensor that shares its memory lives to the end */
};

bool flow_build(struct flow *flow, const struct graph *graph, struct plan_error *error);
void flow_free(struct flow *flow);

/* The memory in which the cost of an order is computed. */
struct scale {
    uint32_t *birth; /* by tensor: the step at which it begins to live */
    uint32_t *death;
    double *change; /* by step: by how many bytes the live memory grows */
};

bool scale_create(struct scale *scale, const struct graph *graph);
void scale_free(struct scale *scale);

struct cost {
    double peak;  /* the most bytes that live at any step */
    double total; /* the sum of the live bytes of all steps */
    uint32_t at;  /* the step at which the most bytes live */
};

struct cost flow_cost(const struct flow *flow, struct scale *scale, const uint32_t *nodes);

#endif
