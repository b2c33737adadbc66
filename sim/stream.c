// Streams: queues of work, each done later, in order, by its own thread.
//
// A piece of work begins when the one before it in its stream is done and its marks are complete;
// with SIM_SEED a pause drawn from the seed, the stream and the number comes first. The legacy
// default stream waits for, and is waited for by, all blocking streams of its context. With
// SIM_STEP there are no threads, and step.c says who does the work. A destroyed stream finishes its
// work before it goes. Work is O(1) to submit apart from the legacy stream's (O(streams)). Guarded
// by the lock, except while a piece of work runs.
#include "sim/kernel.h"
#include "sim/sim.h"

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

static void leave_context(struct CUstream_st *stream) {
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

// The handle dies now; the stream itself when its work is done.
void sim_stream_close(struct CUstream_st *stream) {
    sim_handle_remove(stream);
    sim_capture_stream_end(stream);
    stream->closing = true;
    if (stream->worker) {
        pthread_cond_signal(&stream->wake);
    } else {
        leave_context(stream);
        sim_stream_release(stream);
    }
}

// ---- the worker ----

static void delay(const struct CUstream_st *stream, const struct sim_work *work) {
    if (sim_options.seed == 0) {
        return;
    }
    uint64_t draw = sim_mix(sim_options.seed ^ sim_mix(stream->id << 32 | work->number));
    // Mostly none, sometimes long: what makes orders differ between streams.
    if (draw % 4 == 0) {
        sim_pause((unsigned)(sim_mix(draw) % (sim_options.delay_us + 1)));
    }
}

bool sim_stream_work(struct CUstream_st *stream) {
    struct sim_work *work = stream->head;
    sim_self()->running = work->context;
    sim_lock_give();
    CUresult result = work->type->run(work);
    sim_lock_take();
    sim_self()->running = NULL;
    if (result == (CUresult)SIM_AGAIN) {
        return false;
    }
    stream->head = work->next;
    if (stream->head == NULL) {
        stream->tail = &stream->head;
    }
    stream->done = work->number;
    if (result != CUDA_SUCCESS) {
        sim_context_fail(work->context, result);
    }
    sim_marks_drop(&work->waits);
    work->type->drop(work);
    sim_progress_broadcast();
    return true;
}

static void do_work(struct CUstream_st *stream) {
    while (!sim_marks_complete(&stream->head->waits)) {
        sim_progress_wait();
    }
    sim_lock_give();
    delay(stream, stream->head);
    sim_lock_take();
    sim_stream_work(stream);
}

static void *serve(void *argument) {
    struct CUstream_st *stream = argument;
    sim_lock_take();
    while (stream->head != NULL || !stream->closing) {
        if (stream->head == NULL) {
            sim_sleep_on(&stream->wake);
        } else {
            do_work(stream);
        }
    }
    leave_context(stream);
    sim_stream_release(stream);
    sim_lock_give();
    return NULL;
}

void sim_stream_rest(struct CUstream_st *stream) {
    stream->worker = false;
    if (stream->closing) {
        leave_context(stream);
        sim_stream_release(stream);
    }
}

static bool start_worker(struct CUstream_st *stream) {
    stream->worker = stream->worker || (sim_options.step != 0 ? sim_step_begin(stream)
                                                              : sim_thread_start(serve, stream));
    return stream->worker;
}

// ---- submitting ----

static void wait_for_blocking(struct CUstream_st *stream, struct sim_marks *waits) {
    for (struct CUstream_st *other = stream->context->streams; other != NULL; other = other->next) {
        if (other != stream && !(other->flags & CU_STREAM_NON_BLOCKING)) {
            sim_marks_add(waits, other, other->submitted);
        }
    }
}

static void implicit_waits(struct CUstream_st *stream, struct sim_marks *waits) {
    struct CUctx_st *context = stream->context;
    sim_marks_complete(&context->barrier);
    sim_marks_join(waits, &context->barrier);
    if (stream->green != NULL) {
        sim_marks_join(waits, sim_green_barrier(stream->green));
    }
    if (stream == context->legacy) {
        wait_for_blocking(stream, waits);
    } else if (!(stream->flags & CU_STREAM_NON_BLOCKING) && context->legacy != NULL) {
        sim_marks_add(waits, context->legacy, context->legacy->submitted);
    }
}

CUresult sim_submit(struct CUstream_st *stream, struct sim_work *work) {
    if (stream->capture != NULL) {
        return sim_capture_add(stream, work);
    }
    if (stream == stream->context->legacy) {
        CUresult result = sim_capture_refuses_legacy(stream->context);
        if (result != CUDA_SUCCESS) {
            work->type->drop(work);
            return result;
        }
    }
    if (!start_worker(stream)) {
        work->type->drop(work);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    implicit_waits(stream, &work->waits);
    work->context = stream->context;
    work->number = ++stream->submitted;
    work->next = NULL;
    *stream->tail = work;
    stream->tail = &work->next;
    pthread_cond_signal(&stream->wake);
    return CUDA_SUCCESS;
}

CUresult sim_stream_finish(struct CUstream_st *stream) {
    struct CUctx_st *context = stream->context;
    struct sim_marks marks = {0};
    sim_marks_add(&marks, stream, stream->submitted);
    sim_wait(&marks);
    return sim_context_error(context);
}

// ---- which stream a handle means ----

static struct CUstream_st *default_stream(bool per_thread, CUresult *result) {
    struct CUctx_st *context = sim_current();
    if (context == NULL) {
        *result = CUDA_ERROR_INVALID_CONTEXT;
        return NULL;
    }
    struct CUstream_st *stream = per_thread ? sim_thread_stream(context) : context->legacy;
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
        *result = CUDA_ERROR_INVALID_HANDLE;
        return NULL;
    }
    *result = sim_context_error(handle->context);
    return *result == CUDA_SUCCESS ? handle : NULL;
}

// ---- the API ----

static CUresult create(CUstream *out, unsigned flags, int priority) {
    if (out == NULL || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct CUstream_st *stream = sim_stream_new(sim_current(), SIM_STREAM_CREATED, flags, priority);
    if (stream == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    stream->green = sim_green_current();
    *out = stream;
    return CUDA_SUCCESS;
}

static int clamp_priority(int priority) {
    return priority > 0 ? 0 : priority < SIM_BEST_PRIORITY ? SIM_BEST_PRIORITY : priority;
}

SIM_CALL(cuStreamCreate, SIM_CURRENT, (CUstream * stream, unsigned flags), create(stream, flags, 0))
SIM_CALL(cuStreamCreateWithPriority, SIM_CURRENT, (CUstream * stream, unsigned flags, int priority),
         create(stream, flags, clamp_priority(priority)))

static CUresult destroy(CUstream handle) {
    if (!sim_handle_is(handle, SIM_STREAM) || handle->kind != SIM_STREAM_CREATED) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    sim_stream_close(handle);
    return CUDA_SUCCESS;
}

SIM_CALL(cuStreamDestroy, SIM_READY, (CUstream stream), destroy(stream))
SIM_CALL(cuStreamDestroy_v2, SIM_READY, (CUstream stream), destroy(stream))

static CUresult synchronize(CUstream handle, bool per_thread) {
    CUresult result = CUDA_SUCCESS;
    struct CUstream_st *stream = sim_stream_of(handle, per_thread, &result);
    if (stream != NULL) {
        result = sim_capture_refuses_stream(stream);
    }
    return stream == NULL || result != CUDA_SUCCESS ? result : sim_stream_finish(stream);
}

SIM_PAIR(cuStreamSynchronize, cuStreamSynchronize_ptsz, SIM_CURRENT, (CUstream stream),
         synchronize(stream, per_thread))

static CUresult query(CUstream handle, bool per_thread) {
    CUresult result = CUDA_SUCCESS;
    struct CUstream_st *stream = sim_stream_of(handle, per_thread, &result);
    if (stream != NULL) {
        result = sim_capture_refuses_stream(stream);
    }
    if (stream == NULL || result != CUDA_SUCCESS) {
        return result;
    }
    return sim_stream_idle(stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

SIM_PAIR(cuStreamQuery, cuStreamQuery_ptsz, SIM_CURRENT, (CUstream stream),
         query(stream, per_thread))

enum property { FLAGS, PRIORITY, ID, CONTEXT, DEVICE };

static CUresult property(CUstream handle, bool per_thread, enum property which, void *out) {
    CUresult result = CUDA_SUCCESS;
    struct CUstream_st *stream = sim_stream_of(handle, per_thread, &result);
    if (stream == NULL || out == NULL) {
        return out == NULL ? CUDA_ERROR_INVALID_VALUE : result;
    }
    switch (which) {
    case FLAGS:
        *(unsigned *)out = stream->flags;
        break;
    case PRIORITY:
        *(int *)out = stream->priority;
        break;
    case ID:
        *(unsigned long long *)out = stream->id;
        break;
    case CONTEXT:
        *(CUcontext *)out = stream->context;
        break;
    case DEVICE:
        *(CUdevice *)out = stream->context->device->ordinal;
        break;
    }
    return CUDA_SUCCESS;
}

SIM_PAIR(cuStreamGetFlags, cuStreamGetFlags_ptsz, SIM_CURRENT, (CUstream stream, unsigned *flags),
         property(stream, per_thread, FLAGS, flags))
SIM_PAIR(cuStreamGetPriority, cuStreamGetPriority_ptsz, SIM_CURRENT,
         (CUstream stream, int *priority), property(stream, per_thread, PRIORITY, priority))
SIM_PAIR(cuStreamGetId, cuStreamGetId_ptsz, SIM_CURRENT, (CUstream stream, unsigned long long *id),
         property(stream, per_thread, ID, id))
SIM_PAIR(cuStreamGetCtx, cuStreamGetCtx_ptsz, SIM_CURRENT, (CUstream stream, CUcontext *context),
         property(stream, per_thread, CONTEXT, context))
SIM_PAIR(cuStreamGetDevice, cuStreamGetDevice_ptsz, SIM_CURRENT,
         (CUstream stream, CUdevice *device), property(stream, per_thread, DEVICE, device))

static CUresult contexts_of(CUstream handle, bool per_thread, CUcontext *context,
                            CUgreenCtx *green) {
    CUresult result = property(handle, per_thread, CONTEXT, context);
    if (green == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const struct CUstream_st *stream = sim_stream_of(handle, per_thread, &result);
    *green = stream != NULL ? stream->green : NULL;
    return result;
}

SIM_PAIR(cuStreamGetCtx_v2, cuStreamGetCtx_v2_ptsz, SIM_CURRENT,
         (CUstream stream, CUcontext *context, CUgreenCtx *green),
         contexts_of(stream, per_thread, context, green))
