// Streams: making, asking and ending them.
#include "sim/order/stream.h"
#include "sim/base/handle.h"
#include "sim/base/limits.h"
#include "sim/border/border.h"
#include "sim/device/device.h"
#include "sim/device/thread.h"
#include "sim/order/capture.h"
#include "sim/order/greens.h"
#include "sim/order/meant.h"
#include "sim/order/queue.h"
#include "sim/order/wait.h"

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
SIM_PAIR(cuStreamGetCtx, cuStreamGetCtx_ptsz, SIM_READY | SIM_STICKY,
         (CUstream stream, CUcontext *context), property(stream, per_thread, CONTEXT, context))
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
