#include "tools/plan/graph/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "planner/common/number.h"
#include "planner/common/random.h"
#include "tools/plan/graph/flow.h"

/* for a graph with more nodes, the order min-peak is only the best of the given, the breadth-first
 * and the depth-first order, since a search for a better one takes too long */
#define MOST_SEARCHED 10000
/* how many changes of an order are tried between two readings of the clock */
#define MOVES_PER_LOOK 64

struct scheduler {
    const struct graph *graph;
    struct flow flow;
    struct scale scale;
    struct plan_error *error;
    /* for each node: how many of the nodes that must run before it have not run yet */
    uint32_t *waiting;
    uint32_t *queue; /* nodes that can run now; order_dfs uses the array as its stack */
    /* for each node: its position in the order; order_dfs stores here which predecessor of the node
     * it visits next, as an index in flow.prior */
    uint32_t *at;
    uint64_t random;
};

static bool create_scheduler(struct scheduler *s) {
    const size_t n = (size_t)s->graph->nodes_count + 1;
    if (!flow_build(&s->flow, s->graph, s->error))
        return false;
    s->waiting = malloc(n * sizeof *s->waiting);
    s->queue = malloc(n * sizeof *s->queue);
    s->at = malloc(n * sizeof *s->at);
    return (scale_create(&s->scale, s->graph) && s->waiting && s->queue && s->at) ||
           plan_fail_memory(s->error);
}

static void destroy_scheduler(struct scheduler *s) {
    flow_free(&s->flow);
    scale_free(&s->scale);
    free(s->waiting);
    free(s->queue);
    free(s->at);
}

static bool fail_node(struct scheduler *s, uint32_t node, const char *why) {
    const struct name name = s->graph->nodes[node].name;
    return plan_fail(s->error, "%s: node %u ('%.*s'): %s", s->graph->path, node,
                     (int)(name.length > 40 ? 40 : name.length), name.text, why);
}

static void count_waiting(struct scheduler *s) {
    for (uint32_t n = 0; n < s->flow.count; n++)
        s->waiting[n] = s->flow.prior_at[n + 1] - s->flow.prior_at[n];
}

/* Orders nodes breadth-first: nodes run in the order in which they become able to run. False: the
 * graph has a cycle. */
static bool order_bfs(struct scheduler *s, uint32_t *nodes) {
    const struct flow *flow = &s->flow;
    uint32_t done = 0, ready = 0;
    count_waiting(s);
    for (uint32_t n = 0; n < flow->count; n++)
        if (s->waiting[n] == 0)
            nodes[ready++] = n;
    for (; done < ready; done++)
        for (uint32_t e = flow->next_at[nodes[done]]; e < flow->next_at[nodes[done] + 1]; e++)
            if (--s->waiting[flow->next[e]] == 0)
                nodes[ready++] = flow->next[e];
    if (ready == flow->count)
        return true;
    uint32_t stuck = 0;
    while (s->waiting[stuck] == 0)
        stuck++;
    return fail_node(s, stuck, "it waits for itself: the graph has a cycle");
}

/*
 * Orders nodes depth-first, beginning at each node that no other depends on: the nodes that a node
 * needs run just before it. The graph must have no cycle.
 */
static void order_dfs(struct scheduler *s, uint32_t *nodes) {
    const struct flow *flow = &s->flow;
    uint32_t done = 0, depth = 0;
    memset(s->at, 0xff, flow->count * sizeof *s->at);
    for (uint32_t n = 0; n < flow->count; n++) {
        if (flow->next_at[n] != flow->next_at[n + 1])
            continue;
        s->at[n] = flow->prior_at[n];
        s->queue[depth++] = n;
        while (depth > 0) {
            const uint32_t top = s->queue[depth - 1];
            if (s->at[top] == flow->prior_at[top + 1]) {
                nodes[done++] = top;
                depth--;
                continue;
            }
            const uint32_t prior = flow->prior[s->at[top]++];
            if (s->at[prior] == UINT32_MAX) {
                s->at[prior] = flow->prior_at[prior];
                s->queue[depth++] = prior;
            }
        }
    }
}

static bool order_given(struct scheduler *s, uint32_t *nodes) {
    for (uint32_t n = 0; n < s->flow.count; n++)
        nodes[n] = n;
    for (uint32_t e = 0; e < s->flow.edges; e++)
        if (s->flow.from[e] > s->flow.to[e])
            return fail_node(
                s, s->flow.to[e],
                "in the given order it comes before what it needs; try another --order");
    return true;
}

/*
 * Returns by how many bytes the live memory grows if node `number` runs next: the bytes of its
 * outputs that are not alive yet, less the bytes of its inputs that no later node reads. `readers`
 * has, for each tensor's memory, how many reads of it by nodes are still to come.
 */
static double net_growth(const struct scheduler *s, const uint32_t *readers, const bool *born,
                         uint32_t number) {
    const struct flow *flow = &s->flow;
    const struct node *node = &s->graph->nodes[number];
    double net = 0;
    for (uint32_t i = 0; i < node->outputs; i++) {
        const uint32_t root = flow->root[node->first_output + i];
        if (!born[root] && (flow->readers[root] > 0 || flow->kept[root]))
            net += flow->size[root];
    }
    for (uint32_t i = 0; i < node->inputs; i++) {
        const uint32_t root = flow->root[s->graph->input[node->first_input + i]];
        if (readers[root] == 1 && !flow->kept[root])
            net -= flow->size[root];
    }
    return net;
}

static void run_node(struct scheduler *s, uint32_t *readers, bool *born, uint32_t number,
                     uint32_t *ready) {
    const struct flow *flow = &s->flow;
    const struct node *node = &s->graph->nodes[number];
    for (uint32_t i = 0; i < node->outputs; i++)
        born[flow->root[node->first_output + i]] = true;
    for (uint32_t i = 0; i < node->inputs; i++)
        readers[flow->root[s->graph->input[node->first_input + i]]]--;
    for (uint32_t e = flow->next_at[number]; e < flow->next_at[number + 1]; e++)
        if (--s->waiting[flow->next[e]] == 0)
            s->queue[(*ready)++] = flow->next[e];
}

/* List scheduling: of the nodes that can run, always takes the one after which the live memory has
 * grown least. Takes time in O(n × nodes that can run at a time). */
static bool order_list(struct scheduler *s, uint32_t *nodes) {
    const size_t tensors = (size_t)s->graph->tensors_count + 1;
    uint32_t *readers = malloc(tensors * sizeof *readers);
    bool *born = calloc(tensors, sizeof *born);
    uint32_t ready = 0;
    const bool good = readers && born;
    if (good)
        memcpy(readers, s->flow.readers, s->graph->tensors_count * sizeof *readers);
    count_waiting(s);
    for (uint32_t n = 0; n < s->flow.count; n++)
        if (s->waiting[n] == 0)
            s->queue[ready++] = n;
    for (uint32_t done = 0; good && done < s->flow.count; done++) {
        uint32_t best = 0;
        double least = 0;
        for (uint32_t i = 0; i < ready; i++) {
            const double net = net_growth(s, readers, born, s->queue[i]);
            if (i == 0 || net < least || (net <= least && s->queue[i] < s->queue[best])) {
                least = net;
                best = i;
            }
        }
        nodes[done] = s->queue[best];
        s->queue[best] = s->queue[--ready];
        run_node(s, readers, born, nodes[done], &ready);
    }
    free(readers);
    free(born);
    return good || plan_fail_memory(s->error);
}

/* Finds the first and the last position in the order to which the node may move: after all nodes
 * that it needs, and before all that need it. */
static void find_room(const struct scheduler *s, uint32_t node, uint32_t *least, uint32_t *most) {
    const struct flow *flow = &s->flow;
    *least = 0;
    *most = flow->count - 1;
    for (uint32_t e = flow->prior_at[node]; e < flow->prior_at[node + 1]; e++)
        *least = s->at[flow->prior[e]] + 1 > *least ? s->at[flow->prior[e]] + 1 : *least;
    for (uint32_t e = flow->next_at[node]; e < flow->next_at[node + 1]; e++)
        *most = s->at[flow->next[e]] - 1 < *most ? s->at[flow->next[e]] - 1 : *most;
}

static void move_node(struct scheduler *s, uint32_t *nodes, uint32_t from, uint32_t to) {
    const uint32_t node = nodes[from];
    if (from < to)
        memmove(nodes + from, nodes + from + 1, (to - from) * sizeof *nodes);
    else
        memmove(nodes + to + 1, nodes + to, (from - to) * sizeof *nodes);
    nodes[to] = node;
    for (uint32_t i = from < to ? from : to; i <= (from < to ? to : from); i++)
        s->at[nodes[i]] = i;
}

static uint32_t draw_below(struct scheduler *s, uint32_t below) {
    return (uint32_t)(random_unit(&s->random) * below);
}

/* Chooses at random the position whose node is moved. Half of the choices are near the position at
 * which the most memory is live, since a move is to lower that peak. */
static uint32_t draw_step(struct scheduler *s, uint32_t peak_at) {
    const uint32_t count = s->flow.count;
    const uint32_t window = count < 16 ? count : 16 + count / 16;
    if (draw_below(s, 2) == 0)
        return draw_below(s, count);
    const uint32_t low = peak_at > window / 2 ? peak_at - window / 2 : 0;
    const uint32_t step = low + draw_below(s, window);
    return step < count ? step : count - 1;
}

static bool try_move(struct scheduler *s, uint32_t *nodes, struct cost *cost) {
    const uint32_t from = draw_step(s, cost->at);
    uint32_t least, most;
    find_room(s, nodes[from], &least, &most);
    if (least >= most)
        return false;
    const uint32_t to = least + draw_below(s, most - least + 1);
    if (to == from)
        return false;
    move_node(s, nodes, from, to);
    const struct cost now = flow_cost(&s->flow, &s->scale, nodes);
    if (now.peak < cost->peak || (now.peak <= cost->peak && now.total <= cost->total)) {
        *cost = now;
        return true;
    }
    move_node(s, nodes, to, from);
    return false;
}

/* Improves an order by moving single nodes to other positions, until the time is over or many moves
 * in a row have not lowered the peak. */
static void improve_order(struct scheduler *s, uint32_t *nodes, double seconds) {
    const double end = bfc_now_seconds() + seconds;
    struct cost cost = flow_cost(&s->flow, &s->scale, nodes);
    const uint64_t most_idle = 2000 + 200 * (uint64_t)s->flow.count;
    uint64_t idle = 0;
    double peak = cost.peak;
    for (uint32_t n = 0; n < s->flow.count; n++)
        s->at[nodes[n]] = n;
    for (uint64_t moves = 1; idle < most_idle; moves++) {
        try_move(s, nodes, &cost);
        idle = cost.peak < peak ? 0 : idle + 1;
        peak = cost.peak;
        if (moves % MOVES_PER_LOOK == 0 && bfc_now_seconds() >= end)
            return;
    }
}

static void keep_better(struct scheduler *s, uint32_t *best, const uint32_t *other, double *least) {
    const struct cost cost = flow_cost(&s->flow, &s->scale, other);
    if (cost.peak >= *least)
        return;
    *least = cost.peak;
    memcpy(best, other, s->flow.count * sizeof *best);
}

static bool order_min_peak(struct scheduler *s, double seconds, uint32_t *nodes) {
    uint32_t *other = malloc(((size_t)s->flow.count + 1) * sizeof *other);
    struct plan_error ignored;
    struct plan_error *error = s->error;
    if (!other)
        return plan_fail_memory(error);
    double least = flow_cost(&s->flow, &s->scale, nodes).peak;
    order_dfs(s, other);
    keep_better(s, nodes, other, &least);
    /* The order in the file may be impossible. That is no error here, since only the best of
     * several orders is kept. */
    s->error = &ignored;
    if (order_given(s, other))
        keep_better(s, nodes, other, &least);
    s->error = error;
    bool good = true;
    if (s->flow.count <= MOST_SEARCHED) {
        good = order_list(s, other);
        if (good)
            keep_better(s, nodes, other, &least);
        if (good && s->flow.count > 1)
            improve_order(s, nodes, seconds);
    }
    free(other);
    return good;
}

static bool make_order(struct scheduler *s, enum schedule_order order, double seconds,
                       uint32_t *nodes) {
    if (!order_bfs(s, nodes))
        return false;
    switch (order) {
    case ORDER_GIVEN:
        return order_given(s, nodes);
    case ORDER_DFS:
        order_dfs(s, nodes);
        return true;
    case ORDER_BFS:
        return true;
    case ORDER_MIN_PEAK:
        return order_min_peak(s, seconds, nodes);
    }
    return false;
}

bool schedule(const struct graph *graph, enum schedule_order order, double seconds, uint64_t seed,
              uint32_t *nodes, struct plan_error *error) {
    struct scheduler s = {.graph = graph, .error = error, .random = seed};
    const bool good = create_scheduler(&s) && make_order(&s, order, seconds, nodes);
    destroy_scheduler(&s);
    return good;
}

#define SHOWN 40 /* how many bytes of a name a message shows */

static const char workspace_suffix[] = ".workspace";

static struct name workspace_name(struct lifetimes *lifetimes, struct name node) {
    char *text = lifetimes->text.bytes + lifetimes->text.size;
    memcpy(text, node.text, node.length);
    memcpy(text + node.length, workspace_suffix, sizeof workspace_suffix);
    lifetimes->text.size += node.length + sizeof workspace_suffix;
    return (struct name){text, node.length + sizeof workspace_suffix - 1};
}

/* Reports that two rows would have the same name. Tensors have different names, and so have nodes,
 * so the name must be that of a tensor and of a node's workspace. */
static bool fail_twice(const struct lifetimes *lifetimes, struct name name,
                       struct plan_error *error) {
    const int shown = name.length > SHOWN ? SHOWN : (int)name.length;
    return plan_fail(error, "%s: a tensor and a node's workspace would both be named '%.*s'",
                     lifetimes->path, shown, name.text);
}

static bool add_row(struct lifetimes *lifetimes, struct name name, uint32_t birth, uint32_t death,
                    uint64_t size, struct plan_error *error) {
    bool fresh;
    if (names_add(&lifetimes->ids, name, &fresh) == NAMES_NONE)
        return plan_fail_memory(error);
    if (!fresh)
        return fail_twice(lifetimes, name, error);
    lifetimes->rows[lifetimes->count++] = (struct lifetime){.birth = PLAN_TICK_OF_ZERO + birth,
                                                            .death = PLAN_TICK_OF_ZERO + death,
                                                            .size = size,
                                                            .pin = NOT_PINNED,
                                                            .alias = ROW_NONE,
                                                            .group = ROW_NONE,
                                                            .stream = ROW_NONE};
    return true;
}

/*
 * Finds the steps at which each tensor begins and ceases to live. A tensor that no node reads lives
 * while the node that writes it runs.
 */
static void find_lives(const struct graph *graph, const uint32_t *nodes, uint32_t *birth,
                       uint32_t *death) {
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        birth[t] = 0;
        death[t] = 1;
    }
    for (uint32_t step = 0; step < graph->nodes_count; step++) {
        const struct node *node = &graph->nodes[nodes[step]];
        for (uint32_t i = 0; i < node->outputs; i++) {
            birth[node->first_output + i] = step;
            death[node->first_output + i] = step + 1;
        }
        for (uint32_t i = 0; i < node->inputs; i++)
            death[graph->input[node->first_input + i]] = step + 1;
    }
    for (uint32_t t = 0; t < graph->tensors_count; t++)
        if (graph->tensors[t].kept && graph->nodes_count > 0)
            death[t] = graph->nodes_count;
}

static bool add_rows(struct lifetimes *lifetimes, const struct graph *graph, const uint32_t *nodes,
                     const uint32_t *birth, const uint32_t *death, struct plan_error *error) {
    bool good = true;
    for (uint32_t t = 0; good && t < graph->tensors_count; t++) {
        const struct tensor *tensor = &graph->tensors[t];
        good = add_row(lifetimes, tensor->name, birth[t], death[t], tensor->size, error);
        lifetimes->rows[t].alias = tensor->alias == NO_NODE ? ROW_NONE : tensor->alias;
    }
    for (uint32_t step = 0; good && step < graph->nodes_count; step++) {
        const struct node *node = &graph->nodes[nodes[step]];
        if (node->workspace > 0)
            good = add_row(lifetimes, workspace_name(lifetimes, node->name), step, step + 1,
                           node->workspace, error);
    }
    return good;
}

bool schedule_lifetimes(struct lifetimes *lifetimes, const struct graph *graph,
                        const uint32_t *nodes, struct plan_error *error) {
    struct lifetimes result = {.path = graph->path, .has_alias = graph->has_alias};
    const size_t rows = (size_t)graph->tensors_count + graph->nodes_count + 1;
    uint32_t *birth = malloc(rows * sizeof *birth);
    uint32_t *death = malloc(rows * sizeof *death);
    result.rows = malloc(rows * sizeof *result.rows);
    result.text.bytes = malloc(graph->text.size + graph->nodes_count * sizeof workspace_suffix + 1);
    bool good = birth && death && result.rows && result.text.bytes;
    if (!good)
        plan_fail_memory(error);
    if (good) {
        find_lives(graph, nodes, birth, death);
        good = add_rows(&result, graph, nodes, birth, death, error);
    }
    free(birth);
    free(death);
    if (!good) {
        lifetimes_free(&result);
        return false;
    }
    result.visible = result.prefix = result.count;
    lifetimes_seal(&result);
    *lifetimes = result;
    return true;
}
