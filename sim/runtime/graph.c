// Captures, graphs and libraries of the runtime API.
#include "sim/runtime/runtime.h"

#include <stdint.h>

RT_PAIR(cudaStreamBeginCapture, cudaStreamBeginCapture_ptsz,
        (cudaStream_t stream, enum cudaStreamCaptureMode mode),
        rt_code(rt_driver.cuStreamBeginCapture[pt](stream, (CUstreamCaptureMode)mode)))
RT_PAIR(cudaStreamBeginCaptureToGraph, cudaStreamBeginCaptureToGraph_ptsz,
        (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *nodes,
         const cudaGraphEdgeData *edges, size_t count, enum cudaStreamCaptureMode mode),
        edges != NULL
            ? cudaErrorNotSupported
            : rt_code(rt_driver.cuStreamBeginCaptureToGraph[pt](stream, graph, nodes, NULL, count,
                                                                (CUstreamCaptureMode)mode)))
RT_PAIR(cudaStreamEndCapture, cudaStreamEndCapture_ptsz, (cudaStream_t stream, cudaGraph_t *graph),
        rt_code(rt_driver.cuStreamEndCapture[pt](stream, graph)))

static cudaError_t capturing(cudaStream_t stream, enum cudaStreamCaptureStatus *out, int pt) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (out == NULL) {
        return cudaErrorInvalidValue;
    }
    CUresult result = rt_driver.cuStreamIsCapturing[pt](stream, &status);
    *out = (enum cudaStreamCaptureStatus)status;
    return rt_code(result);
}

static cudaError_t info(cudaStream_t stream, enum cudaStreamCaptureStatus *out,
                        unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **nodes,
                        const cudaGraphEdgeData **edges, size_t *count, int pt) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t capture = 0;
    if (out == NULL) {
        return cudaErrorInvalidValue;
    }
    CUresult result =
        rt_driver.cuStreamGetCaptureInfo[pt](stream, &status, &capture, graph, nodes, NULL, count);
    *out = (enum cudaStreamCaptureStatus)status;
    if (id != NULL) {
        *id = capture;
    }
    if (edges != NULL) {
        *edges = NULL;
    }
    return rt_code(result);
}

static cudaError_t exchange(enum cudaStreamCaptureMode *mode) {
    CUstreamCaptureMode driver_mode = mode != NULL ? (CUstreamCaptureMode)*mode : 0;
    CUresult result = mode == NULL ? CUDA_ERROR_INVALID_VALUE
                                   : rt_driver.cuThreadExchangeStreamCaptureMode(&driver_mode);
    if (result == CUDA_SUCCESS) {
        *mode = (enum cudaStreamCaptureMode)driver_mode;
    }
    return rt_code(result);
}

RT_PAIR(cudaStreamIsCapturing, cudaStreamIsCapturing_ptsz,
        (cudaStream_t stream, enum cudaStreamCaptureStatus *status), capturing(stream, status, pt))
RT_PAIR(cudaStreamGetCaptureInfo, cudaStreamGetCaptureInfo_ptsz,
        (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
         cudaGraph_t *graph, const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges,
         size_t *count),
        info(stream, status, id, graph, nodes, edges, count, pt))
RT_PLAIN(cudaThreadExchangeStreamCaptureMode, (enum cudaStreamCaptureMode * mode), exchange(mode))

// ---- graphs ----

RT_PLAIN(cudaGraphCreate, (cudaGraph_t * graph, unsigned flags),
         rt_code(rt_driver.cuGraphCreate(graph, flags)))
RT_PLAIN(cudaGraphDestroy, (cudaGraph_t graph), rt_code(rt_driver.cuGraphDestroy(graph)))
RT_PLAIN(cudaGraphClone, (cudaGraph_t * copy, cudaGraph_t graph),
         rt_code(rt_driver.cuGraphClone(copy, graph)))
RT_PLAIN(cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count),
         rt_code(rt_driver.cuGraphGetNodes(graph, nodes, count)))
RT_CALL(cudaGraphInstantiate, (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags),
        rt_code(rt_driver.cuGraphInstantiateWithFlags(exec, graph, flags)))
RT_CALL(cudaGraphInstantiateWithFlags,
        (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags),
        rt_code(rt_driver.cuGraphInstantiateWithFlags(exec, graph, flags)))
RT_PLAIN(cudaGraphExecDestroy, (cudaGraphExec_t exec), rt_code(rt_driver.cuGraphExecDestroy(exec)))
RT_PAIR(cudaGraphLaunch, cudaGraphLaunch_ptsz, (cudaGraphExec_t exec, cudaStream_t stream),
        rt_code(rt_driver.cuGraphLaunch[pt](exec, stream)))
RT_PAIR(cudaGraphUpload, cudaGraphUpload_ptsz, (cudaGraphExec_t exec, cudaStream_t stream),
        rt_code(rt_driver.cuGraphUpload[pt](exec, stream)))

static cudaError_t update(cudaGraphExec_t exec, cudaGraph_t graph,
                          cudaGraphExecUpdateResultInfo *out) {
    CUgraphExecUpdateResultInfo told;
    if (out == NULL) {
        return cudaErrorInvalidValue;
    }
    CUresult result = rt_driver.cuGraphExecUpdate(exec, graph, &told);
    out->result = (enum cudaGraphExecUpdateResult)told.result;
    out->errorNode = told.errorNode;
    out->errorFromNode = told.errorFromNode;
    return rt_code(result);
}

static cudaError_t add_host(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *needs,
                            size_t count, const struct cudaHostNodeParams *p) {
    if (p == NULL) {
        return cudaErrorInvalidValue;
    }
    CUDA_HOST_NODE_PARAMS host = {.fn = p->fn, .userData = p->userData};
    return rt_code(rt_driver.cuGraphAddHostNode(node, graph, needs, count, &host));
}

static cudaError_t add_set(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *needs,
                           size_t count, const struct cudaMemsetParams *p) {
    CUcontext context = NULL;
    if (p == NULL) {
        return cudaErrorInvalidValue;
    }
    rt_driver.cuCtxGetCurrent(&context);
    CUDA_MEMSET_NODE_PARAMS set = {.dst = (CUdeviceptr)(uintptr_t)p->dst,
                                   .pitch = p->pitch,
                                   .value = p->value,
                                   .elementSize = p->elementSize,
                                   .width = p->width,
                                   .height = p->height};
    return rt_code(rt_driver.cuGraphAddMemsetNode(node, graph, needs, count, &set, context));
}

#define NODE_PARAMETERS                                                                            \
    cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *needs, size_t count

RT_PLAIN(cudaGraphExecUpdate,
         (cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info),
         update(exec, graph, info))
RT_PLAIN(cudaGraphAddEmptyNode, (NODE_PARAMETERS),
         rt_code(rt_driver.cuGraphAddEmptyNode(node, graph, needs, count)))
RT_PLAIN(cudaGraphAddChildGraphNode, (NODE_PARAMETERS, cudaGraph_t child),
         rt_code(rt_driver.cuGraphAddChildGraphNode(node, graph, needs, count, child)))
RT_PLAIN(cudaGraphAddHostNode, (NODE_PARAMETERS, const struct cudaHostNodeParams *p),
         add_host(node, graph, needs, count, p))
RT_CALL(cudaGraphAddMemsetNode, (NODE_PARAMETERS, const struct cudaMemsetParams *p),
        add_set(node, graph, needs, count, p))

// ---- what graphs consist of ----

RT_PLAIN(cudaGraphGetRootNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count),
         rt_code(rt_driver.cuGraphGetRootNodes(graph, nodes, count)))
RT_PLAIN(cudaGraphNodeGetType, (cudaGraphNode_t node, enum cudaGraphNodeType *type),
         rt_code(rt_driver.cuGraphNodeGetType(node, (CUgraphNodeType *)(void *)type)))
RT_PLAIN(cudaGraphDestroyNode, (cudaGraphNode_t node), rt_code(rt_driver.cuGraphDestroyNode(node)))
RT_PLAIN(cudaGraphChildGraphNodeGetGraph, (cudaGraphNode_t node, cudaGraph_t *child),
         rt_code(rt_driver.cuGraphChildGraphNodeGetGraph(node, child)))
RT_PLAIN(cudaGraphExecGetFlags, (cudaGraphExec_t exec, unsigned long long *flags),
         rt_code(rt_driver.cuGraphExecGetFlags(exec, (cuuint64_t *)flags)))

// ---- libraries ----

RT_CALL(cudaLibraryLoadData,
        (cudaLibrary_t * library, const void *image, enum cudaJitOption *options, void **values,
         unsigned count, enum cudaLibraryOption *library_options, void **library_values,
         unsigned library_count),
        rt_code(rt_driver.cuLibraryLoadData(library, image, (CUjit_option *)(void *)options, values,
                                            count, (CUlibraryOption *)(void *)library_options,
                                            library_values, library_count)))
RT_CALL(cudaLibraryUnload, (cudaLibrary_t library), rt_code(rt_driver.cuLibraryUnload(library)))
RT_CALL(cudaLibraryGetKernel, (cudaKernel_t * kernel, cudaLibrary_t library, const char *name),
        rt_code(rt_driver.cuLibraryGetKernel(kernel, library, name)))
