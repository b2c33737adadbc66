// Streams: queues of work, each done later, in order, by its own thread.
//
// A piece of work begins when the one before it in its stream is done and its marks are complete;
// with SIM_SEED a pause drawn from the seed, the stream and the number comes first. The legacy
// default stream waits for, and is waited for by, all blocking streams of its context. A kernel of
// a programmatic dependent launch runs beside the kernel before it, as if that let it begin at
// once. With SIM_STEP there are no threads, and step.c says who does the work. A destroyed stream
// finishes its work before it goes. Work is O(1) to submit apart from the legacy stream's
// (O(streams)). Guarded by the lock, except while a piece of work runs.
#include "sim/order/stream.h"

#include "sim/base/clock.h"
#include "sim/base/handle.h"
#include "sim/base/lock.h"
#include "sim/base/options.h"
#include "sim/base/random.h"
#include "sim/order/capture.h"
#include "sim/order/green.h"
#include "sim/order/mark.h"
#include "sim/order/queue.h"
#include "sim/order/run.h"
#include "sim/order/step.h"

#include <stdlib.h>

// The handle dies now; the stream itself when its work is done.
void sim_stream_close(struct CUstream_st *stream) {
    sim_handle_remove(stream);
    sim_capture_stream_end(stream);
    stream->closing = true;
    if (stream->worker) {
        pthread_cond_signal(&stream->wake);
    } else {
        sim_stream_leave_context(stream);
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
    sim_stream_leave_context(stream);
    sim_stream_release(stream);
    sim_lock_give();
    return NULL;
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
        sim_marks_join(waits, &stream->green->barrier);
    }
    if (stream == context->legacy) {
        wait_for_blocking(stream, waits);
    } else if (!(stream->flags & CU_STREAM_NON_BLOCKING) && context->legacy != NULL) {
        sim_marks_add(waits, context->legacy, context->legacy->submitted);
    }
}

static CUresult append(struct CUstream_st *stream, struct sim_work *work) {
    if (!start_worker(stream)) {
        work->type->drop(work);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    work->context = stream->context;
    work->number = ++stream->submitted;
    work->next = NULL;
    *stream->tail = work;
    stream->tail = &work->next;
    pthread_cond_signal(&stream->wake);
    return CUDA_SUCCESS;
}

// ---- work that overlaps with the kernel before it ----

static CUresult run_nothing(struct sim_work *work) {
    (void)work;
    return CUDA_SUCCESS;
}

static void drop_nothing(struct sim_work *work) {
    free(work);
}

// The kernel at the stream's end, if that is not done.
static const struct sim_work *last_kernel(const struct CUstream_st *stream) {
    const struct sim_work *last = (const struct sim_work *)(const void *)stream->tail;
    bool is_kernel = stream->head != NULL && last->type->clone != NULL &&
                     last->type->node == CU_GRAPH_NODE_TYPE_KERNEL;
    return is_kernel ? last : NULL;
}

static struct CUstream_st *stream_beside(struct CUstream_st *stream) {
    if (stream->beside == NULL) {
        stream->beside =
            sim_stream_new(stream->context, SIM_STREAM_CREATED, CU_STREAM_NON_BLOCKING, 0);
    }
    if (stream->beside != NULL) {
        stream->beside->green = stream->green;
    }
    return stream->beside;
}

// The work waits for what `last` waits for. Later work of the stream waits for both.
static CUresult append_beside(struct CUstream_st *stream, struct sim_work *work,
                              const struct sim_work *last) {
    static const struct sim_work_type join_type = {.run = run_nothing, .drop = drop_nothing};
    struct CUstream_st *beside = stream_beside(stream);
    struct sim_work *join = beside != NULL ? calloc(1, sizeof *join) : NULL;
    if (join == NULL) {
        work->type->drop(work);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sim_marks_add(&work->waits, stream, stream->submitted - 1);
    sim_marks_join(&work->waits, &last->waits);
    CUresult result = append(beside, work);
    if (result != CUDA_SUCCESS) {
        free(join);
        return result;
    }
    join->type = &join_type;
    sim_marks_add(&join->waits, beside, beside->submitted);
    return append(stream, join);
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
    implicit_waits(stream, &work->waits);
    const struct sim_work *last = work->overlaps ? last_kernel(stream) : NULL;
    return last != NULL ? append_beside(stream, work, last) : append(stream, work);
}
