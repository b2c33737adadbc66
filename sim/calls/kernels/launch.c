// Launches: a function's name leads to host code, registered by the test or built in. Where there
// is none the launch is refused, or with SIM_KERNELS=skip takes its time and touches nothing.
//
// Parameters are copied at the call, by the sizes that the PTX states.
#include "sim/calls/kernels/launch.h"

#include "sim/base/clock.h"
#include "sim/base/handle.h"
#include "sim/base/lock.h"
#include "sim/base/options.h"
#include "sim/base/random.h"
#include "sim/border/border.h"
#include "sim/calls/kernels/builtin.h"
#include "sim/calls/kernels/module.h"
#include "sim/calls/kernels/ptx.h"
#include "sim/device/contexts.h"
#include "sim/device/devices.h"
#include "sim/device/thread.h"
#include "sim/kernel.h"
#include "sim/memory/ranges.h"
#include "sim/memory/reach.h"
#include "sim/memory/window.h"
#include "sim/order/meant.h"
#include "sim/order/queue.h"
#include "sim/order/stream.h"

#include <stdlib.h>
#include <string.h>

struct registered {
    struct registered *next;
    char *name;
    sim_kernel code;
};

static struct registered *kernels;

int sim_register_kernel(const char *name, sim_kernel code) {
    struct registered *kernel = malloc(sizeof *kernel);
    char *copy = strdup(name);
    if (kernel == NULL || copy == NULL) {
        free(kernel);
        free(copy);
        return -1;
    }
    sim_lock_take();
    *kernel = (struct registered){.next = kernels, .name = copy, .code = code};
    kernels = kernel; // before earlier ones of the name
    sim_lock_give();
    return 0;
}

static sim_kernel code_of(const char *name) {
    for (const struct registered *k = kernels; k != NULL; k = k->next) {
        if (strcmp(k->name, name) == 0) {
            return k->code;
        }
    }
    const struct sim_builtin *b = sim_builtins;
    while (b->name != NULL && strcmp(b->name, name) != 0) {
        b++;
    }
    return b->code;
}

// ---- a launch as work ----

enum { ROOM = 4096 };                      // what the guide allows a kernel's parameters
enum { SHORTEST_US = 2, LONGEST_US = 50 }; // of a skipped one

struct launch {
    struct sim_work work;
    sim_kernel code;            // NULL: skipped
    struct CUfunc_st *function; // for graphs, which tell it
    struct sim_launch seen;
    void *parameters[SIM_MAX_PARAMETERS];
    _Alignas(16) char values[ROOM];
};

// A kernel reaches its own device's memory, that of enabled peers, and mapped host memory.
static char *reach(uint64_t address, size_t bytes) {
    sim_lock_take();
    const struct sim_device *device = sim_device_at(address);
    bool allowed = device != NULL ? sim_context_reaches(sim_self()->running, device)
                                  : sim_host_at(address) != NULL || sim_virtual_at(address);
    char *place = allowed ? sim_reach(address, bytes) : NULL;
    sim_lock_give();
    return place;
}

// A device that is stepped draws by itself when work is done.
static void pass_time(const struct sim_work *work) {
    if (sim_options.step == 0) {
        uint64_t draw =
            sim_mix(sim_options.seed ^ sim_mix(sim_self()->running->id << 32 | work->number));
        sim_pause(SHORTEST_US + (unsigned)(draw % (LONGEST_US - SHORTEST_US + 1)));
    }
}

static CUresult run(struct sim_work *work) {
    const struct launch *launch = (const struct launch *)work;
    if (launch->code == NULL) {
        pass_time(work);
        return CUDA_SUCCESS;
    }
    return (CUresult)launch->code(&launch->seen);
}

static void drop(struct sim_work *work) {
    free(work);
}

static void point_at_values(struct launch *launch) {
    size_t offset = 0;
    for (size_t i = 0; i < launch->function->count; i++) {
        size_t alignment = launch->function->alignments[i];
        offset = (offset + alignment - 1) / alignment * alignment;
        launch->parameters[i] = launch->values + offset;
        offset += launch->function->sizes[i];
    }
    launch->seen.parameters = launch->parameters;
}

static struct sim_work *repeat(const struct sim_work *work) {
    struct launch *copy = malloc(sizeof *copy);
    if (copy != NULL) {
        const struct launch *from = (const struct launch *)work;
        *copy = *from;
        for (size_t i = 0; i < from->seen.count; i++) {
            copy->parameters[i] = copy->values + ((char *)from->parameters[i] - from->values);
        }
        copy->seen.parameters = copy->parameters;
    }
    return copy != NULL ? &copy->work : NULL;
}

static const struct sim_work_type launch_type = {
    .run = run, .drop = drop, .clone = repeat, .node = CU_GRAPH_NODE_TYPE_KERNEL};

static bool take_values(struct launch *launch, void **parameters) {
    for (size_t i = 0; i < launch->function->count; i++) {
        if (parameters == NULL || parameters[i] == NULL) {
            return false;
        }
        memcpy(launch->parameters[i], parameters[i], launch->function->sizes[i]);
    }
    return true;
}

// `extra`: a list of keys and values, ended by CU_LAUNCH_PARAM_END, that names one buffer.
static bool take_buffer(struct launch *launch, void **extra) {
    const void *buffer = NULL;
    size_t size = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            buffer = extra[1];
        } else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
            size = *(const size_t *)extra[1];
        } else {
            return false;
        }
    }
    if (buffer == NULL || size > ROOM) {
        return false;
    }
    memcpy(launch->values, buffer, size);
    return true;
}

static bool shape_valid(const CUlaunchConfig *c) {
    unsigned long long threads = (unsigned long long)c->blockDimX * c->blockDimY * c->blockDimZ;
    return c->gridDimX > 0 && c->gridDimY > 0 && c->gridDimZ > 0 && threads > 0 && threads <= 1024;
}

static bool overlaps(const CUlaunchConfig *c) {
    for (unsigned i = 0; i < c->numAttrs; i++) {
        if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
            c->attrs[i].value.programmaticStreamSerializationAllowed != 0) {
            return true;
        }
    }
    return false;
}

CUresult sim_launch_new(const CUlaunchConfig *config, CUfunction function, void **parameters,
                        void **extra, struct sim_work **out) {
    if (!sim_handle_is(function, SIM_FUNCTION)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (config == NULL || !shape_valid(config) || (parameters != NULL && extra != NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct launch *launch = calloc(1, sizeof *launch);
    if (launch == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    launch->work.type = &launch_type;
    launch->work.overlaps = overlaps(config);
    launch->function = function;
    launch->code = function->opaque ? NULL : code_of(function->name);
    launch->seen = (struct sim_launch){
        .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
        .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
        .shared = config->sharedMemBytes,
        .count = function->count,
        .reach = reach,
    };
    point_at_values(launch);
    bool skipped = launch->code == NULL && sim_options.skips_kernels;
    bool taken =
        skipped || (extra != NULL ? take_buffer(launch, extra) : take_values(launch, parameters));
    if (!taken || (launch->code == NULL && !skipped)) {
        free(launch);
        return taken ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
    }
    *out = &launch->work;
    return CUDA_SUCCESS;
}

CUresult sim_launch_tell(const struct sim_work *work, CUDA_KERNEL_NODE_PARAMS_v2 *out) {
    const struct launch *launch = (const struct launch *)work;
    *out = (CUDA_KERNEL_NODE_PARAMS_v2){.func = launch->function,
                                        .gridDimX = launch->seen.grid[0],
                                        .gridDimY = launch->seen.grid[1],
                                        .gridDimZ = launch->seen.grid[2],
                                        .blockDimX = launch->seen.block[0],
                                        .blockDimY = launch->seen.block[1],
                                        .blockDimZ = launch->seen.block[2],
                                        .sharedMemBytes = (unsigned)launch->seen.shared,
                                        .kernelParams = (void **)launch->seen.parameters};
    return CUDA_SUCCESS;
}

static CUresult launch(const CUlaunchConfig *config, CUfunction function, void **parameters,
                       void **extra, bool per_thread) {
    CUresult result = CUDA_SUCCESS;
    struct sim_work *work = NULL;
    if (config == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct CUstream_st *stream = sim_stream_of(config->hStream, per_thread, &result);
    if (stream == NULL) {
        return result;
    }
    if (sim_handle_is(function, SIM_FUNCTION) && function->module != NULL &&
        sim_module_context(function->module) != stream->context) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    result = sim_launch_new(config, function, parameters, extra, &work);
    return result == CUDA_SUCCESS ? sim_submit(stream, work) : result;
}

static CUlaunchConfig shape(unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                            unsigned block_y, unsigned block_z, unsigned shared, CUstream stream) {
    return (CUlaunchConfig){.gridDimX = grid_x,
                            .gridDimY = grid_y,
                            .gridDimZ = grid_z,
                            .blockDimX = block_x,
                            .blockDimY = block_y,
                            .blockDimZ = block_z,
                            .sharedMemBytes = shared,
                            .hStream = stream};
}

static CUresult launch_shape(CUlaunchConfig config, CUfunction function, void **parameters,
                             void **extra, bool per_thread) {
    return launch(&config, function, parameters, extra, per_thread);
}

SIM_PAIR(cuLaunchKernel, cuLaunchKernel_ptsz, SIM_CURRENT,
         (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
          unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **parameters,
          void **extra),
         launch_shape(shape(grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream),
                      function, parameters, extra, per_thread))
SIM_PAIR(cuLaunchKernelEx, cuLaunchKernelEx_ptsz, SIM_CURRENT,
         (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra),
         launch(config, function, parameters, extra, per_thread))
SIM_PAIR(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz, SIM_CURRENT,
         (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
          unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **parameters),
         launch_shape(shape(grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream),
                      function, parameters, NULL, per_thread))
