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
    uint64_t size;     /* bytes */
    uint32_t producer; /* node, or NO_NODE: an input of the graph, there from the start */
    uint32_t alias;    /* tensor whose memory it shares, or NO_NODE */
    bool kept;         /* lives to the end */
};

struct node {
    struct name name;
    uint64_t workspace;             /* bytes that it needs only while it runs */
    uint32_t first_input, inputs;   /* where they begin in graph.input, and how many they are */
    uint32_t first_output, outputs; /* the same in graph.tensors */
};

struct graph {
    const char *path;
    struct file_text text; /* holds the names */
    size_t text_room;
    struct node *nodes;
    struct tensor *tensors;
    uint32_t *input; /* tensors, without repetition within a node */
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
