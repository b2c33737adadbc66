// Which contexts there are: a primary one a device, own ones, and the views of green ones. Records
// are kept after their end, so that a stale handle is known as such, until a new context gets it
// (by SIM_SEED). Guarded by the lock.
#include "sim/device/contexts.h"

#include "sim/base/options.h"
#include "sim/device/devices.h"

static struct CUctx_st *contexts; // own ones and green ones' views, ended ones included

void sim_context_enlist(struct CUctx_st *context) {
    context->next = contexts;
    contexts = context;
}

struct CUctx_st *sim_context_next(struct CUctx_st *before) {
    if (before != NULL && !before->primary) {
        return before->next;
    }
    int ordinal = before == NULL ? 0 : before->device->ordinal + 1;
    return ordinal < sim_options.devices ? &sim_devices[ordinal].primary : contexts;
}

bool sim_context_known(CUcontext handle) {
    struct CUctx_st *context = sim_context_next(NULL);
    while (context != NULL && context != handle) {
        context = sim_context_next(context);
    }
    return context != NULL;
}

struct CUctx_st *sim_context_of_life(unsigned long long id) {
    struct CUctx_st *context = sim_context_next(NULL);
    while (context != NULL && (!context->alive || context->id != id)) {
        context = sim_context_next(context);
    }
    return context;
}

CUresult sim_context_error(const struct CUctx_st *context) {
    if (context == NULL || !context->alive) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    return context->parent != NULL ? sim_context_error(context->parent) : context->error;
}

static void fail(struct CUctx_st *context, CUresult error) {
    if (context->error == CUDA_SUCCESS) {
        context->error = error;
    }
}

void sim_context_fail(struct CUctx_st *context, CUresult error) {
    fail(context, error);
    for (struct CUctx_st *other = sim_context_next(NULL);
         sim_options.faults_spread && other != NULL; other = sim_context_next(other)) {
        if (other->alive && other->device == context->device) {
            fail(other, error);
        }
    }
}

bool sim_context_reaches(const struct CUctx_st *context, const struct sim_device *device) {
    bool reaches = context->device == device;
    for (size_t i = 0; i < context->peer_count; i++) {
        reaches = reaches || (context->peers[i]->alive && context->peers[i]->device == device);
    }
    return reaches;
}
