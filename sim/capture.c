// Stream capture: work put into a capturing stream becomes a node of a graph instead of running.
//
// A capture begins in one stream and spreads by event waits. Calls that it cannot take answer with
// an error and invalidate it; an invalidated one lasts until it is ended in its first stream. What
// bars which thread is in sim_capture_bars, after the text of cuThreadExchangeStreamCaptureMode.
// Guarded by the lock.
#include "sim/sim.h"

#include <stdlib.h>

struct sim_capture {
    struct sim_capture *next;
    unsigned long long id;
    unsigned long long thread; // that began it
    CUstreamCaptureMode mode;
    struct CUstream_st *origin;
    struct CUgraph_st *graph;
    bool borrowed; // the graph is the program's
    bool invalid;
    bool graphics;            // for a graphics API's command list: nothing is launched from here
    struct CUgraph_st *again; // the program's graph that is captured anew; or NULL
    struct CUstream_st **streams; // that take part, counted
    size_t count;
};

static struct sim_capture *captures;

static unsigned long long thread_id(void) {
    static unsigned long long next_id = 1;
    struct sim_thread *self = sim_self();
    if (self->id == 0) {
        self->id = next_id++;
    }
    return self->id;
}

static struct sim_capture *find(unsigned long long id) {
    struct sim_capture *capture = captures;
    while (capture != NULL && capture->id != id) {
        capture = capture->next;
    }
    return capture;
}

bool sim_capturing(const struct CUstream_st *stream) {
    return stream->capture != NULL;
}

static CUresult invalidate(struct sim_capture *capture, CUresult error) {
    capture->invalid = true;
    return error;
}

// ---- who takes part ----

static bool enter(struct sim_capture *capture, struct CUstream_st *stream) {
    struct CUstream_st **grown =
        realloc(capture->streams, (capture->count + 1) * sizeof *capture->streams);
    if (grown == NULL) {
        return false;
    }
    capture->streams = grown;
    capture->streams[capture->count++] = stream;
    sim_stream_hold(stream);
    stream->capture = capture;
    return true;
}

static void leave(struct CUstream_st *stream) {
    stream->capture = NULL;
    sim_nodes_drop(&stream->tips);
    sim_stream_release(stream);
}

static void end(struct sim_capture *capture) {
    struct sim_capture **link = &captures;
    while (*link != capture) {
        link = &(*link)->next;
    }
    *link = capture->next;
    for (size_t i = 0; i < capture->count; i++) {
        leave(capture->streams[i]);
    }
    free(capture->streams);
    free(capture);
}

static void abandon(struct sim_capture *capture) {
    if (!capture->borrowed) {
        sim_graph_drop(capture->graph);
    }
    end(capture);
}

static void take_out(struct sim_capture *capture, struct CUstream_st *stream) {
    size_t i = 0;
    while (capture->streams[i] != stream) {
        i++;
    }
    capture->streams[i] = capture->streams[--capture->count];
    leave(stream);
}

// A destroyed stream takes the capture that began in it along; one that spread to it is broken.
void sim_capture_stream_end(struct CUstream_st *stream) {
    struct sim_capture *capture = stream->capture;
    if (capture == NULL) {
        return;
    }
    if (capture->origin == stream) {
        abandon(capture);
    } else {
        invalidate(capture, CUDA_SUCCESS);
        take_out(capture, stream);
    }
}

// ---- what a capture bars ----

static bool bars_this_thread(const struct sim_capture *capture) {
    const struct sim_thread *self = sim_self();
    if (self->mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
        return false;
    }
    if (capture->thread == thread_id()) {
        return capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    }
    return self->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
           capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult sim_capture_bars(void) {
    CUresult result = CUDA_SUCCESS;
    for (struct sim_capture *capture = captures; capture != NULL; capture = capture->next) {
        if (bars_this_thread(capture)) {
            result = invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        }
    }
    return result;
}

CUresult sim_capture_refuses_stream(struct CUstream_st *stream) {
    if (stream->capture != NULL) {
        return invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    return stream == stream->context->legacy ? sim_capture_refuses_legacy(stream->context)
                                             : CUDA_SUCCESS;
}

static CUresult refuse_all(struct CUctx_st *context, unsigned without, CUresult error) {
    CUresult result = CUDA_SUCCESS;
    for (struct CUstream_st *s = context->streams; s != NULL; s = s->next) {
        if (s->capture != NULL && (s->flags & without) == 0) {
            result = invalidate(s->capture, error);
        }
    }
    return result;
}

CUresult sim_capture_refuses_context(struct CUctx_st *context) {
    return captures == NULL ? CUDA_SUCCESS
                            : refuse_all(context, 0, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CUresult sim_capture_refuses_legacy(struct CUctx_st *context) {
    return captures == NULL
               ? CUDA_SUCCESS
               : refuse_all(context, CU_STREAM_NON_BLOCKING, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

CUresult sim_capture_refuses_event(const struct CUevent_st *event) {
    struct sim_capture *capture = find(event->captured_in);
    return capture != NULL ? invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
                           : CUDA_ERROR_CAPTURED_EVENT;
}

// ---- work becomes nodes ----

struct CUgraphNode_st *sim_capture_node(struct CUstream_st *stream, CUgraphNodeType type,
                                        struct sim_work *work, CUresult *result) {
    struct sim_capture *capture = stream->capture;
    if (capture->invalid) {
        if (work != NULL) {
            work->type->drop(work);
        }
        *result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        return NULL;
    }
    struct CUgraphNode_st *node =
        sim_node_new(capture->graph, type, work, stream->tips.at, stream->tips.count);
    sim_nodes_drop(&stream->tips);
    if (node == NULL || !sim_nodes_add(&stream->tips, node)) {
        *result = CUDA_ERROR_OUT_OF_MEMORY;
        return NULL;
    }
    *result = CUDA_SUCCESS;
    return node;
}

CUresult sim_capture_add(struct CUstream_st *stream, struct sim_work *work) {
    CUresult result = CUDA_SUCCESS;
    if (work->type->clone == NULL) {
        work->type->drop(work);
        return invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    sim_capture_node(stream, work->type->node, work, &result);
    return result;
}

CUresult sim_capture_add_event(struct CUstream_st *stream, CUgraphNodeType type,
                               struct CUevent_st *event) {
    CUresult result = CUDA_SUCCESS;
    struct CUgraphNode_st *node = sim_capture_node(stream, type, NULL, &result);
    if (node != NULL) {
        node->event = event;
    }
    return result;
}

CUresult sim_capture_add_child(struct CUstream_st *stream, struct CUgraph_st *child) {
    CUresult result = CUDA_SUCCESS;
    struct CUgraphNode_st *node = sim_capture_node(stream, CU_GRAPH_NODE_TYPE_GRAPH, NULL, &result);
    if (node != NULL) {
        node->child = child;
    } else {
        sim_graph_drop(child);
    }
    return result;
}

CUresult sim_capture_record(struct CUevent_st *event, struct CUstream_st *stream) {
    if (stream->capture->invalid) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    event->recorded = true;
    event->captured_in = stream->capture->id;
    return sim_nodes_join(&event->tips, &stream->tips) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

// The stream follows the event into its capture, or is in it already.
static CUresult follow(struct CUstream_st *stream, struct CUevent_st *event) {
    struct sim_capture *capture = find(event->captured_in);
    if (capture == NULL) {
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    if (capture->invalid) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    if (stream == stream->context->legacy) {
        return invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    }
    if (stream->capture != NULL && stream->capture != capture) {
        invalidate(stream->capture, CUDA_SUCCESS);
        return invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    bool joined = stream->capture != NULL || enter(capture, stream);
    return joined && sim_nodes_join(&stream->tips, &event->tips) ? CUDA_SUCCESS
                                                                 : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_capture_wait(struct CUstream_st *stream, struct CUevent_st *event) {
    if (event->captured_in != 0) {
        return follow(stream, event);
    }
    if (stream->capture->invalid) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    return event->recorded ? invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION)
                           : CUDA_SUCCESS;
}

// ---- begin and end ----

static CUresult begin(CUstream handle, bool per_thread, CUstreamCaptureMode mode,
                      struct CUgraph_st *graph, const struct sim_nodes *tips) {
    static unsigned long long next_id = 1;
    CUresult result = CUDA_SUCCESS;
    struct CUstream_st *stream = sim_stream_of(handle, per_thread, &result);
    if (stream == NULL) {
        return result;
    }
    if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (stream == stream->context->legacy) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (stream->capture != NULL) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    struct sim_capture *capture = calloc(1, sizeof *capture);
    struct CUgraph_st *own = graph == NULL ? sim_graph_new() : NULL;
    if (capture == NULL || (graph == NULL && own == NULL)) {
        free(capture);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *capture = (struct sim_capture){.next = captures,
                                    .id = next_id++,
                                    .thread = thread_id(),
                                    .mode = mode,
                                    .origin = stream,
                                    .graph = graph != NULL ? graph : own,
                                    .borrowed = graph != NULL};
    captures = capture;
    if (!enter(capture, stream) || (tips != NULL && !sim_nodes_join(&stream->tips, tips))) {
        abandon(capture);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

SIM_PAIR(cuStreamBeginCapture, cuStreamBeginCapture_ptsz, SIM_CURRENT, (CUstream stream),
         begin(stream, per_thread, CU_STREAM_CAPTURE_MODE_GLOBAL, NULL, NULL))
SIM_PAIR(cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz, SIM_CURRENT,
         (CUstream stream, CUstreamCaptureMode mode), begin(stream, per_thread, mode, NULL, NULL))

static CUresult begin_to_graph(CUstream stream, bool per_thread, CUgraph graph,
                               const CUgraphNode *nodes, size_t count, CUstreamCaptureMode mode) {
    struct sim_nodes tips = {0};
    if (!sim_handle_is(graph, SIM_GRAPH) || (count > 0 && nodes == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        bool known = sim_handle_is(nodes[i], SIM_NODE) && nodes[i]->graph == graph;
        result = !known                           ? CUDA_ERROR_INVALID_VALUE
                 : sim_nodes_add(&tips, nodes[i]) ? CUDA_SUCCESS
                                                  : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result == CUDA_SUCCESS) {
        result = begin(stream, per_thread, mode, graph, &tips);
    }
    sim_nodes_drop(&tips);
    return result;
}

SIM_PAIR(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph_ptsz, SIM_CURRENT,
         (CUstream stream, CUgraph graph, const CUgraphNode *nodes, const CUgraphEdgeData *edges,
          size_t count, CUstreamCaptureMode mode),
         edges != NULL ? CUDA_ERROR_NOT_SUPPORTED
                       : begin_to_graph(stream, per_thread, graph, nodes, count, mode))

// ---- calls newer than 13.0 ----

// CUDA 13.3. The callback would be asked about other parameters of a node; here all are taken.
static CUresult begin_again(CUstream stream, bool per_thread, CUstreamCaptureMode mode,
                            CUgraph graph) {
    if (!sim_handle_is(graph, SIM_GRAPH)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = begin(stream, per_thread, mode, NULL, NULL);
    if (result == CUDA_SUCCESS) {
        captures->again = graph;
    }
    return result;
}

SIM_PAIR(cuStreamBeginRecaptureToGraph, cuStreamBeginRecaptureToGraph_ptsz, SIM_CURRENT,
         (CUstream stream, CUstreamCaptureMode mode, CUgraph graph, void *callback, void *data),
         ((void)callback, (void)data, begin_again(stream, per_thread, mode, graph)))

// CUDA 13.1. What it bars is not documented: here what a relaxed one does.
static CUresult begin_graphics(CUstream stream, bool per_thread, const void *parameters) {
    if (parameters == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sim_current()->graphics) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    CUresult result = begin(stream, per_thread, CU_STREAM_CAPTURE_MODE_RELAXED, NULL, NULL);
    if (result == CUDA_SUCCESS) {
        captures->graphics = true;
    }
    return result;
}

static CUresult finish_graphics(CUstream handle, bool per_thread) {
    CUresult result = CUDA_SUCCESS;
    struct CUstream_st *stream = sim_stream_of(handle, per_thread, &result);
    if (stream == NULL) {
        return result;
    }
    struct sim_capture *capture = stream->capture;
    if (capture == NULL || !capture->graphics || capture->origin != stream) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    result = capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    abandon(capture);
    return result;
}

SIM_PAIR(cuStreamBeginCaptureToCig, cuStreamBeginCaptureToCig_ptsz, SIM_CURRENT,
         (CUstream stream, void *parameters), begin_graphics(stream, per_thread, parameters))
SIM_PAIR(cuStreamEndCaptureToCig, cuStreamEndCaptureToCig_ptsz, SIM_CURRENT, (CUstream stream),
         finish_graphics(stream, per_thread))

// Of no driver: for tests of what is newer than they are. Begins a thread-local capture if its
// other arguments arrive as they must be: 1 to 9.
static CUresult begin_unheard_of(CUstream stream, bool per_thread, const uint64_t words[9]) {
    for (uint64_t i = 0; i < 9; i++) {
        if (words[i] != i + 1) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return begin(stream, per_thread, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, NULL, NULL);
}

SIM_PAIR(cuStreamBeginUnheardOfCapture, cuStreamBeginUnheardOfCapture_ptsz, SIM_CURRENT,
         (CUstream stream, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f,
          uint64_t g, uint64_t h, uint64_t i),
         begin_unheard_of(stream, per_thread, (uint64_t[]){a, b, c, d, e, f, g, h, i}))

// Whether all that other streams captured leads back to the first stream.
static bool joined(const struct sim_capture *capture) {
    sim_graph_mark(capture->graph, &capture->origin->tips);
    for (size_t i = 0; i < capture->count; i++) {
        const struct sim_nodes *tips = &capture->streams[i]->tips;
        for (size_t j = 0; j < tips->count; j++) {
            if (tips->at[j]->mark == 0) {
                return false;
            }
        }
    }
    return true;
}

// The nodes must be those of before, made in the same order; they do what was captured last.
static CUresult finish_again(struct sim_capture *capture, CUgraph *out) {
    struct CUgraph_st *graph = capture->again;
    struct CUgraphNode_st *old = graph->first, *new = capture->graph->first;
    while (old != NULL && new != NULL && old->type == new->type) {
        struct sim_work *work = old->work;
        old->work = new->work;
        new->work = work;
        old = old->next;
        new = new->next;
    }
    bool same = old == NULL && new == NULL;
    abandon(capture);
    *out = same ? graph : NULL;
    return same ? CUDA_SUCCESS : (CUresult)SIM_ERROR_GRAPH_RECAPTURE_FAILURE;
}

static CUresult finish(CUstream handle, bool per_thread, CUgraph *out) {
    CUresult result = CUDA_SUCCESS;
    struct CUstream_st *stream = sim_stream_of(handle, per_thread, &result);
    if (stream == NULL || out == NULL) {
        return stream == NULL ? result : CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_capture *capture = stream->capture;
    if (capture == NULL || capture->graphics) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    if (capture->origin != stream) {
        return invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    }
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != thread_id()) {
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    *out = NULL;
    if (capture->invalid || !joined(capture)) {
        result = capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                                  : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
        abandon(capture);
        return result;
    }
    if (capture->again != NULL) {
        return finish_again(capture, out);
    }
    *out = capture->graph;
    end(capture);
    return CUDA_SUCCESS;
}

SIM_PAIR(cuStreamEndCapture, cuStreamEndCapture_ptsz, SIM_CURRENT,
         (CUstream stream, CUgraph *graph), finish(stream, per_thread, graph))

// ---- what is under way ----

static CUstreamCaptureStatus status_of(const struct CUstream_st *stream) {
    return stream->capture == NULL || stream->capture->graphics ? CU_STREAM_CAPTURE_STATUS_NONE
           : stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                      : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

struct wanted {
    CUstreamCaptureStatus *status;
    cuuint64_t *id;
    CUgraph *graph;
    const CUgraphNode **tips;
    size_t *count;
};

static void tell(const struct CUstream_st *stream, const struct wanted *wanted) {
    if (wanted->id != NULL) {
        *wanted->id = stream->capture->id;
    }
    if (wanted->graph != NULL) {
        *wanted->graph = stream->capture->graph;
    }
    if (wanted->tips != NULL) {
        *wanted->tips = stream->tips.at;
    }
    if (wanted->count != NULL) {
        *wanted->count = stream->tips.count;
    }
}

static bool blocking_capture(const struct CUctx_st *context) {
    const struct CUstream_st *stream = context->streams;
    while (stream != NULL &&
           (stream->capture == NULL || (stream->flags & CU_STREAM_NON_BLOCKING) != 0)) {
        stream = stream->next;
    }
    return stream != NULL;
}

static CUresult info(CUstream handle, bool per_thread, struct wanted wanted) {
    CUresult result = CUDA_SUCCESS;
    struct CUstream_st *stream = sim_stream_of(handle, per_thread, &result);
    if (stream == NULL || wanted.status == NULL) {
        return stream == NULL ? result : CUDA_ERROR_INVALID_VALUE;
    }
    // Asking is refused too, but invalidates nothing.
    if (stream == stream->context->legacy && blocking_capture(stream->context)) {
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    *wanted.status = status_of(stream);
    if (*wanted.status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        tell(stream, &wanted);
    }
    return CUDA_SUCCESS;
}

SIM_PAIR(cuStreamIsCapturing, cuStreamIsCapturing_ptsz, SIM_CURRENT,
         (CUstream stream, CUstreamCaptureStatus *status),
         info(stream, per_thread, (struct wanted){.status = status}))
SIM_PAIR(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_ptsz, SIM_CURRENT,
         (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id),
         info(stream, per_thread, (struct wanted){.status = status, .id = id}))
SIM_PAIR(cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2_ptsz, SIM_CURRENT,
         (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
          const CUgraphNode **tips, size_t *count),
         info(stream, per_thread, (struct wanted){status, id, graph, tips, count}))

static CUresult info_with_edges(CUstream stream, bool per_thread, struct wanted wanted,
                                const CUgraphEdgeData **edges) {
    if (edges != NULL) {
        *edges = NULL; // all edges are plain
    }
    return info(stream, per_thread, wanted);
}

SIM_PAIR(cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo_v3_ptsz, SIM_CURRENT,
         (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
          const CUgraphNode **tips, const CUgraphEdgeData **edges, size_t *count),
         info_with_edges(stream, per_thread, (struct wanted){status, id, graph, tips, count},
                         edges))

static CUresult update_tips(CUstream handle, bool per_thread, CUgraphNode *nodes, size_t count,
                            unsigned flags) {
    CUresult result = CUDA_SUCCESS;
    struct CUstream_st *stream = sim_stream_of(handle, per_thread, &result);
    if (stream == NULL) {
        return result;
    }
    if (stream->capture == NULL || stream->capture->invalid) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (count > 0 && nodes == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
        sim_nodes_drop(&stream->tips);
    }
    for (size_t i = 0; i < count; i++) {
        if (!sim_handle_is(nodes[i], SIM_NODE) || !sim_nodes_add(&stream->tips, nodes[i])) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

SIM_PAIR(cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies_ptsz, SIM_CURRENT,
         (CUstream stream, CUgraphNode *nodes, size_t count, unsigned flags),
         update_tips(stream, per_thread, nodes, count, flags))
SIM_PAIR(cuStreamUpdateCaptureDependencies_v2, cuStreamUpdateCaptureDependencies_v2_ptsz,
         SIM_CURRENT,
         (CUstream stream, CUgraphNode *nodes, const CUgraphEdgeData *edges, size_t count,
          unsigned flags),
         edges != NULL ? CUDA_ERROR_NOT_SUPPORTED
                       : update_tips(stream, per_thread, nodes, count, flags))

static CUresult exchange(CUstreamCaptureMode *mode) {
    struct sim_thread *self = sim_self();
    if (mode == NULL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUstreamCaptureMode before = self->mode;
    self->mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

SIM_CALL(cuThreadExchangeStreamCaptureMode, SIM_READY, (CUstreamCaptureMode * mode), exchange(mode))
