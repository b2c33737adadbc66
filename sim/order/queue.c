// A stream as a queue of work, counted by those who hold it. Guarded by the lock.
#include "sim/order/queue.h"

#include "sim/base/handle.h"
#include "sim/device/context.h"
#include "sim/graph/nodes.h"

#include <pthread.h>
#include <stdlib.h>

void sim_stream_hold(struct CUstream_st *stream) {
    stream->references++;
}

void sim_stream_release(struct CUstream_st *stream) {
    if (--stream->references == 0) {
        pthread_cond_destroy(&stream->wake);
        sim_nodes_drop(&stream->tips);
        free(stream);
    }
}

bool sim_stream_idle(const struct CUstream_st *stream) {
    return stream->done == stream->submitted;
}

struct CUstream_st *sim_stream_new(struct CUctx_st *context, enum sim_stream_kind kind,
                                   unsigned flags, int priority) {
    static unsigned long long next_id = 1;
    struct CUstream_st *stream = calloc(1, sizeof *stream);
    if (stream == NULL || !sim_handle_add(stream, SIM_STREAM)) {
        free(stream);
        return NULL;
    }
    stream->context = context;
    stream->kind = kind;
    stream->flags = flags;
    stream->priority = priority;
    stream->id = next_id++;
    stream->references = 1;
    stream->tail = &stream->head;
    pthread_cond_init(&stream->wake, NULL);
    stream->next = context->streams;
    context->streams = stream;
    return stream;
}

void sim_stream_leave_context(struct CUstream_st *stream) {
    if (stream->context == NULL) {
        return;
    }
    struct CUstream_st **link = &stream->context->streams;
    while (*link != stream) {
        link = &(*link)->next;
    }
    *link = stream->next;
    stream->context = NULL;
}
