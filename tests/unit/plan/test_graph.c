/* Graphs, orders of execution, and their lifetimes. */
#include <criterion/criterion.h>
#include <string.h>

#include "planner/common/random.h"
#include "tools/plan/graph/flow.h"
#include "tools/plan/graph/schedule.h"

static struct graph graph_of(const char *json) {
    struct graph graph;
    struct plan_error error;
    struct file_text text = {strdup(json), strlen(json)};
    cr_assert(graph_parse(&graph, &text, "g.json", &error), "%s", error.text);
    file_free(&text);
    return graph;
}

static void expect_runnable(const struct graph *graph, const uint32_t *nodes) {
    struct flow flow;
    struct plan_error error;
    uint32_t step[64];
    memset(step, 0xff, sizeof step);
    cr_assert(flow_build(&flow, graph, &error));
    for (uint32_t i = 0; i < graph->nodes_count; i++) {
        cr_assert_eq(step[nodes[i]], UINT32_MAX);
        step[nodes[i]] = i;
    }
    for (uint32_t e = 0; e < flow.edges; e++)
        cr_assert_lt(step[flow.from[e]], step[flow.to[e]]);
    flow_free(&flow);
}

/* A random graph: each node reads up to three earlier tensors and may write over one of them. */
static struct graph random_graph(uint32_t nodes, uint64_t *random) {
    char json[1 << 14];
    int at = snprintf(json, sizeof json, "{\"nodes\":[");
    for (uint32_t i = 0; i < nodes; i++) {
        at += snprintf(json + at, sizeof json - (size_t)at, "%s{\"name\":\"n%u\",\"inputs\":[",
                       i > 0 ? "," : "", i);
        const uint32_t inputs = i == 0 ? 0 : (uint32_t)(random_next(random) % 3);
        for (uint32_t k = 0; k < inputs; k++)
            at += snprintf(json + at, sizeof json - (size_t)at, "%s\"t%u\"", k > 0 ? "," : "",
                           (uint32_t)(random_next(random) % i));
        at += snprintf(json + at, sizeof json - (size_t)at,
                       "],\"outputs\":[{\"name\":\"t%u\",\"size\":%u}]}", i,
                       (uint32_t)(random_next(random) % 100));
    }
    snprintf(json + at, sizeof json - (size_t)at, "]}");
    return graph_of(json);
}

/* The text is parsed in pieces of 64 KiB: whatever their borders cut, the result is the same. */
Test(graph, is_read_across_pieces) {
    static const char begin[] = "{\"nodes\":[{\"name\":\"n\",\"outputs\":[{\"name\":\"\u00e4\","
                                "\"size\":12345}]}]";
    enum { PIECE = 65536, ROOM = PIECE + 200 };
    static char json[ROOM];
    const size_t length = sizeof begin - 1;
    for (size_t blanks = PIECE - length - 5; blanks < PIECE + 5; blanks++) {
        memset(json, ' ', blanks);
        snprintf(json + blanks, ROOM - blanks, "%s}", begin);
        struct graph graph = graph_of(json);
        cr_assert_eq(graph.nodes_count, 1);
        cr_assert_eq(graph.tensors[0].size, 12345);
        graph_free(&graph);
        struct plan_error error;
        strcat(json, "\n x");
        struct file_text text = {json, strlen(json)};
        cr_assert_not(graph_parse(&graph, &text, "g.json", &error));
        cr_assert(strstr(error.text, "line 2: not JSON"), "%s", error.text);
    }
}

Test(schedule, every_order_can_run) {
    uint64_t random = 1;
    for (int round = 0; round < 30; round++) {
        struct graph graph = random_graph(2 + (uint32_t)round, &random);
        struct flow flow;
        struct scale scale;
        struct plan_error error;
        uint32_t nodes[64];
        double peaks[4];
        cr_assert(flow_build(&flow, &graph, &error) && scale_create(&scale, &graph));
        for (int order = ORDER_GIVEN; order <= ORDER_MIN_PEAK; order++) {
            cr_assert(schedule(&graph, (enum schedule_order)order, 0.02, 1, nodes, &error), "%s",
                      error.text);
            expect_runnable(&graph, nodes);
            peaks[order] = flow_cost(&flow, &scale, nodes).peak;
        }
        for (int order = ORDER_GIVEN; order < ORDER_MIN_PEAK; order++)
            cr_assert_leq(peaks[ORDER_MIN_PEAK], peaks[order]);
        flow_free(&flow);
        scale_free(&scale);
        graph_free(&graph);
    }
}

Test(schedule, writing_over_waits_for_the_other_readers) {
    struct graph graph = graph_of(
        "{\"inputs\":[{\"name\":\"x\",\"size\":8}],\"nodes\":["
        "{\"name\":\"over\",\"inputs\":[\"x\"],\"outputs\":[{\"name\":\"y\",\"size\":8,"
        "\"alias\":\"x\"}]},"
        "{\"name\":\"reader\",\"inputs\":[\"x\"],\"outputs\":[{\"name\":\"z\",\"size\":1}]}]}");
    struct plan_error error;
    uint32_t nodes[2];
    cr_assert_not(schedule(&graph, ORDER_GIVEN, 0, 1, nodes, &error));
    cr_assert(strstr(error.text, "node 0 ('over')") != NULL, "%s", error.text);
    cr_assert(schedule(&graph, ORDER_DFS, 0, 1, nodes, &error));
    cr_assert_eq(nodes[0], 1);
    graph_free(&graph);
}

Test(schedule, lifetimes_last_to_the_last_reader) {
    struct graph graph = graph_of(
        "{\"inputs\":[{\"name\":\"x\",\"size\":8}],\"nodes\":["
        "{\"name\":\"a\",\"inputs\":[\"x\"],\"outputs\":[{\"name\":\"y\",\"size\":5}],"
        "\"workspace\":3},{\"name\":\"b\",\"inputs\":[\"y\",\"x\"],\"outputs\":[{\"name\":\"z\","
        "\"size\":1}]},{\"name\":\"c\",\"inputs\":[\"y\"],\"outputs\":[]}],\"outputs\":[\"z\"]}");
    struct plan_error error;
    struct lifetimes l;
    uint32_t nodes[3];
    cr_assert(schedule(&graph, ORDER_GIVEN, 0, 1, nodes, &error));
    cr_assert(schedule_lifetimes(&l, &graph, nodes, &error));
    cr_assert_eq(l.count, 4); /* x, y, z and the workspace of a */
    const uint64_t births[] = {0, 0, 1, 0}, deaths[] = {2, 3, 3, 1}, sizes[] = {8, 5, 1, 3};
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(l.rows[i].birth - l.rows[0].birth, births[i]);
        cr_assert_eq(l.rows[i].death - l.rows[0].birth, deaths[i]);
        cr_assert_eq(l.rows[i].size, sizes[i]);
    }
    cr_assert_eq(l.ids.list[3].length, strlen("a.workspace"));
    lifetimes_free(&l);
    graph_free(&graph);
}
