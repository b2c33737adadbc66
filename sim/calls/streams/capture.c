// Beginning and ending captures, and what is told of them.
#include "sim/order/capture.h"
#include "sim/base/handle.h"
#include "sim/border/border.h"
#include "sim/calls/streams/newer.h"
#include "sim/device/context.h"
#include "sim/device/thread.h"
#include "sim/graph/nodes.h"
#include "sim/order/meant.h"
#include "sim/order/queue.h"

// ---- begin and end ----

static CUresult begin(CUstream handle, bool per_thread, CUstreamCaptureMode mode,
                      struct CUgraph_st *graph, const struct sim_nodes *tips,
                      struct sim_capture **out) {
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
    *out = sim_capture_begin(stream, mode, graph, tips);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult begin_plain(CUstream stream, bool per_thread, CUstreamCaptureMode mode) {
    struct sim_capture *capture = NULL;
    return begin(stream, per_thread, mode, NULL, NULL, &capture);
}

SIM_PAIR(cuStreamBeginCapture, cuStreamBeginCapture_ptsz, SIM_CURRENT, (CUstream stream),
         begin_plain(stream, per_thread, CU_STREAM_CAPTURE_MODE_GLOBAL))
SIM_PAIR(cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz, SIM_CURRENT,
         (CUstream stream, CUstreamCaptureMode mode), begin_plain(stream, per_thread, mode))

static CUresult begin_to_graph(CUstream stream, bool per_thread, CUgraph graph,
                               const CUgraphNode *nodes, size_t count, CUstreamCaptureMode mode) {
    struct sim_capture *capture = NULL;
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
        result = begin(stream, per_thread, mode, graph, &tips, &capture);
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
    struct sim_capture *capture = NULL;
    CUresult result = begin(stream, per_thread, mode, NULL, NULL, &capture);
    if (result == CUDA_SUCCESS) {
        capture->again = graph;
    }
    return result;
}

SIM_PAIR(cuStreamBeginRecaptureToGraph, cuStreamBeginRecaptureToGraph_ptsz, SIM_CURRENT,
         (CUstream stream, CUstreamCaptureMode mode, CUgraph graph, sim_recapture_callback callback,
          void *data),
         ((void)callback, (void)data, begin_again(stream, per_thread, mode, graph)))

// CUDA 13.1. What it bars is not documented: here what a relaxed one does.
static CUresult begin_graphics(CUstream stream, bool per_thread, const void *parameters) {
    if (parameters == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sim_current()->graphics) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    struct sim_capture *capture = NULL;
    CUresult result =
        begin(stream, per_thread, CU_STREAM_CAPTURE_MODE_RELAXED, NULL, NULL, &capture);
    if (result == CUDA_SUCCESS) {
        capture->graphics = true;
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
    sim_capture_abandon(capture);
    return result;
}

SIM_PAIR(cuStreamBeginCaptureToCig, cuStreamBeginCaptureToCig_ptsz, SIM_CURRENT,
         (CUstream stream, sim_cig_parameters parameters),
         begin_graphics(stream, per_thread, parameters))
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
    return begin_plain(stream, per_thread, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
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
    sim_capture_abandon(capture);
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
        return sim_capture_invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    }
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
        capture->thread != sim_capture_thread()) {
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    *out = NULL;
    if (capture->invalid || !joined(capture)) {
        result = capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                                  : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
        sim_capture_abandon(capture);
        return result;
    }
    if (capture->again != NULL) {
        return finish_again(capture, out);
    }
    *out = capture->graph;
    sim_capture_end(capture);
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
