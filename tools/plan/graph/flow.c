#include "tools/plan/graph/flow.h"

#include <stdlib.h>
#include <string.h>

void flow_free(struct flow *flow) {
    free(flow->from);
    free(flow->to);
    free(flow->next_at);
    free(flow->next);
    free(flow->prior_at);
    free(flow->prior);
    free(flow->root);
    free(flow->size);
    free(flow->readers);
    free(flow->kept);
    *flow = (struct flow){0};
}

static uint32_t find_root(uint32_t *root, uint32_t tensor) {
    for (; root[tensor] != tensor; tensor = root[tensor])
        root[tensor] = root[root[tensor]];
    return tensor;
}

static void join_aliases(struct flow *flow) {
    const struct graph *graph = flow->graph;
    for (uint32_t t = 0; t < graph->tensors_count; t++)
        flow->root[t] = t;
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        if (graph->tensors[t].alias == NO_NODE)
            continue;
        const uint32_t a = find_root(flow->root, t);
        const uint32_t b = find_root(flow->root, graph->tensors[t].alias);
        flow->root[a > b ? a : b] = a > b ? b : a;
    }
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        const uint32_t root = flow->root[t] = find_root(flow->root, t);
        const double size = (double)graph->tensors[t].size;
        flow->size[root] = size > flow->size[root] ? size : flow->size[root];
        flow->kept[root] = flow->kept[root] || graph->tensors[t].kept;
    }
    for (uint32_t i = 0; i < graph->inputs_count; i++)
        flow->readers[flow->root[graph->input[i]]]++;
}

static bool grow_edges(struct flow *flow, size_t *room) {
    const size_t more = *room == 0 ? 1024 : *room * 2;
    uint32_t *from = realloc(flow->from, more * sizeof *from);
    if (!from)
        return false;
    flow->from = from;
    uint32_t *to = realloc(flow->to, more * sizeof *to);
    if (!to)
        return false;
    flow->to = to;
    *room = more;
    return true;
}

static bool add_edge(struct flow *flow, size_t *room, uint32_t from, uint32_t to) {
    if (from == NO_NODE || from == to)
        return true;
    if (flow->edges == *room && !grow_edges(flow, room))
        return false;
    flow->from[flow->edges] = from;
    flow->to[flow->edges++] = to;
    return true;
}

/* Returns an array that has, for each tensor, the node that writes over the tensor's memory, or
 * NO_NODE. */
static uint32_t *find_overwriters(const struct graph *graph) {
    uint32_t *writer = malloc(((size_t)graph->tensors_count + 1) * sizeof *writer);
    if (!writer)
        return NULL;
    memset(writer, 0xff, graph->tensors_count * sizeof *writer);
    for (uint32_t t = 0; t < graph->tensors_count; t++)
        if (graph->tensors[t].alias != NO_NODE)
            writer[graph->tensors[t].alias] = graph->tensors[t].producer;
    return writer;
}

static bool find_edges(struct flow *flow) {
    const struct graph *graph = flow->graph;
    uint32_t *writer = find_overwriters(graph);
    size_t room = 0;
    bool good = writer;
    for (uint32_t n = 0; good && n < graph->nodes_count; n++) {
        const struct node *node = &graph->nodes[n];
        for (uint32_t i = 0; good && i < node->inputs; i++) {
            const uint32_t tensor = graph->input[node->first_input + i];
            good = add_edge(flow, &room, graph->tensors[tensor].producer, n) &&
                   (writer[tensor] == NO_NODE || add_edge(flow, &room, n, writer[tensor]));
        }
    }
    free(writer);
    return good;
}

/*
 * Sorts edges by the node at one of their ends, `key`. `*list` gets the nodes at the other ends,
 * and `*at` says where in `*list` those of each node begin.
 */
static bool index_edges(const uint32_t *key, const uint32_t *other, uint32_t edges, uint32_t count,
                        uint32_t **at, uint32_t **list) {
    *at = calloc((size_t)count + 2, sizeof **at);
    *list = malloc(((size_t)edges + 1) * sizeof **list);
    if (!*at || !*list)
        return false;
    for (uint32_t e = 0; e < edges; e++)
        (*at)[key[e] + 2]++;
    for (uint32_t n = 2; n <= count; n++)
        (*at)[n] += (*at)[n - 1];
    for (uint32_t e = 0; e < edges; e++)
        (*list)[(*at)[key[e] + 1]++] = other[e];
    return true;
}

bool flow_build(struct flow *flow, const struct graph *graph, struct plan_error *error) {
    const size_t tensors = (size_t)graph->tensors_count + 1;
    *flow = (struct flow){.graph = graph,
                          .count = graph->nodes_count,
                          .root = malloc(tensors * sizeof *flow->root),
                          .size = calloc(tensors, sizeof *flow->size),
                          .readers = calloc(tensors, sizeof *flow->readers),
                          .kept = calloc(tensors, sizeof *flow->kept)};
    bool good = flow->root && flow->size && flow->readers && flow->kept && find_edges(flow);
    if (good) {
        join_aliases(flow);
        good = index_edges(flow->from, flow->to, flow->edges, flow->count, &flow->next_at,
                           &flow->next) &&
               index_edges(flow->to, flow->from, flow->edges, flow->count, &flow->prior_at,
                           &flow->prior);
    }
    if (good)
        return true;
    flow_free(flow);
    return plan_fail_memory(error);
}

bool scale_create(struct scale *scale, const struct graph *graph) {
    const size_t tensors = (size_t)graph->tensors_count + 1;
    scale->birth = malloc(tensors * sizeof *scale->birth);
    scale->death = malloc(tensors * sizeof *scale->death);
    scale->change = malloc(((size_t)graph->nodes_count + 2) * sizeof *scale->change);
    return scale->birth && scale->death && scale->change;
}

void scale_free(struct scale *scale) {
    free(scale->birth);
    free(scale->death);
    free(scale->change);
}

static void find_lives(const struct flow *flow, struct scale *scale, const uint32_t *nodes) {
    const struct graph *graph = flow->graph;
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        scale->birth[t] = graph->tensors[t].producer == NO_NODE ? 0 : UINT32_MAX;
        scale->death[t] = 0;
    }
    for (uint32_t t = 0; t < graph->tensors_count; t++)
        if (graph->tensors[t].producer == NO_NODE)
            scale->birth[flow->root[t]] = 0;
    for (uint32_t step = 0; step < flow->count; step++) {
        const struct node *node = &graph->nodes[nodes[step]];
        for (uint32_t i = 0; i < node->outputs; i++) {
            const uint32_t root = flow->root[node->first_output + i];
            scale->birth[root] = step < scale->birth[root] ? step : scale->birth[root];
            scale->death[root] = step + 1;
        }
        for (uint32_t i = 0; i < node->inputs; i++)
            scale->death[flow->root[graph->input[node->first_input + i]]] = step + 1;
    }
}

struct cost flow_cost(const struct flow *flow, struct scale *scale, const uint32_t *nodes) {
    const struct graph *graph = flow->graph;
    struct cost cost = {0, 0, 0};
    double live = 0;
    find_lives(flow, scale, nodes);
    memset(scale->change, 0, ((size_t)flow->count + 2) * sizeof *scale->change);
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        if (flow->root[t] != t)
            continue;
        scale->change[scale->birth[t]] += flow->size[t];
        scale->change[flow->kept[t] ? flow->count : scale->death[t]] -= flow->size[t];
    }
    for (uint32_t step = 0; step < flow->count; step++) {
        live += scale->change[step];
        const double now = live + (double)graph->nodes[nodes[step]].workspace;
        cost.total += now;
        if (now > cost.peak) {
            cost.peak = now;
            cost.at = step;
        }
    }
    return cost;
}
