/*
 * A dataflow graph: nodes that read and write tensors. The JSON format is described in
 * docs/plan.md.
 */
#ifndef BFC_PLAN_GRAPH_H
#define BFC_PLAN_GRAPH_H

#include "planner/common/names.h"
#include "tools/plan/common/whole_file.h"

#define NO_NODE UINT32_MAX
#define MOST_NODES ((uint32_t)1 << 22)

struct tensor {
    struct name name;
    uint64_t size; /* bytes */
    /* the node that writes the tensor; NO_NODE: it is an input, alive from the start */
    uint32_t producer;
    uint32_t alias; /* the tensor whose memory this tensor shares, or NO_NODE */
    bool kept;      /* whether the tensor lives until all nodes have run */
};

struct node {
    struct name name;
    uint64_t workspace; /* bytes that the node needs only while it runs */
    /* the node's inputs: index of the first one in graph.input, and their number */
    uint32_t first_input, inputs;
    /* the node's outputs: index of the first one in graph.tensors, and their number */
    uint32_t first_output, outputs;
};

struct graph {
    const char *path;
    struct file_text text; /* the JSON text, into which names point */
    size_t text_room;
    struct node *nodes;
    struct tensor *tensors;
    uint32_t *input; /* the tensors that each node reads, each once for a node */
    uint32_t nodes_count;
    uint32_t tensors_count;
    uint32_t inputs_count;
    bool has_alias;
};

/* Parses `text`, which is not changed. Free with graph_free. */
bool graph_parse(struct graph *graph, const struct file_text *text, const char *path,
                 struct plan_error *error);
void graph_free(struct graph *graph);

#endif
