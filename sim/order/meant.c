// Which stream a handle means, and the threads' own default streams. Guarded by the lock.
#include "sim/order/meant.h"

#include "sim/base/counts.h"
#include "sim/base/handle.h"
#include "sim/base/lock.h"
#include "sim/device/context.h"
#include "sim/device/contexts.h"
#include "sim/device/thread.h"
#include "sim/order/green.h"
#include "sim/order/greens.h"
#include "sim/order/queue.h"
#include "sim/order/stream.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_key_t thread_key;
static pthread_once_t thread_key_once = PTHREAD_ONCE_INIT;

static void end_thread(void *argument) {
    struct sim_thread *thread = argument;
    sim_lock_take();
    for (size_t i = 0; i < thread->stream_count; i++) {
        if (!thread->streams[i]->closing) { // its context may have ended before
            sim_stream_close(thread->streams[i]);
        }
        sim_stream_release(thread->streams[i]);
    }
    sim_lock_give();
    free(thread->streams);
    thread->stream_count = 0;
    thread->streams = NULL;
}

static void make_thread_key(void) {
    pthread_key_create(&thread_key, end_thread);
}

static struct CUstream_st *thread_stream(struct CUctx_st *context) {
    struct sim_thread *self = sim_self();
    for (size_t i = 0; i < self->stream_count; i++) {
        if (self->streams[i]->context == context && !self->streams[i]->closing) {
            return self->streams[i];
        }
    }
    struct CUstream_st **grown =
        realloc(self->streams, (self->stream_count + 1) * sizeof(struct CUstream_st *));
    if (grown == NULL) {
        return NULL;
    }
    self->streams = grown;
    struct CUstream_st *stream = sim_stream_new(context, SIM_STREAM_THREAD, 0, 0);
    if (stream == NULL) {
        return NULL;
    }
    pthread_once(&thread_key_once, make_thread_key);
    pthread_setspecific(thread_key, self);
    sim_stream_hold(stream);
    self->streams[self->stream_count++] = stream;
    return stream;
}

// ---- which stream a handle means ----

static struct CUstream_st *default_stream(bool per_thread, CUresult *result) {
    struct CUctx_st *context = sim_current();
    if (context == NULL) {
        *result = CUDA_ERROR_INVALID_CONTEXT;
        return NULL;
    }
    const struct CUgreenCtx_st *green = sim_green_current();
    struct CUstream_st *own = green != NULL && !per_thread ? green->view.legacy : NULL;
    if (sim_handle_is(own, SIM_STREAM)) {
        *result = CUDA_SUCCESS;
        return own;
    }
    struct CUstream_st *stream = per_thread ? thread_stream(context) : context->legacy;
    *result = stream != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    return stream;
}

struct CUstream_st *sim_stream_of(CUstream handle, bool per_thread, CUresult *result) {
    if (handle == NULL) {
        return default_stream(per_thread, result);
    }
    if (handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
        return default_stream(handle == CU_STREAM_PER_THREAD, result);
    }
    if (!sim_handle_is(handle, SIM_STREAM)) {
        sim_counts.stale++;
        *result = CUDA_ERROR_INVALID_HANDLE;
        return NULL;
    }
    *result = sim_context_error(handle->context);
    return *result == CUDA_SUCCESS ? handle : NULL;
}
