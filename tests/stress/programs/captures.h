/*
 * Captures, going on and invalidated, that end at once or stay open, and graphs: parts of others,
 * with memory of their own, launched as long as their block lives.
 */
#ifndef BFC_TESTS_STRESS_CAPTURES
#define BFC_TESTS_STRESS_CAPTURES

#include "tests/stress/programs/blocks.h"

/* ---- captures ---- */

/* A mode in which the thread may allocate while it captures. */
static CUstreamCaptureMode draw_mode(struct worker *worker) {
    static const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_RELAXED,
                                                CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                                CU_STREAM_CAPTURE_MODE_GLOBAL};
    return modes[worker->relaxed ? below(worker, has_global ? 3 : 2) : 0];
}

static CUgraph finish_capture(CUstream captured) {
    CUgraph graph = NULL;
    MUST(end_capture(captured, &graph));
    return graph;
}

/* Allocates and frees while the thread captures. */
static void replace_block(struct worker *worker, struct block *block, struct block *fresh) {
    struct block *victim = any(worker);
    if (victim != block && side_of(victim->stream) == victim->side) {
        drop_graph(victim);
        forget_import(worker, victim, true);
        give(worker, victim->start, victim->side);
        *victim = *fresh;
    } else {
        worker->blocks[worker->count++] = *fresh;
    }
}

/* Work on one block becomes a graph; blocks are allocated and freed meanwhile. */
static void capture(struct worker *worker, struct block *block) {
    CUgraphExec ready;
    if (block->side != 0 || worker->count == BLOCKS)
        return;
    int stream = (int)below(worker, CREATED);
    CUstream captured = use(worker, block, stream);
    CUstreamCaptureMode mode = draw_mode(worker);
    MUST(begin_capture(captured, mode));
    struct block fresh = {.bytes = draw_size(worker), .stream = stream};
    fresh.start = take(worker, fresh.bytes);
    add_words(worker, block, stream);
    write_all(worker, &fresh, stream);
    add_words(worker, &fresh, stream);
    replace_block(worker, block, &fresh);
    CUgraph graph = finish_capture(captured);
    enter(worker, 0);
    MUST(cuGraphInstantiateWithFlags(&ready, graph, 0));
    for (unsigned i = 1 + below(worker, 2); i > 0; i--)
        MUST(cuGraphLaunch(ready, captured));
    MUST(cuGraphExecDestroy(ready));
    MUST(cuGraphDestroy(graph));
}

/* The graph as a part of another one, once or twice. */
static CUgraph nest_graph(struct worker *worker, CUgraph inner) {
    CUgraph outer;
    CUgraphNode first, second;
    MUST(cuGraphCreate(&outer, 0));
    MUST(cuGraphAddChildGraphNode(&first, outer, NULL, 0, inner));
    if (below(worker, 2))
        MUST(cuGraphAddChildGraphNode(&second, outer, &first, 1, inner));
    MUST(cuGraphDestroy(inner));
    return outer;
}

/* Work on the block becomes a graph that stays with it. */
static void keep_graph(struct worker *worker, struct block *block) {
    CUstream captured = use(worker, block, (int)below(worker, CREATED));
    CUstreamCaptureMode mode = draw_mode(worker);
    MUST(begin_capture(captured, mode));
    add_words(worker, block, block->stream);
    CUgraph graph = finish_capture(captured);
    if (below(worker, 2))
        graph = nest_graph(worker, graph);
    MUST(cuGraphInstantiateWithFlags(&block->graph, graph, 0));
    if (below(worker, 2))
        MUST(cuGraphUpload(block->graph, captured));
    MUST(cuGraphDestroy(graph));
}

static void use_graph(struct worker *worker, struct block *block) {
    if (block->side != 0 || !has_scene("graph"))
        return;
    if (!block->graph)
        keep_graph(worker, block);
    CUstream stream = use(worker, block, draw_stream(worker, 0));
    worker->operations++;
    MUST(cuGraphLaunch(block->graph, stream));
}

static void copy_here(struct worker *worker, const struct block *to, const struct block *from) {
    unsigned long long target = address(to->start), source = address(from->start),
                       bytes = to->bytes;
    if (below(worker, 2)) {
        run(worker, to->stream, COPY, (void *[]){&target, &source, &bytes});
        return;
    }
    copy_plainly(worker, target, source, bytes, to->stream);
}

/* There and back, with work on what is there. */
static void work_elsewhere(struct worker *worker, struct block *block, void *start) {
    struct block there = {start, block->bytes, block->stream, block->side, NULL};
    copy_here(worker, &there, block);
    add_words(worker, &there, block->stream);
    copy_here(worker, block, &there);
}

/* The addresses that a graph will have when it runs, and the node that provides them. */
static CUdeviceptr add_memory(CUgraph graph, CUgraphNode *node, size_t bytes) {
    CUDA_MEM_ALLOC_NODE_PARAMS wanted = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
        .bytesize = bytes};
    MUST(cuGraphAddMemAllocNode(node, graph, NULL, 0, &wanted));
    return wanted.dptr;
}

/* A graph that works on the block with memory of its own. */
static CUgraph graph_with_memory(struct worker *worker, struct block *block, CUdeviceptr *inner,
                                 bool frees) {
    CUgraph graph;
    CUgraphNode taken, used, freed;
    CUstream captured = use(worker, block, (int)below(worker, CREATED));
    CUstreamCaptureMode mode = draw_mode(worker);
    MUST(cuGraphCreate(&graph, 0));
    *inner = add_memory(graph, &taken, block->bytes);
    MUST(begin_capture(captured, mode));
    work_elsewhere(worker, block, pointer_to(*inner));
    CUgraph work = finish_capture(captured);
    MUST(cuGraphAddChildGraphNode(&used, graph, &taken, 1, work));
    MUST(cuGraphDestroy(work));
    if (frees)
        MUST(cuGraphAddMemFreeNode(&freed, graph, &used, 1, *inner));
    return graph;
}

/* The graph frees its memory, or the program does after it. That is the first device's. */
static void use_graph_memory(struct worker *worker, struct block *block) {
    CUgraphExec ready;
    CUdeviceptr inner;
    CUdevice device;
    enter(worker, 0);
    MUST(cuCtxGetDevice(&device));
    if (block->side != 0 || device != 0 || !has_scene("graph") || !has_scene("past"))
        return;
    bool frees = below(worker, 2);
    CUgraph graph = graph_with_memory(worker, block, &inner, frees);
    CUstream stream = worker->streams[block->stream];
    MUST(cuGraphInstantiateWithFlags(&ready, graph, 0));
    for (unsigned i = frees ? 1 + below(worker, 2) : 1; i > 0; i--)
        MUST(cuGraphLaunch(ready, stream));
    if (!frees)
        MUST(cuMemFreeAsync(inner, stream));
    MUST(cuGraphExecDestroy(ready));
    MUST(cuGraphDestroy(graph));
}

static void set_mode(CUstreamCaptureMode mode) {
    MUST(cuThreadExchangeStreamCaptureMode(&mode));
}

/* An allocation or a free that the thread's own capture bars: it fails, and the capture with it. */
static void break_capture(struct worker *worker, struct block *block, CUstream captured) {
    void *unwanted = NULL;
    bool global = has_global && below(worker, 2);
    bring_home(worker, block);
    enter(worker, 0);
    MUST(begin_capture(captured, global ? CU_STREAM_CAPTURE_MODE_GLOBAL
                                        : CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    set_mode(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    size_t bytes = draw_size(worker);
    if (below(worker, 2))
        ANSWERS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, allocate(&unwanted, bytes));
    else
        ANSWERS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, release(block->start));
}

static void break_and_end(struct worker *worker, struct block *block) {
    CUgraph graph;
    CUstream captured = worker->streams[below(worker, CREATED)];
    if (!worker->relaxed || worker->open != NONE)
        return;
    break_capture(worker, block, captured);
    ANSWERS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end_capture(captured, &graph));
    set_mode(CU_STREAM_CAPTURE_MODE_RELAXED);
}

/* A capture stays open: it goes on, or was invalidated. */
static void begin_open(struct worker *worker, struct block *block) {
    CUstream captured = worker->streams[CAPTURER];
    unsigned kind = below(worker, 3);
    if (kind == 1 && !worker->relaxed)
        kind = 2;
    worker->open = kind ? SPOILT : GOING;
    if (kind == 1) {
        break_capture(worker, block, captured);
        set_mode(CU_STREAM_CAPTURE_MODE_RELAXED);
        return;
    }
    CUstreamCaptureMode mode = draw_mode(worker);
    enter(worker, 0);
    MUST(begin_capture(captured, mode));
    if (kind == 2)
        ANSWERS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(captured));
}

/* It is ended, or ends with its stream. */
static void end_open(struct worker *worker) {
    CUgraph graph = NULL;
    CUstream captured = worker->streams[CAPTURER];
    enter(worker, 0);
    if (below(worker, 2)) {
        MUST(cuStreamDestroy(captured));
        worker->streams[CAPTURER] = fresh_stream(worker, CAPTURER);
    } else if (worker->open == GOING) {
        graph = finish_capture(captured);
        MUST(cuGraphDestroy(graph));
    } else {
        ANSWERS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end_capture(captured, &graph));
    }
    worker->open = NONE;
}

static void change_open(struct worker *worker, struct block *block) {
    if (!has_scene("open"))
        return;
    if (worker->open == NONE)
        begin_open(worker, block);
    else
        end_open(worker);
}

#endif
