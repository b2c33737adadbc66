// Host functions in streams. A CUDA call inside one answers CUDA_ERROR_NOT_PERMITTED.
#include "sim/calls/kernels/callback.h"

#include "sim/base/work.h"
#include "sim/border/border.h"
#include "sim/device/thread.h"
#include "sim/order/meant.h"
#include "sim/order/stream.h"

#include <stdlib.h>
#include <string.h>

struct host_work {
    struct sim_work work;
    CUhostFn function;
    CUstreamCallback callback; // the older interface
    CUstream stream;
    void *data;
};

static CUresult run(struct sim_work *work) {
    const struct host_work *host = (const struct host_work *)work;
    sim_self()->in_callback = true;
    if (host->callback != NULL) {
        host->callback(host->stream, CUDA_SUCCESS, host->data);
    } else {
        host->function(host->data);
    }
    sim_self()->in_callback = false;
    return CUDA_SUCCESS;
}

static void drop(struct sim_work *work) {
    free(work);
}

static struct sim_work *repeat(const struct sim_work *work) {
    struct host_work *copy = malloc(sizeof *copy);
    if (copy != NULL) {
        memcpy(copy, work, sizeof *copy);
    }
    return copy != NULL ? &copy->work : NULL;
}

static const struct sim_work_type host_type = {
    .run = run, .drop = drop, .clone = repeat, .node = CU_GRAPH_NODE_TYPE_HOST};

struct sim_work *sim_host_work_new(CUhostFn function, void *data) {
    struct host_work *host = calloc(1, sizeof *host);
    if (host == NULL) {
        return NULL;
    }
    host->function = function;
    host->data = data;
    host->work.type = &host_type;
    return &host->work;
}

static CUresult launch(CUstream handle, bool per_thread, CUhostFn function,
                       CUstreamCallback callback, void *data) {
    CUresult result = CUDA_SUCCESS;
    struct CUstream_st *stream = sim_stream_of(handle, per_thread, &result);
    if (function == NULL && callback == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (stream == NULL) {
        return result;
    }
    struct host_work *host = calloc(1, sizeof *host);
    if (host == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    host->function = function;
    host->callback = callback;
    host->stream = handle;
    host->data = data;
    host->work.type = &host_type;
    return sim_submit(stream, &host->work);
}

SIM_PAIR(cuLaunchHostFunc, cuLaunchHostFunc_ptsz, SIM_READY | SIM_STICKY,
         (CUstream stream, CUhostFn function, void *data),
         launch(stream, per_thread, function, NULL, data))
SIM_PAIR(cuStreamAddCallback, cuStreamAddCallback_ptsz, SIM_READY | SIM_STICKY,
         (CUstream stream, CUstreamCallback callback, void *data, unsigned flags),
         flags != 0 ? CUDA_ERROR_INVALID_VALUE : launch(stream, per_thread, NULL, callback, data))
