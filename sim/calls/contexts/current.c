// What is current: a stack of contexts, which belongs to the thread.
#include "sim/calls/contexts/current.h"

#include "sim/base/limits.h"
#include "sim/border/border.h"
#include "sim/device/context.h"
#include "sim/device/contexts.h"
#include "sim/device/thread.h"

static struct CUctx_st **top(void) {
    struct sim_thread *self = sim_self();
    return self->depth == 0 ? NULL : &self->stack[self->depth - 1];
}

CUresult sim_context_push(struct CUctx_st *context) {
    struct sim_thread *self = sim_self();
    if (self->depth == SIM_MAX_STACK) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    self->stack[self->depth++] = context;
    return CUDA_SUCCESS;
}

static CUresult push_known(CUcontext context) {
    if (context == NULL || !sim_context_known(context)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return context->alive ? sim_context_push(context) : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

static CUresult pop(CUcontext *out) {
    struct CUctx_st **current = top();
    if (current == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (out != NULL) {
        *out = *current;
    }
    sim_self()->depth--;
    return CUDA_SUCCESS;
}

CUresult sim_context_set_current(CUcontext context) {
    if (context == NULL) {
        sim_self()->depth -= sim_self()->depth > 0;
        return CUDA_SUCCESS;
    }
    if (!sim_context_known(context)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    // A primary one that was reset is made current all the same; what then uses it fails.
    if (!context->alive && !context->primary) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    if (top() == NULL) {
        return sim_context_push(context);
    }
    *top() = context;
    return CUDA_SUCCESS;
}

static CUresult get(CUcontext *out) {
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = sim_current_handle();
    return CUDA_SUCCESS;
}

SIM_CALL(cuCtxPushCurrent, SIM_READY, (CUcontext context), push_known(context))
SIM_CALL(cuCtxPushCurrent_v2, SIM_READY, (CUcontext context), push_known(context))
SIM_CALL(cuCtxPopCurrent, SIM_READY, (CUcontext * context), pop(context))
SIM_CALL(cuCtxPopCurrent_v2, SIM_READY, (CUcontext * context), pop(context))
SIM_CALL(cuCtxSetCurrent, SIM_READY, (CUcontext context), sim_context_set_current(context))
SIM_CALL(cuCtxGetCurrent, SIM_READY | SIM_UNCOUNTED, (CUcontext * context), get(context))

static CUresult attach(CUcontext *out, unsigned flags) {
    if (out == NULL || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_current_handle()->attached += !sim_current_handle()->primary;
    return get(out);
}

SIM_CALL(cuCtxAttach, SIM_CURRENT, (CUcontext * context, unsigned flags), attach(context, flags))
