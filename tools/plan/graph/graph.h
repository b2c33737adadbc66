/*
 * A dataflow graph: nodes (operations) that read and write tensors. It is read from JSON, in the
 * format that docs/plan.md describes.
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
    /* The node that writes the tensor; NO_NODE: no node does; the tensor is an input of the graph
     * and lives from the start. */
    uint32_t producer;
    uint32_t alias; /* index of the tensor whose memory this tensor shares; NO_NODE: none */
    bool kept;      /* whether the tensor lives until all nodes have run */
};

struct node {
    struct name name;
    uint64_t workspace; /* bytes of memory that the node needs only while it runs */
    /* the tensors that the node reads: index of the first in graph.input, and how many */
    uint32_t first_input, inputs;
    /* the tensors that the node writes: index of the first in graph.tensors, and how many */
    uint32_t first_output, outputs;
};

struct graph {
    const char *path;
    struct file_text text; /* the texts of all names, copied from the JSON text */
    size_t text_room;
    struct node *nodes;
    struct tensor *tensors;
    /* for one node after another: the indexes of the tensors that it reads, each once */
    uint32_t *input;
    uint32_t nodes_count;
    uint32_t tensors_count;
    uint32_t inputs_count;
    bool has_alias;
};

/* Reads a graph from the JSON in `text`, which is not changed. `path` is for error messages.
 * graph_free frees the graph. */
bool graph_parse(struct graph *graph, const struct file_text *text, const char *path,
                 struct plan_error *error);
void graph_free(struct graph *graph);

#endif
