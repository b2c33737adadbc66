// Contexts: a primary one a device, with the same handle through all its lives but a new id in
// each, and own ones. A context's end waits for its streams, then drops its streams, events and
// memory. Guarded by the lock.
#include "sim/calls/contexts/context.h"

#include "sim/base/counts.h"
#include "sim/base/ids.h"
#include "sim/base/options.h"
#include "sim/base/random.h"
#include "sim/border/border.h"
#include "sim/calls/contexts/current.h"
#include "sim/calls/contexts/peer.h"
#include "sim/calls/kernels/module.h"
#include "sim/calls/memory/array.h"
#include "sim/calls/memory/ipc.h"
#include "sim/device/contexts.h"
#include "sim/device/devices.h"
#include "sim/device/thread.h"
#include "sim/memory/allocate.h"
#include "sim/order/events.h"
#include "sim/order/mark.h"
#include "sim/order/queue.h"
#include "sim/order/stream.h"
#include "sim/order/wait.h"

#include <stdlib.h>
#include <string.h>

static CUresult begin(struct CUctx_st *context, struct sim_device *device, unsigned flags) {
    context->device = device;
    context->alive = true;
    context->error = CUDA_SUCCESS;
    context->flags = flags;
    context->id = sim_next_context_id();
    context->legacy = sim_stream_new(context, SIM_STREAM_LEGACY, 0, 0);
    return context->legacy != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void end_streams(struct CUctx_st *context) {
    struct CUstream_st *next = NULL;
    for (struct CUstream_st *stream = context->streams; stream != NULL; stream = next) {
        next = stream->next;
        stream->context = NULL;
        if (!stream->closing) {
            sim_stream_close(stream);
        }
    }
    context->streams = NULL;
    context->legacy = NULL;
}

static void end(struct CUctx_st *context) {
    if (!context->alive) {
        return;
    }
    context->alive = false; // from here on no new work gets in
    context->ending = true;
    // "It is the responsibility of the calling function to ensure that no API call uses ctx while
    // cuCtxDestroy() is executing."
    sim_counts.trespasses += context->users - (sim_self()->used == context);
    struct sim_marks marks = {0};
    sim_context_marks(context, &marks);
    sim_wait(&marks);
    sim_marks_drop(&context->barrier);
    sim_context_events_end(context);
    end_streams(context);
    sim_context_imports_end(context);
    sim_context_modules_end(context);
    sim_context_arrays_end(context);
    sim_context_memory_end(context);
    sim_context_peers_end(context);
    context->ending = false;
}

static bool flags_valid(unsigned flags) {
    return (flags & ~(unsigned)CU_CTX_FLAGS_MASK) == 0 &&
           (flags & CU_CTX_SCHED_MASK) <= CU_CTX_SCHED_BLOCKING_SYNC;
}

// Half of the new contexts get the handle of one that has ended, as where records come from a heap.
static struct CUctx_st *used_record(void) {
    static uint64_t draws;
    if (sim_options.seed == 0 || sim_mix(sim_options.seed ^ sim_mix(++draws)) % 2 == 0) {
        return NULL;
    }
    struct CUctx_st *context = sim_context_next(NULL);
    while (context != NULL &&
           (context->primary || context->parent != NULL || context->alive || context->ending)) {
        context = sim_context_next(context);
    }
    return context;
}

static struct CUctx_st *new_record(void) {
    struct CUctx_st *context = used_record();
    if (context != NULL) {
        *context = (struct CUctx_st){.next = context->next, .users = context->users};
        return context;
    }
    context = calloc(1, sizeof *context);
    if (context != NULL) {
        sim_context_enlist(context);
    }
    return context;
}

static CUresult create(CUcontext *out, unsigned flags, CUdevice ordinal, unsigned version) {
    struct sim_device *device = sim_device_of(ordinal);
    if (out == NULL || !flags_valid(flags)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    struct CUctx_st *context = new_record();
    if (context == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    context->version = version;
    CUresult result = begin(context, device, flags);
    if (result == CUDA_SUCCESS) {
        result = sim_context_push(context);
    }
    *out = context;
    return result;
}

SIM_CALL(cuCtxCreate, SIM_READY, (CUcontext * context, unsigned flags, CUdevice device),
         create(context, flags, device, 3010))
SIM_CALL(cuCtxCreate_v2, SIM_READY, (CUcontext * context, unsigned flags, CUdevice device),
         create(context, flags, device, 3020))
SIM_CALL(cuCtxCreate_v3, SIM_READY,
         (CUcontext * context, CUexecAffinityParam *parameters, int count, unsigned flags,
          CUdevice device),
         parameters != NULL && count > 0 ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY
                                         : create(context, flags, device, 3020))
static CUresult create_for(CUcontext *context, const CUctxCreateParams *parameters, unsigned flags,
                           CUdevice device) {
    if (parameters != NULL && parameters->numExecAffinityParams > 0) {
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    }
    CUresult result = create(context, flags, device, 3020);
    if (result == CUDA_SUCCESS) {
        (*context)->graphics = parameters != NULL && parameters->cigParams != NULL;
    }
    return result;
}

SIM_CALL(cuCtxCreate_v4, SIM_READY,
         (CUcontext * context, CUctxCreateParams *parameters, unsigned flags, CUdevice device),
         create_for(context, parameters, flags, device))

static CUresult destroy(CUcontext context) {
    if (context == NULL || !sim_context_known(context) || context->primary ||
        context->parent != NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (!context->alive) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    end(context);
    if (sim_current_handle() == context) {
        sim_self()->depth--;
    }
    return CUDA_SUCCESS;
}

SIM_CALL(cuCtxDestroy, SIM_READY, (CUcontext context), destroy(context))
SIM_CALL(cuCtxDestroy_v2, SIM_READY, (CUcontext context), destroy(context))

// The old way of ending: the last of as many as cuCtxAttach gave.
static CUresult detach(CUcontext context) {
    if (context == NULL || context != sim_current_handle()) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (context->attached > 0) {
        context->attached--;
        return CUDA_SUCCESS;
    }
    return destroy(context);
}

SIM_CALL(cuCtxDetach, SIM_READY, (CUcontext context), detach(context))

static CUresult set_flags(struct CUctx_st *context, unsigned flags) {
    if (!flags_valid(flags)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    context->flags = flags;
    return CUDA_SUCCESS;
}

SIM_CALL(cuCtxSetFlags, SIM_CURRENT, (unsigned flags), set_flags(sim_current(), flags))

// ---- primary contexts ----

CUresult sim_context_retain(struct sim_device *device) {
    struct CUctx_st *context = &device->primary;
    CUresult result = CUDA_SUCCESS;
    if (!context->alive) {
        result = begin(context, device, context->flags);
    }
    context->references += result == CUDA_SUCCESS;
    return result;
}

void sim_context_give_back(struct sim_device *device) {
    if (device->primary.references > 0 && --device->primary.references == 0) {
        end(&device->primary);
    }
}

static CUresult retain(CUcontext *out, CUdevice ordinal) {
    struct sim_device *device = sim_device_of(ordinal);
    if (out == NULL || device == NULL) {
        return out == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
    }
    CUresult result = sim_context_retain(device);
    if (result == CUDA_SUCCESS) {
        *out = &device->primary;
    }
    return result;
}

static CUresult release(CUdevice ordinal) {
    struct sim_device *device = sim_device_of(ordinal);
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (device->primary.references == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    sim_context_give_back(device);
    return CUDA_SUCCESS;
}

// "Resetting the primary context does not release it."
static CUresult reset(CUdevice ordinal) {
    struct sim_device *device = sim_device_of(ordinal);
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    end(&device->primary);
    return CUDA_SUCCESS;
}

static CUresult primary_flags(CUdevice ordinal, unsigned flags) {
    struct sim_device *device = sim_device_of(ordinal);
    return device == NULL ? CUDA_ERROR_INVALID_DEVICE : set_flags(&device->primary, flags);
}

static CUresult primary_state(CUdevice ordinal, unsigned *flags, int *active) {
    struct sim_device *device = sim_device_of(ordinal);
    if (device == NULL || flags == NULL || active == NULL) {
        return device == NULL ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    }
    *flags = device->primary.flags;
    *active = device->primary.alive;
    return CUDA_SUCCESS;
}

SIM_CALL(cuDevicePrimaryCtxRetain, SIM_READY, (CUcontext * context, CUdevice device),
         retain(context, device))
SIM_CALL(cuDevicePrimaryCtxRelease, SIM_READY, (CUdevice device), release(device))
SIM_CALL(cuDevicePrimaryCtxRelease_v2, SIM_READY, (CUdevice device), release(device))
SIM_CALL(cuDevicePrimaryCtxReset, SIM_READY, (CUdevice device), reset(device))
SIM_CALL(cuDevicePrimaryCtxReset_v2, SIM_READY, (CUdevice device), reset(device))
SIM_CALL(cuDevicePrimaryCtxSetFlags, SIM_READY, (CUdevice device, unsigned flags),
         primary_flags(device, flags))
SIM_CALL(cuDevicePrimaryCtxSetFlags_v2, SIM_READY, (CUdevice device, unsigned flags),
         primary_flags(device, flags))
SIM_CALL(cuDevicePrimaryCtxGetState, SIM_READY | SIM_UNCOUNTED,
         (CUdevice device, unsigned *flags, int *active), primary_state(device, flags, active))

static SIM_CALL(private_enter, SIM_READY, (CUcontext context),
                sim_context_set_current(
                    context)) static SIM_CALL(private_retain, SIM_READY,
                                              (CUcontext * context, CUdevice device),
                                              retain(context,
                                                     device)) static SIM_CALL(private_release,
                                                                              SIM_READY,
                                                                              (CUdevice device),
                                                                              release(device))

    void (*sim_private_call(const char *name))(void) {
    static const struct {
        const char *name;
        void (*call)(void);
    } calls[] = {{"cuCtxSetCurrent", (void (*)(void))private_enter},
                 {"cuDevicePrimaryCtxRetain", (void (*)(void))private_retain},
                 {"cuDevicePrimaryCtxRelease", (void (*)(void))private_release}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (strcmp(calls[i].name, name) == 0) {
            return calls[i].call;
        }
    }
    return NULL;
}
