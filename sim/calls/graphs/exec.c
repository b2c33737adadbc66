// Graphs that run: instantiating, launching, updating.
//
// A launch is one piece of its stream's work. Its nodes run one after another, in an order that
// keeps the edges and is otherwise drawn from the seed, so that a missing edge shows; branches do
// not run beside each other. Events that it waits for are waited for before its first node, events
// that it records are complete after its last.
#include "sim/calls/graphs/exec.h"

#include "sim/base/handle.h"
#include "sim/base/options.h"
#include "sim/base/random.h"
#include "sim/border/border.h"
#include "sim/graph/memory.h"
#include "sim/graph/nodes.h"
#include "sim/order/capture.h"
#include "sim/order/event.h"
#include "sim/order/events.h"
#include "sim/order/mark.h"
#include "sim/order/meant.h"
#include "sim/order/stream.h"

#include <stdlib.h>
#include <string.h>

struct CUgraphExec_st {
    struct CUgraph_st *graph; // its own copy
    struct CUgraph_st *source;
    struct sim_nodes originals; // in the copy's order
    cuuint64_t flags;
    unsigned long long launches;
};

struct run {
    struct sim_work work;
    struct sim_work **pieces;
    size_t count;
    size_t done; // all before it; the next one may want to be asked again
};

// ---- a launch as work ----

static CUresult run_all(struct sim_work *work) {
    struct run *run = (struct run *)work;
    CUresult result = CUDA_SUCCESS;
    while (run->done < run->count && result == CUDA_SUCCESS) {
        result = run->pieces[run->done]->type->run(run->pieces[run->done]);
        run->done += result == CUDA_SUCCESS;
    }
    return result;
}

static void drop_all(struct sim_work *work) {
    struct run *run = (struct run *)work;
    for (size_t i = 0; i < run->count; i++) {
        run->pieces[i]->type->drop(run->pieces[i]);
    }
    free(run->pieces);
    free(run);
}

static const struct sim_work_type run_type = {.run = run_all, .drop = drop_all};

// What a launch holds of the memory that its graph allocates: the graph may be destroyed meanwhile.
struct hold {
    struct sim_work work;
    struct sim_graph_memory *memory;
};

static CUresult run_hold(struct sim_work *work) {
    (void)work;
    return CUDA_SUCCESS;
}

static void drop_hold(struct sim_work *work) {
    sim_graph_memory_release(((struct hold *)work)->memory);
    free(work);
}

static const struct sim_work_type hold_type = {.run = run_hold, .drop = drop_hold};

static struct sim_work *hold_new(struct sim_graph_memory *memory) {
    struct hold *hold = calloc(1, sizeof *hold);
    if (hold == NULL) {
        return NULL;
    }
    hold->work.type = &hold_type;
    hold->memory = sim_graph_memory_hold(memory);
    return &hold->work;
}

static size_t pieces_in(const struct CUgraph_st *graph) {
    size_t count = 0;
    for (const struct CUgraphNode_st *n = graph->first; n != NULL; n = n->next) {
        count += n->child != NULL ? pieces_in(n->child) : n->work != NULL || n->memory != NULL;
    }
    return count;
}

static bool ready(const struct CUgraphNode_st *node) {
    for (size_t i = 0; i < node->needs.count; i++) {
        if (node->needs.at[i]->mark == 0) {
            return false;
        }
    }
    return node->mark == 0;
}

// One of the nodes whose needs are met.
static struct CUgraphNode_st *choose(const struct CUgraph_st *graph, uint64_t draw) {
    size_t count = 0;
    for (struct CUgraphNode_st *n = graph->first; n != NULL; n = n->next) {
        count += ready(n);
    }
    size_t wanted = count == 0 ? 0 : (size_t)(draw % count);
    for (struct CUgraphNode_st *n = graph->first; n != NULL; n = n->next) {
        if (ready(n) && wanted-- == 0) {
            return n;
        }
    }
    return NULL;
}

static bool add_pieces(struct run *run, struct CUgraph_st *graph, uint64_t seed) {
    struct CUgraphNode_st *node = NULL;
    for (struct CUgraphNode_st *n = graph->first; n != NULL; n = n->next) {
        n->mark = 0;
    }
    while ((node = choose(graph, sim_options.seed == 0 ? 0 : sim_mix(seed++))) != NULL) {
        node->mark = 1;
        if (node->disabled) {
            continue;
        }
        if (node->child != NULL && !add_pieces(run, node->child, sim_mix(seed))) {
            return false;
        }
        if (node->work != NULL || node->memory != NULL) {
            struct sim_work *piece =
                node->work != NULL ? node->work->type->clone(node->work) : hold_new(node->memory);
            if (piece == NULL) {
                return false;
            }
            run->pieces[run->count++] = piece;
        }
    }
    return true;
}

static struct run *run_new(struct CUgraph_st *graph, uint64_t seed) {
    struct run *run = calloc(1, sizeof *run);
    if (run == NULL) {
        return NULL;
    }
    run->work.type = &run_type;
    run->pieces = calloc(pieces_in(graph) + 1, sizeof(struct sim_work *));
    if (run->pieces == NULL || !add_pieces(run, graph, seed)) {
        drop_all(&run->work);
        return NULL;
    }
    return run;
}

// ---- launching ----

static void wait_for_events(const struct CUgraph_st *graph, struct sim_marks *waits) {
    for (const struct CUgraphNode_st *n = graph->first; n != NULL; n = n->next) {
        if (n->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT && sim_event_of(n->event) != NULL) {
            sim_marks_join(waits, &n->event->marks);
        }
        if (n->child != NULL) {
            wait_for_events(n->child, waits);
        }
    }
}

static CUresult record_events(const struct CUgraph_st *graph, struct CUstream_st *stream) {
    CUresult result = CUDA_SUCCESS;
    for (const struct CUgraphNode_st *n = graph->first; n != NULL && result == CUDA_SUCCESS;
         n = n->next) {
        if (n->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD && sim_event_of(n->event) != NULL) {
            result = sim_event_record(n->event, stream);
        }
        if (n->child != NULL && result == CUDA_SUCCESS) {
            result = record_events(n->child, stream);
        }
    }
    return result;
}

static CUresult launch(CUgraphExec exec, CUstream handle, bool per_thread) {
    CUresult result = CUDA_SUCCESS;
    struct CUstream_st *stream = sim_stream_of(handle, per_thread, &result);
    if (!sim_handle_is(exec, SIM_EXEC)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (stream == NULL) {
        return result;
    }
    if (sim_capturing(stream)) {
        struct CUgraph_st *copy = sim_graph_clone(exec->graph);
        return copy == NULL ? CUDA_ERROR_OUT_OF_MEMORY : sim_capture_add_child(stream, copy);
    }
    struct run *run = run_new(exec->graph, sim_mix(sim_options.seed + ++exec->launches));
    if (run == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    wait_for_events(exec->graph, &run->work.waits);
    result = sim_submit(stream, &run->work);
    return result == CUDA_SUCCESS ? record_events(exec->graph, stream) : result;
}

static CUresult upload(CUgraphExec exec, CUstream handle, bool per_thread) {
    CUresult result = CUDA_SUCCESS;
    struct CUstream_st *stream = sim_stream_of(handle, per_thread, &result);
    return !sim_handle_is(exec, SIM_EXEC) ? CUDA_ERROR_INVALID_VALUE
           : stream == NULL               ? result
                                          : CUDA_SUCCESS;
}

SIM_PAIR(cuGraphLaunch, cuGraphLaunch_ptsz, SIM_CURRENT, (CUgraphExec exec, CUstream stream),
         launch(exec, stream, per_thread))
SIM_PAIR(cuGraphUpload, cuGraphUpload_ptsz, SIM_CURRENT, (CUgraphExec exec, CUstream stream),
         upload(exec, stream, per_thread))

// ---- instantiating ----

static bool has_cycle(const struct CUgraph_st *graph) {
    size_t done = 0;
    struct CUgraphNode_st *node = NULL;
    for (struct CUgraphNode_st *n = graph->first; n != NULL; n = n->next) {
        n->mark = 0;
    }
    while ((node = choose(graph, 0)) != NULL) {
        node->mark = 1;
        done++;
    }
    return done != graph->count;
}

static bool note_originals(struct CUgraphExec_st *exec) {
    for (struct CUgraphNode_st *n = exec->graph->first; n != NULL; n = n->next) {
        if (!sim_nodes_add(&exec->originals, n->twin)) {
            return false;
        }
    }
    return true;
}

static void drop_exec(struct CUgraphExec_st *exec) {
    if (exec->graph != NULL) {
        sim_graph_drop(exec->graph);
    }
    sim_nodes_drop(&exec->originals);
    sim_handle_remove(exec);
    free(exec);
}

static CUresult instantiate(CUgraphExec *out, CUgraph graph, cuuint64_t flags) {
    if (out == NULL || !sim_handle_is(graph, SIM_GRAPH) || has_cycle(graph)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct CUgraphExec_st *exec = calloc(1, sizeof *exec);
    if (exec == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    exec->flags = flags;
    exec->source = graph;
    exec->graph = sim_graph_clone(graph);
    if (exec->graph == NULL || !note_originals(exec) || !sim_handle_add(exec, SIM_EXEC)) {
        drop_exec(exec);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = exec;
    return CUDA_SUCCESS;
}

static CUresult instantiate_with(CUgraphExec *out, CUgraph graph,
                                 CUDA_GRAPH_INSTANTIATE_PARAMS *p) {
    if (p == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = instantiate(out, graph, p->flags);
    p->hErrNode_out = NULL;
    p->result_out =
        result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
    return result;
}

static CUresult instantiate_telling(CUgraphExec *out, CUgraph graph, CUgraphNode *bad, char *log,
                                    size_t size) {
    if (bad != NULL) {
        *bad = NULL;
    }
    if (log != NULL && size > 0) {
        *log = '\0';
    }
    return instantiate(out, graph, 0);
}

SIM_CALL(cuGraphInstantiate, SIM_READY,
         (CUgraphExec * exec, CUgraph graph, CUgraphNode *bad, char *log, size_t size),
         instantiate_telling(exec, graph, bad, log, size))
SIM_CALL(cuGraphInstantiate_v2, SIM_READY,
         (CUgraphExec * exec, CUgraph graph, CUgraphNode *bad, char *log, size_t size),
         instantiate_telling(exec, graph, bad, log, size))
SIM_CALL(cuGraphInstantiateWithFlags, SIM_READY,
         (CUgraphExec * exec, CUgraph graph, unsigned long long flags),
         instantiate(exec, graph, flags))
SIM_PAIR(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams_ptsz, SIM_READY,
         (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters),
         ((void)per_thread, instantiate_with(exec, graph, parameters)))

// Launches under way have their own copies of the work.
static CUresult destroy(CUgraphExec exec) {
    if (!sim_handle_is(exec, SIM_EXEC)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    drop_exec(exec);
    return CUDA_SUCCESS;
}

SIM_CALL(cuGraphExecDestroy, SIM_READY, (CUgraphExec exec), destroy(exec))

// ---- changing ----

struct CUgraphNode_st *sim_exec_node(CUgraphExec exec, CUgraphNode original) {
    if (!sim_handle_is(exec, SIM_EXEC)) {
        return NULL;
    }
    struct CUgraphNode_st *node = exec->graph->first;
    for (size_t i = 0; i < exec->originals.count; i++, node = node->next) {
        if (exec->originals.at[i] == original) {
            return node;
        }
    }
    return NULL;
}

// Node by node in order of making: the same kinds with as many needs.
static struct CUgraphNode_st *first_difference(const struct CUgraph_st *old,
                                               struct CUgraph_st *graph) {
    const struct CUgraphNode_st *was = old->first;
    for (struct CUgraphNode_st *n = graph->first; n != NULL; n = n->next, was = was->next) {
        if (was == NULL || was->type != n->type || was->needs.count != n->needs.count) {
            return n;
        }
    }
    return NULL;
}

static CUgraphExecUpdateResult update(CUgraphExec exec, CUgraph graph, CUgraphNode *bad) {
    *bad = first_difference(exec->graph, graph);
    if (*bad != NULL || exec->graph->count != graph->count) {
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    }
    struct CUgraph_st *copy = sim_graph_clone(graph);
    if (copy == NULL) {
        return CU_GRAPH_EXEC_UPDATE_ERROR;
    }
    sim_graph_drop(exec->graph);
    exec->graph = copy;
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static CUresult update_old(CUgraphExec exec, CUgraph graph, CUgraphNode *bad,
                           CUgraphExecUpdateResult *result) {
    CUgraphNode node = NULL;
    if (!sim_handle_is(exec, SIM_EXEC) || !sim_handle_is(graph, SIM_GRAPH)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUgraphExecUpdateResult outcome = update(exec, graph, &node);
    if (bad != NULL) {
        *bad = node;
    }
    if (result != NULL) {
        *result = outcome;
    }
    return outcome == CU_GRAPH_EXEC_UPDATE_SUCCESS ? CUDA_SUCCESS
                                                   : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

static CUresult update_new(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info) {
    if (info == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memset(info, 0, sizeof *info);
    return update_old(exec, graph, &info->errorNode, &info->result);
}

SIM_CALL(cuGraphExecUpdate, SIM_READY,
         (CUgraphExec exec, CUgraph graph, CUgraphNode *bad, CUgraphExecUpdateResult *result),
         update_old(exec, graph, bad, result))
SIM_CALL(cuGraphExecUpdate_v2, SIM_READY,
         (CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info),
         update_new(exec, graph, info))

static CUresult enable(CUgraphExec exec, CUgraphNode original, bool on) {
    struct CUgraphNode_st *node = sim_exec_node(exec, original);
    if (node == NULL || node->work == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    node->disabled = !on;
    return CUDA_SUCCESS;
}

static CUresult enabled(CUgraphExec exec, CUgraphNode original, unsigned *out) {
    const struct CUgraphNode_st *node = sim_exec_node(exec, original);
    if (node == NULL || out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = !node->disabled;
    return CUDA_SUCCESS;
}

static CUresult flags_of(CUgraphExec exec, cuuint64_t *flags) {
    if (!sim_handle_is(exec, SIM_EXEC) || flags == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = exec->flags;
    return CUDA_SUCCESS;
}

SIM_CALL(cuGraphNodeSetEnabled, SIM_READY, (CUgraphExec exec, CUgraphNode node, unsigned on),
         enable(exec, node, on != 0))
SIM_CALL(cuGraphNodeGetEnabled, SIM_READY, (CUgraphExec exec, CUgraphNode node, unsigned *on),
         enabled(exec, node, on))
SIM_CALL(cuGraphExecGetFlags, SIM_READY, (CUgraphExec exec, cuuint64_t *flags),
         flags_of(exec, flags))
