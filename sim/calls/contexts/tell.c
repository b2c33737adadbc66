// What a context tells, and waiting for it.
#include "sim/base/limits.h"
#include "sim/border/border.h"
#include "sim/device/contexts.h"
#include "sim/device/device.h"
#include "sim/device/thread.h"
#include "sim/order/capture.h"
#include "sim/order/wait.h"

static CUresult alive_or_current(CUcontext handle, struct CUctx_st **out) {
    *out = handle != NULL ? handle : sim_current_handle();
    if (*out == NULL || !sim_context_known(*out)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return (*out)->alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

static CUresult device_of(CUdevice *out, CUcontext handle) {
    struct CUctx_st *context = NULL;
    CUresult result = alive_or_current(handle, &context);
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        *out = context->device->ordinal;
    }
    return result;
}

SIM_CALL(cuCtxGetDevice, SIM_READY | SIM_UNCOUNTED, (CUdevice * device), device_of(device, NULL))
SIM_CALL(cuCtxGetDevice_v2, SIM_READY | SIM_UNCOUNTED, (CUdevice * device, CUcontext context),
         device_of(device, context))

static CUresult id_of(CUcontext handle, unsigned long long *out) {
    struct CUctx_st *context = NULL;
    CUresult result = alive_or_current(handle, &context);
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        *out = context->id;
    }
    return result;
}

SIM_CALL(cuCtxGetId, SIM_READY, (CUcontext context, unsigned long long *id), id_of(context, id))

static CUresult version_of(CUcontext handle, unsigned *out) {
    struct CUctx_st *context = NULL;
    CUresult result = alive_or_current(handle, &context);
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        *out = context->version;
    }
    return result;
}

SIM_CALL(cuCtxGetApiVersion, SIM_READY, (CUcontext context, unsigned *version),
         version_of(context, version))

static CUresult flags_of(unsigned *out) {
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = sim_current()->flags;
    return CUDA_SUCCESS;
}

SIM_CALL(cuCtxGetFlags, SIM_CURRENT, (unsigned *flags), flags_of(flags))

static CUresult priorities(int *least, int *greatest) {
    if (least != NULL) {
        *least = 0;
    }
    if (greatest != NULL) {
        *greatest = SIM_BEST_PRIORITY;
    }
    return CUDA_SUCCESS;
}

SIM_CALL(cuCtxGetStreamPriorityRange, SIM_CURRENT, (int *least, int *greatest),
         priorities(least, greatest))

static CUresult synchronize(CUcontext handle) {
    struct CUctx_st *context = NULL;
    CUresult result = alive_or_current(handle, &context);
    if (result == CUDA_SUCCESS) {
        result = sim_context_error(context);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    context = context->parent != NULL ? context->parent : context;
    result = sim_capture_refuses_context(context);
    return result == CUDA_SUCCESS ? sim_context_finish(context) : result;
}

SIM_CALL(cuCtxSynchronize, SIM_CURRENT | SIM_UNSAFE, (void), synchronize(NULL))
SIM_CALL(cuCtxSynchronize_v2, SIM_READY | SIM_UNSAFE, (CUcontext context), synchronize(context))
