// Contexts: a primary one a device, with the same handle through all its lives but a new id in
// each, and own ones. Records of own contexts are kept after their end, so that a stale handle is
// known as such and never mistaken for a later context. A context's end waits for its streams, then
// drops its streams, events and memory.
//
// What is current belongs to the thread: a stack of handles. Guarded by the lock.
#include "sim/sim.h"

#include <stdlib.h>
#include <string.h>

static struct CUctx_st *contexts; // own ones, ended ones included
static pthread_key_t thread_key;
static pthread_once_t thread_key_once = PTHREAD_ONCE_INIT;
static _Thread_local struct sim_thread self;

// ---- threads ----

static void end_thread(void *argument) {
    struct sim_thread *thread = argument;
    sim_lock_take();
    for (size_t i = 0; i < thread->stream_count; i++) {
        sim_stream_close(thread->streams[i]);
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

struct sim_thread *sim_self(void) {
    return &self;
}

struct CUstream_st *sim_thread_stream(struct CUctx_st *context) {
    for (size_t i = 0; i < self.stream_count; i++) {
        if (self.streams[i]->context == context && !self.streams[i]->closing) {
            return self.streams[i];
        }
    }
    struct CUstream_st **grown =
        realloc(self.streams, (self.stream_count + 1) * sizeof(struct CUstream_st *));
    if (grown == NULL) {
        return NULL;
    }
    self.streams = grown;
    struct CUstream_st *stream = sim_stream_new(context, SIM_STREAM_THREAD, 0, 0);
    if (stream == NULL) {
        return NULL;
    }
    pthread_once(&thread_key_once, make_thread_key);
    pthread_setspecific(thread_key, &self);
    sim_stream_hold(stream);
    self.streams[self.stream_count++] = stream;
    return stream;
}

// ---- a context's life ----

bool sim_context_known(CUcontext handle) {
    for (int i = 0; i < sim_options.devices; i++) {
        if (handle == &sim_devices[i].primary) {
            return true;
        }
    }
    const struct CUctx_st *context = contexts;
    while (context != NULL && context != handle) {
        context = context->next;
    }
    return context != NULL || sim_green_view(handle) != NULL;
}

CUresult sim_context_error(const struct CUctx_st *context) {
    if (context == NULL || !context->alive) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    return context->parent != NULL ? sim_context_error(context->parent) : context->error;
}

void sim_context_fail(struct CUctx_st *context, CUresult error) {
    if (context->error == CUDA_SUCCESS) {
        context->error = error;
    }
}

unsigned long long sim_next_context_id(void) {
    static unsigned long long next_id = 1;
    return next_id++;
}

static CUresult begin(struct CUctx_st *context, struct sim_device *device, unsigned flags) {
    context->device = device;
    context->alive = true;
    context->error = CUDA_SUCCESS;
    context->flags = flags;
    context->id = sim_next_context_id();
    context->legacy = sim_stream_new(context, SIM_STREAM_LEGACY, 0, 0);
    return context->legacy != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void sim_context_marks(const struct CUctx_st *context, struct sim_marks *marks) {
    for (struct CUstream_st *stream = context->streams; stream != NULL; stream = stream->next) {
        sim_marks_add(marks, stream, stream->submitted);
    }
}

CUresult sim_context_finish(struct CUctx_st *context) {
    struct sim_marks marks = {0};
    sim_context_marks(context, &marks);
    sim_wait(&marks);
    return sim_context_error(context);
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
    // "It is the responsibility of the calling function to ensure that no API call uses ctx while
    // cuCtxDestroy() is executing."
    sim_count_trespasses(context->users - (self.used == context));
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
}

void sim_contexts_drop_cached(const struct CUmemPoolHandle_st *pool, size_t keep) {
    for (int i = 0; i < sim_options.devices; i++) {
        sim_pool_trim(&sim_devices[i].primary, pool, keep);
    }
    for (struct CUctx_st *context = contexts; context != NULL; context = context->next) {
        sim_pool_trim(context, pool, keep);
    }
}

void sim_contexts_forget_peer(const struct CUctx_st *peer) {
    for (int i = 0; i < sim_options.devices; i++) {
        sim_peer_forget(&sim_devices[i].primary, peer);
    }
    for (struct CUctx_st *context = contexts; context != NULL; context = context->next) {
        sim_peer_forget(context, peer);
    }
}

void sim_devices_finish(void) {
    struct sim_marks marks = {0};
    for (int i = 0; i < sim_options.devices; i++) {
        sim_context_marks(&sim_devices[i].primary, &marks);
    }
    for (struct CUctx_st *context = contexts; context != NULL; context = context->next) {
        sim_context_marks(context, &marks);
    }
    sim_wait(&marks);
}

// ---- own contexts ----

static struct CUctx_st **top(void) {
    return self.depth == 0 ? NULL : &self.stack[self.depth - 1];
}

struct CUctx_st *sim_current_handle(void) {
    return self.depth == 0 ? NULL : self.stack[self.depth - 1];
}

struct CUctx_st *sim_current(void) {
    struct CUctx_st *handle = sim_current_handle();
    return handle != NULL && handle->parent != NULL ? handle->parent : handle;
}

static CUresult push(struct CUctx_st *context) {
    if (self.depth == SIM_MAX_STACK) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    self.stack[self.depth++] = context;
    return CUDA_SUCCESS;
}

static bool flags_valid(unsigned flags) {
    return (flags & ~(unsigned)CU_CTX_FLAGS_MASK) == 0 &&
           (flags & CU_CTX_SCHED_MASK) <= CU_CTX_SCHED_BLOCKING_SYNC;
}

static CUresult create(CUcontext *out, unsigned flags, CUdevice ordinal, unsigned version) {
    struct sim_device *device = sim_device_of(ordinal);
    if (out == NULL || !flags_valid(flags)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    struct CUctx_st *context = calloc(1, sizeof *context);
    if (context == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    context->version = version;
    context->next = contexts;
    contexts = context;
    CUresult result = begin(context, device, flags);
    if (result == CUDA_SUCCESS) {
        result = push(context);
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
        self.depth--;
    }
    return CUDA_SUCCESS;
}

SIM_CALL(cuCtxDestroy, SIM_READY, (CUcontext context), destroy(context))
SIM_CALL(cuCtxDestroy_v2, SIM_READY, (CUcontext context), destroy(context))

// ---- what is current ----

static CUresult push_known(CUcontext context) {
    if (context == NULL || !sim_context_known(context)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return context->alive ? push(context) : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

static CUresult pop(CUcontext *out) {
    struct CUctx_st **current = top();
    if (current == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (out != NULL) {
        *out = *current;
    }
    self.depth--;
    return CUDA_SUCCESS;
}

static CUresult set(CUcontext context) {
    if (context == NULL) {
        self.depth -= self.depth > 0;
        return CUDA_SUCCESS;
    }
    if (!sim_context_known(context)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (!context->alive) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    if (top() == NULL) {
        return push(context);
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
SIM_CALL(cuCtxSetCurrent, SIM_READY, (CUcontext context), set(context))
SIM_CALL(cuCtxGetCurrent, SIM_READY | SIM_UNCOUNTED, (CUcontext * context), get(context))

static CUresult attach(CUcontext *out, unsigned flags) {
    if (out == NULL || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return get(out);
}

SIM_CALL(cuCtxAttach, SIM_CURRENT, (CUcontext * context, unsigned flags), attach(context, flags))

// The old way of ending: the last of as many as cuCtxAttach gave.
SIM_CALL(cuCtxDetach, SIM_READY, (CUcontext context),
         context == NULL || context != sim_current_handle() ? CUDA_ERROR_INVALID_CONTEXT
                                                            : destroy(context))

// ---- what a context tells ----

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

static CUresult set_flags(struct CUctx_st *context, unsigned flags) {
    if (!flags_valid(flags)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    context->flags = flags;
    return CUDA_SUCCESS;
}

SIM_CALL(cuCtxGetFlags, SIM_CURRENT, (unsigned *flags), flags_of(flags))
SIM_CALL(cuCtxSetFlags, SIM_CURRENT, (unsigned flags), set_flags(sim_current(), flags))

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

// ---- past all names ----

static SIM_CALL(private_enter, SIM_READY, (CUcontext context), set(context)) static SIM_CALL(
    private_retain, SIM_READY, (CUcontext * context, CUdevice device),
    retain(context, device)) static SIM_CALL(private_release, SIM_READY, (CUdevice device),
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
