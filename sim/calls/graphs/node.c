// Making a graph's nodes one by one, and what a node tells of itself.
#include "sim/base/handle.h"
#include "sim/border/border.h"
#include "sim/calls/graphs/exec.h"
#include "sim/calls/kernels/callback.h"
#include "sim/calls/kernels/launch.h"
#include "sim/calls/memory/copy.h"
#include "sim/calls/memory/copy3d.h"
#include "sim/device/contexts.h"
#include "sim/device/devices.h"
#include "sim/graph/graph.h"
#include "sim/graph/memory.h"
#include "sim/memory/allocate.h"
#include "sim/order/events.h"

#include <string.h>

struct place {
    CUgraphNode *out;
    CUgraph graph;
    const CUgraphNode *needs;
    size_t count;
};

static CUresult check(const struct place *place) {
    if (place->out == NULL || !sim_handle_is(place->graph, SIM_GRAPH) ||
        (place->count > 0 && place->needs == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < place->count; i++) {
        if (!sim_handle_is(place->needs[i], SIM_NODE) || place->needs[i]->graph != place->graph) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

// Takes the work, if `made` says that there is some.
static CUresult put(struct place place, CUgraphNodeType type, CUresult made,
                    struct sim_work *work) {
    CUresult result = made != CUDA_SUCCESS ? made : check(&place);
    if (result != CUDA_SUCCESS) {
        if (work != NULL) {
            work->type->drop(work);
        }
        return result;
    }
    *place.out = sim_node_new(place.graph, type, work, place.needs, place.count);
    return *place.out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

#define PLACE                                                                                      \
    (struct place) {                                                                               \
        out, graph, needs, count                                                                   \
    }
#define PLACE_PARAMETERS CUgraphNode *out, CUgraph graph, const CUgraphNode *needs, size_t count

// ---- kernels ----

static CUresult add_kernel(struct place place, CUfunction function, const CUlaunchConfig *shape,
                           void **parameters, void **extra) {
    struct sim_work *work = NULL;
    CUresult made = sim_launch_new(shape, function, parameters, extra, &work);
    return put(place, CU_GRAPH_NODE_TYPE_KERNEL, made, work);
}

#define SHAPE(p)                                                                                   \
    (&(CUlaunchConfig){.gridDimX = (p)->gridDimX,                                                  \
                       .gridDimY = (p)->gridDimY,                                                  \
                       .gridDimZ = (p)->gridDimZ,                                                  \
                       .blockDimX = (p)->blockDimX,                                                \
                       .blockDimY = (p)->blockDimY,                                                \
                       .blockDimZ = (p)->blockDimZ,                                                \
                       .sharedMemBytes = (p)->sharedMemBytes})

static CUfunction code_of(const CUDA_KERNEL_NODE_PARAMS_v2 *p) {
    return p->func != NULL ? p->func : (CUfunction)(void *)p->kern;
}

SIM_CALL(cuGraphAddKernelNode, SIM_READY, (PLACE_PARAMETERS, const CUDA_KERNEL_NODE_PARAMS_v1 *p),
         p == NULL ? CUDA_ERROR_INVALID_VALUE
                   : add_kernel(PLACE, p->func, SHAPE(p), p->kernelParams, p->extra))
SIM_CALL(cuGraphAddKernelNode_v2, SIM_READY,
         (PLACE_PARAMETERS, const CUDA_KERNEL_NODE_PARAMS_v2 *p),
         p == NULL ? CUDA_ERROR_INVALID_VALUE
                   : add_kernel(PLACE, code_of(p), SHAPE(p), p->kernelParams, p->extra))

// A node's work is exchanged for other work of the same kind.
static CUresult exchange(struct CUgraphNode_st *node, CUgraphNodeType type, CUresult made,
                         struct sim_work *work) {
    bool fits = node != NULL && node->type == type;
    if (made != CUDA_SUCCESS || !fits) {
        if (made == CUDA_SUCCESS) {
            work->type->drop(work);
        }
        return made != CUDA_SUCCESS ? made : CUDA_ERROR_INVALID_VALUE;
    }
    node->work->type->drop(node->work);
    node->work = work;
    return CUDA_SUCCESS;
}

static CUresult set_kernel(struct CUgraphNode_st *node, const CUDA_KERNEL_NODE_PARAMS_v2 *p) {
    struct sim_work *work = NULL;
    if (p == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult made = sim_launch_new(SHAPE(p), code_of(p), p->kernelParams, p->extra, &work);
    return exchange(node, CU_GRAPH_NODE_TYPE_KERNEL, made, work);
}

SIM_CALL(cuGraphKernelNodeSetParams_v2, SIM_READY,
         (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *p),
         set_kernel(sim_handle_is(node, SIM_NODE) ? node : NULL, p))
SIM_CALL(cuGraphExecKernelNodeSetParams_v2, SIM_READY,
         (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *p),
         set_kernel(sim_exec_node(exec, node), p))
SIM_CALL(cuGraphKernelNodeGetParams_v2, SIM_READY,
         (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2 *p),
         !sim_handle_is(node, SIM_NODE) || p == NULL || node->type != CU_GRAPH_NODE_TYPE_KERNEL
             ? CUDA_ERROR_INVALID_VALUE
             : sim_launch_tell(node->work, p))

// The older form of the parameters is the newer one's beginning.
static CUDA_KERNEL_NODE_PARAMS_v2 widened(const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
    CUDA_KERNEL_NODE_PARAMS_v2 wide = {0};
    memcpy(&wide, p, sizeof *p);
    return wide;
}

static CUresult set_kernel_old(struct CUgraphNode_st *node, const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
    if (p == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUDA_KERNEL_NODE_PARAMS_v2 wide = widened(p);
    return set_kernel(node, &wide);
}

static CUresult tell_kernel_old(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *p) {
    CUDA_KERNEL_NODE_PARAMS_v2 wide;
    if (!sim_handle_is(node, SIM_NODE) || p == NULL || node->type != CU_GRAPH_NODE_TYPE_KERNEL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = sim_launch_tell(node->work, &wide);
    memcpy(p, &wide, sizeof *p);
    return result;
}

SIM_CALL(cuGraphKernelNodeSetParams, SIM_READY,
         (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p),
         set_kernel_old(sim_handle_is(node, SIM_NODE) ? node : NULL, p))
SIM_CALL(cuGraphExecKernelNodeSetParams, SIM_READY,
         (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p),
         set_kernel_old(sim_exec_node(exec, node), p))
SIM_CALL(cuGraphKernelNodeGetParams, SIM_READY, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *p),
         tell_kernel_old(node, p))

// ---- copies and sets ----

static CUresult add_copy(struct place place, const CUDA_MEMCPY3D *p) {
    struct sim_work *work = NULL;
    CUresult made = sim_copy_new(p, &work);
    return put(place, CU_GRAPH_NODE_TYPE_MEMCPY, made, work);
}

static CUresult add_set(struct place place, const CUDA_MEMSET_NODE_PARAMS *p) {
    struct sim_work *work = NULL;
    CUresult made = sim_set_new(p, &work);
    return put(place, CU_GRAPH_NODE_TYPE_MEMSET, made, work);
}

static CUresult set_copy(struct CUgraphNode_st *node, const CUDA_MEMCPY3D *p) {
    struct sim_work *work = NULL;
    CUresult made = sim_copy_new(p, &work);
    return exchange(node, CU_GRAPH_NODE_TYPE_MEMCPY, made, work);
}

static CUresult set_set(struct CUgraphNode_st *node, const CUDA_MEMSET_NODE_PARAMS *p) {
    struct sim_work *work = NULL;
    CUresult made = sim_set_new(p, &work);
    return exchange(node, CU_GRAPH_NODE_TYPE_MEMSET, made, work);
}

SIM_CALL(cuGraphAddMemcpyNode, SIM_READY,
         (PLACE_PARAMETERS, const CUDA_MEMCPY3D *copy, CUcontext context),
         !sim_context_known(context) ? CUDA_ERROR_INVALID_CONTEXT : add_copy(PLACE, copy))
SIM_CALL(cuGraphAddMemsetNode, SIM_READY,
         (PLACE_PARAMETERS, const CUDA_MEMSET_NODE_PARAMS *set, CUcontext context),
         !sim_context_known(context) ? CUDA_ERROR_INVALID_CONTEXT : add_set(PLACE, set))
SIM_CALL(cuGraphMemcpyNodeSetParams, SIM_READY, (CUgraphNode node, const CUDA_MEMCPY3D *copy),
         set_copy(sim_handle_is(node, SIM_NODE) ? node : NULL, copy))
SIM_CALL(cuGraphMemsetNodeSetParams, SIM_READY,
         (CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *set),
         set_set(sim_handle_is(node, SIM_NODE) ? node : NULL, set))
SIM_CALL(cuGraphExecMemcpyNodeSetParams, SIM_READY,
         (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy, CUcontext context),
         !sim_context_known(context) ? CUDA_ERROR_INVALID_CONTEXT
                                     : set_copy(sim_exec_node(exec, node), copy))
SIM_CALL(cuGraphExecMemsetNodeSetParams, SIM_READY,
         (CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *set,
          CUcontext context),
         !sim_context_known(context) ? CUDA_ERROR_INVALID_CONTEXT
                                     : set_set(sim_exec_node(exec, node), set))

// ---- host functions ----

static CUresult host_work(const CUDA_HOST_NODE_PARAMS *p, struct sim_work **work) {
    if (p == NULL || p->fn == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *work = sim_host_work_new(p->fn, p->userData);
    return *work != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult add_host(struct place place, const CUDA_HOST_NODE_PARAMS *p) {
    struct sim_work *work = NULL;
    CUresult made = host_work(p, &work);
    return put(place, CU_GRAPH_NODE_TYPE_HOST, made, work);
}

static CUresult set_host(struct CUgraphNode_st *node, const CUDA_HOST_NODE_PARAMS *p) {
    struct sim_work *work = NULL;
    CUresult made = host_work(p, &work);
    return exchange(node, CU_GRAPH_NODE_TYPE_HOST, made, work);
}

SIM_CALL(cuGraphAddHostNode, SIM_READY, (PLACE_PARAMETERS, const CUDA_HOST_NODE_PARAMS *p),
         add_host(PLACE, p))
SIM_CALL(cuGraphHostNodeSetParams, SIM_READY, (CUgraphNode node, const CUDA_HOST_NODE_PARAMS *p),
         set_host(sim_handle_is(node, SIM_NODE) ? node : NULL, p))
SIM_CALL(cuGraphExecHostNodeSetParams, SIM_READY,
         (CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *p),
         set_host(sim_exec_node(exec, node), p))

// ---- nodes without work of their own ----

static CUresult add_event(struct place place, CUgraphNodeType type, CUevent event) {
    if (sim_event_of(event) == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    CUresult result = put(place, type, CUDA_SUCCESS, NULL);
    if (result == CUDA_SUCCESS) {
        (*place.out)->event = event;
    }
    return result;
}

static CUresult add_child(struct place place, CUgraph child) {
    if (!sim_handle_is(child, SIM_GRAPH)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct CUgraph_st *copy = sim_graph_clone(child);
    if (copy == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = put(place, CU_GRAPH_NODE_TYPE_GRAPH, CUDA_SUCCESS, NULL);
    if (result != CUDA_SUCCESS) {
        sim_graph_drop(copy);
        return result;
    }
    (*place.out)->child = copy;
    return CUDA_SUCCESS;
}

SIM_CALL(cuGraphAddEmptyNode, SIM_READY, (PLACE_PARAMETERS),
         put(PLACE, CU_GRAPH_NODE_TYPE_EMPTY, CUDA_SUCCESS, NULL))
SIM_CALL(cuGraphAddEventRecordNode, SIM_READY, (PLACE_PARAMETERS, CUevent event),
         add_event(PLACE, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event))
SIM_CALL(cuGraphAddEventWaitNode, SIM_READY, (PLACE_PARAMETERS, CUevent event),
         add_event(PLACE, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event))
SIM_CALL(cuGraphAddChildGraphNode, SIM_READY, (PLACE_PARAMETERS, CUgraph child),
         add_child(PLACE, child))

static CUresult child_of(CUgraphNode node, CUgraph *out) {
    if (!sim_handle_is(node, SIM_NODE) || node->child == NULL || out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = node->child;
    return CUDA_SUCCESS;
}

SIM_CALL(cuGraphChildGraphNodeGetGraph, SIM_READY, (CUgraphNode node, CUgraph *child),
         child_of(node, child))

static CUresult add_allocation(struct place place, CUDA_MEM_ALLOC_NODE_PARAMS *p) {
    struct sim_device *device = p == NULL ? NULL : sim_device_of(p->poolProps.location.id);
    if (device == NULL || p->bytesize == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = put(place, CU_GRAPH_NODE_TYPE_MEM_ALLOC, CUDA_SUCCESS, NULL);
    return result == CUDA_SUCCESS ? sim_graph_memory_new(&device->primary, p->bytesize,
                                                         &(*place.out)->memory, &p->dptr)
                                  : result;
}

static CUresult add_free(struct place place, CUdeviceptr pointer) {
    const struct sim_allocation *allocation = sim_allocation_at(pointer);
    if (allocation == NULL || allocation->kind != SIM_GRAPH_MEMORY) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = put(place, CU_GRAPH_NODE_TYPE_MEM_FREE, CUDA_SUCCESS, NULL);
    if (result == CUDA_SUCCESS) {
        (*place.out)->freed = pointer;
    }
    return result;
}

SIM_CALL(cuGraphAddMemAllocNode, SIM_READY, (PLACE_PARAMETERS, CUDA_MEM_ALLOC_NODE_PARAMS *p),
         add_allocation(PLACE, p))
SIM_CALL(cuGraphAddMemFreeNode, SIM_READY, (PLACE_PARAMETERS, CUdeviceptr pointer),
         add_free(PLACE, pointer))

// Nothing is kept beyond what graphs hold.
SIM_CALL(cuDeviceGraphMemTrim, SIM_READY, (CUdevice device),
         sim_device_of(device) == NULL ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS)
