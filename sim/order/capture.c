// Stream capture: work put into a capturing stream becomes a node of a graph instead of running.
//
// A capture begins in one stream and spreads by event waits. Calls that it cannot take answer with
// an error and invalidate it; an invalidated one lasts until it is ended in its first stream. What
// bars which thread is in sim_capture_bars, after the text of cuThreadExchangeStreamCaptureMode.
// Guarded by the lock.
#include "sim/order/capture.h"

#include "sim/device/context.h"
#include "sim/device/thread.h"
#include "sim/graph/nodes.h"
#include "sim/order/event.h"
#include "sim/order/queue.h"

#include <stdlib.h>

static struct sim_capture *captures;

unsigned long long sim_capture_thread(void) {
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

CUresult sim_capture_invalidate(struct sim_capture *capture, CUresult error) {
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

void sim_capture_end(struct sim_capture *capture) {
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

void sim_capture_abandon(struct sim_capture *capture) {
    if (!capture->borrowed) {
        sim_graph_drop(capture->graph);
    }
    sim_capture_end(capture);
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
        sim_capture_abandon(capture);
    } else {
        sim_capture_invalidate(capture, CUDA_SUCCESS);
        take_out(capture, stream);
    }
}

// ---- what a capture bars ----

static bool bars_this_thread(const struct sim_capture *capture) {
    const struct sim_thread *self = sim_self();
    if (self->mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
        return false;
    }
    if (capture->thread == sim_capture_thread()) {
        return capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    }
    return self->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
           capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult sim_capture_bars(void) {
    CUresult result = CUDA_SUCCESS;
    for (struct sim_capture *capture = captures; capture != NULL; capture = capture->next) {
        if (bars_this_thread(capture)) {
            result = sim_capture_invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        }
    }
    return result;
}

CUresult sim_capture_refuses_stream(struct CUstream_st *stream) {
    if (stream->capture != NULL) {
        return sim_capture_invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    return stream == stream->context->legacy ? sim_capture_refuses_legacy(stream->context)
                                             : CUDA_SUCCESS;
}

static CUresult refuse_all(struct CUctx_st *context, unsigned without, CUresult error) {
    CUresult result = CUDA_SUCCESS;
    for (struct CUstream_st *s = context->streams; s != NULL; s = s->next) {
        if (s->capture != NULL && (s->flags & without) == 0) {
            result = sim_capture_invalidate(s->capture, error);
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
    return capture != NULL ? sim_capture_invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
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
        return sim_capture_invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
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
        return sim_capture_invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    }
    if (stream->capture != NULL && stream->capture != capture) {
        sim_capture_invalidate(stream->capture, CUDA_SUCCESS);
        return sim_capture_invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
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
    return event->recorded
               ? sim_capture_invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION)
               : CUDA_SUCCESS;
}

struct sim_capture *sim_capture_begin(struct CUstream_st *stream, CUstreamCaptureMode mode,
                                      struct CUgraph_st *graph, const struct sim_nodes *tips) {
    static unsigned long long next_id = 1;
    struct sim_capture *capture = calloc(1, sizeof *capture);
    struct CUgraph_st *own = graph == NULL ? sim_graph_new() : NULL;
    if (capture == NULL || (graph == NULL && own == NULL)) {
        free(capture);
        return NULL;
    }
    *capture = (struct sim_capture){.next = captures,
                                    .id = next_id++,
                                    .thread = sim_capture_thread(),
                                    .mode = mode,
                                    .origin = stream,
                                    .graph = graph != NULL ? graph : own,
                                    .borrowed = graph != NULL};
    captures = capture;
    if (!enter(capture, stream) || (tips != NULL && !sim_nodes_join(&stream->tips, tips))) {
        sim_capture_abandon(capture);
        return NULL;
    }
    return capture;
}
