// Green contexts: parts of a device's processors with streams of their own, in its primary context.
//
// A green context converted to a CUcontext is a second handle of the primary one: memory, modules
// and errors are the primary's; streams made while it is current, and events recorded by it, are
// the green one's, and so is the default stream, which waits for no other. How processors are
// parted has no effect here.
#include "sim/order/green.h"
#include "sim/base/handle.h"
#include "sim/base/ids.h"
#include "sim/border/border.h"
#include "sim/calls/contexts/context.h"
#include "sim/device/contexts.h"
#include "sim/device/devices.h"
#include "sim/order/greens.h"
#include "sim/order/mark.h"
#include "sim/order/meant.h"
#include "sim/order/queue.h"
#include "sim/order/stream.h"
#include "sim/order/wait.h"

#include <stdlib.h>
#include <string.h>

struct CUdevResourceDesc_st {
    struct CUdevResourceDesc_st *next;
    unsigned processors;
};

static struct CUdevResourceDesc_st *descriptions; // the interface has no call that ends one

enum { PROCESSORS = 132, STEP = 8 };

// ---- resources ----

static CUresult resource_of(CUdevResource *out, CUdevResourceType type, unsigned processors) {
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (type != CU_DEV_RESOURCE_TYPE_SM) {
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    }
    memset(out, 0, sizeof *out);
    out->type = type;
    out->sm.smCount = processors;
    return CUDA_SUCCESS;
}

SIM_CALL(cuDeviceGetDevResource, SIM_READY,
         (CUdevice device, CUdevResource *out, CUdevResourceType type),
         sim_device_of(device) == NULL ? CUDA_ERROR_INVALID_DEVICE
                                       : resource_of(out, type, PROCESSORS))
SIM_CALL(cuCtxGetDevResource, SIM_READY,
         (CUcontext context, CUdevResource *out, CUdevResourceType type),
         !sim_context_known(context) ? CUDA_ERROR_INVALID_CONTEXT
                                     : resource_of(out, type, PROCESSORS))

static CUresult split(CUdevResource *out, unsigned *groups, const CUdevResource *input,
                      CUdevResource *rest, unsigned least) {
    if (groups == NULL || input == NULL || least > input->sm.smCount) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (input->type != CU_DEV_RESOURCE_TYPE_SM) {
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    }
    unsigned each = least < STEP ? STEP : (least + STEP - 1) / STEP * STEP;
    unsigned possible = input->sm.smCount / each;
    *groups = out == NULL || *groups > possible ? possible : *groups;
    for (unsigned i = 0; out != NULL && i < *groups; i++) {
        resource_of(&out[i], CU_DEV_RESOURCE_TYPE_SM, each);
    }
    if (rest != NULL) {
        resource_of(rest, CU_DEV_RESOURCE_TYPE_SM, input->sm.smCount - *groups * each);
    }
    return CUDA_SUCCESS;
}

SIM_CALL(cuDevSmResourceSplitByCount, SIM_READY,
         (CUdevResource * out, unsigned *groups, const CUdevResource *input, CUdevResource *rest,
          unsigned flags, unsigned least),
         ((void)flags, split(out, groups, input, rest, least)))

static CUresult describe(CUdevResourceDesc *out, const CUdevResource *resources, unsigned count) {
    if (out == NULL || resources == NULL || count == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct CUdevResourceDesc_st *description = calloc(1, sizeof *description);
    if (description == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (unsigned i = 0; i < count; i++) {
        description->processors += resources[i].sm.smCount;
    }
    description->next = descriptions;
    descriptions = description;
    *out = description;
    return CUDA_SUCCESS;
}

SIM_CALL(cuDevResourceGenerateDesc, SIM_READY,
         (CUdevResourceDesc * out, CUdevResource *resources, unsigned count),
         describe(out, resources, count))

// ---- life ----

static struct CUstream_st *new_stream(struct CUgreenCtx_st *green) {
    struct CUstream_st *stream =
        sim_stream_new(green->view.parent, SIM_STREAM_CREATED, CU_STREAM_NON_BLOCKING, 0);
    if (stream != NULL) {
        stream->green = green;
    }
    return stream;
}

static CUresult create(CUgreenCtx *out, CUdevResourceDesc description, CUdevice ordinal,
                       unsigned flags) {
    struct sim_device *device = sim_device_of(ordinal);
    if (out == NULL || description == NULL || flags != CU_GREEN_CTX_DEFAULT_STREAM) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    struct CUgreenCtx_st *green = calloc(1, sizeof *green);
    if (green == NULL || !sim_handle_add(green, SIM_GREEN)) {
        free(green);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = sim_context_retain(device);
    if (result != CUDA_SUCCESS) {
        sim_handle_remove(green);
        free(green);
        return result;
    }
    green->view = (struct CUctx_st){.device = device,
                                    .alive = true,
                                    .version = device->primary.version,
                                    .id = sim_next_context_id(),
                                    .parent = &device->primary};
    green->view.legacy = new_stream(green);
    sim_context_enlist(&green->view);
    *out = green;
    return CUDA_SUCCESS;
}

static CUresult destroy(CUgreenCtx green) {
    if (!sim_handle_is(green, SIM_GREEN)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    struct sim_marks marks = {0};
    sim_green_marks(green, &marks);
    sim_wait(&marks);
    green->view.alive = false;
    if (sim_handle_is(green->view.legacy, SIM_STREAM)) {
        sim_stream_close(green->view.legacy);
    }
    sim_handle_remove(green);
    sim_marks_drop(&green->barrier);
    sim_context_give_back(green->view.device);
    return CUDA_SUCCESS;
}

static CUresult convert(CUcontext *out, CUgreenCtx green) {
    if (out == NULL || !sim_handle_is(green, SIM_GREEN)) {
        return out == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
    }
    *out = &green->view;
    return CUDA_SUCCESS;
}

static CUresult id_of(CUgreenCtx green, unsigned long long *out) {
    green = green == NULL ? sim_green_current() : green;
    if (out == NULL || !sim_handle_is(green, SIM_GREEN)) {
        return out == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
    }
    *out = green->view.id;
    return CUDA_SUCCESS;
}

SIM_CALL(cuGreenCtxCreate, SIM_READY,
         (CUgreenCtx * out, CUdevResourceDesc description, CUdevice device, unsigned flags),
         create(out, description, device, flags))
SIM_CALL(cuGreenCtxDestroy, SIM_READY, (CUgreenCtx green), destroy(green))
SIM_CALL(cuCtxFromGreenCtx, SIM_READY, (CUcontext * out, CUgreenCtx green), convert(out, green))
SIM_CALL(cuGreenCtxGetId, SIM_READY, (CUgreenCtx green, unsigned long long *id), id_of(green, id))
SIM_CALL(cuGreenCtxGetDevResource, SIM_READY,
         (CUgreenCtx green, CUdevResource *out, CUdevResourceType type),
         !sim_handle_is(green, SIM_GREEN) ? CUDA_ERROR_INVALID_CONTEXT
                                          : resource_of(out, type, PROCESSORS))

// ---- streams and events ----

static CUresult create_stream(CUstream *out, CUgreenCtx green, unsigned flags) {
    if (!sim_handle_is(green, SIM_GREEN)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (out == NULL || flags != CU_STREAM_NON_BLOCKING) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct CUstream_st *stream = new_stream(green);
    if (stream == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = stream;
    return CUDA_SUCCESS;
}

SIM_CALL(cuGreenCtxStreamCreate, SIM_READY,
         (CUstream * stream, CUgreenCtx green, unsigned flags, int priority),
         ((void)priority, create_stream(stream, green, flags)))

static CUresult green_of(CUstream handle, CUgreenCtx *out) {
    CUresult result = CUDA_SUCCESS;
    const struct CUstream_st *stream = sim_stream_of(handle, false, &result);
    if (stream == NULL || out == NULL) {
        return out == NULL ? CUDA_ERROR_INVALID_VALUE : result;
    }
    *out = stream->kind == SIM_STREAM_CREATED ? stream->green : sim_green_current();
    return CUDA_SUCCESS;
}

SIM_CALL(cuStreamGetGreenCtx, SIM_CURRENT, (CUstream stream, CUgreenCtx *green),
         green_of(stream, green))

SIM_CALL(cuGreenCtxRecordEvent, SIM_READY, (CUgreenCtx green, CUevent event),
         !sim_handle_is(green, SIM_GREEN) ? CUDA_ERROR_INVALID_CONTEXT
                                          : sim_green_record(&green->view, event))
SIM_CALL(cuGreenCtxWaitEvent, SIM_READY, (CUgreenCtx green, CUevent event),
         !sim_handle_is(green, SIM_GREEN) ? CUDA_ERROR_INVALID_CONTEXT
                                          : sim_green_wait(&green->view, event))
