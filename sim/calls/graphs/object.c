// cuUserObject…: objects of the program that graphs, their clones and what is instantiated from
// them keep alive. Guarded by the lock.
#include "sim/base/handle.h"
#include "sim/border/border.h"
#include "sim/graph/graph.h"

static CUresult create(CUuserObject *out, void *data, CUhostFn destroy, unsigned references,
                       unsigned flags) {
    if (out == NULL || destroy == NULL || references == 0 ||
        flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = sim_object_new(data, destroy, references);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult retain(CUuserObject object, unsigned count) {
    if (!sim_handle_is(object, SIM_OBJECT) || count == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    object->references += count;
    return CUDA_SUCCESS;
}

static CUresult release(CUuserObject object, unsigned count) {
    if (!sim_handle_is(object, SIM_OBJECT) || count == 0 || count > object->references) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_object_release(object, count);
    return CUDA_SUCCESS;
}

static CUresult give(CUgraph graph, CUuserObject object, unsigned count, unsigned flags) {
    if (!sim_handle_is(graph, SIM_GRAPH) || !sim_handle_is(object, SIM_OBJECT) || count == 0 ||
        (flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sim_objects_add(&graph->objects, object, count)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    object->references += flags & CU_GRAPH_USER_OBJECT_MOVE ? 0 : count;
    return CUDA_SUCCESS;
}

static CUresult take(CUgraph graph, CUuserObject object, unsigned count) {
    if (!sim_handle_is(graph, SIM_GRAPH) || !sim_handle_is(object, SIM_OBJECT) || count == 0 ||
        count > sim_objects_count(&graph->objects, object)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_objects_remove(&graph->objects, object, count);
    return CUDA_SUCCESS;
}

SIM_CALL(cuUserObjectCreate, SIM_READY,
         (CUuserObject * object, void *data, CUhostFn destroy, unsigned references, unsigned flags),
         create(object, data, destroy, references, flags))
SIM_CALL(cuUserObjectRetain, SIM_READY, (CUuserObject object, unsigned count),
         retain(object, count))
SIM_CALL(cuUserObjectRelease, SIM_READY, (CUuserObject object, unsigned count),
         release(object, count))
SIM_CALL(cuGraphRetainUserObject, SIM_READY,
         (CUgraph graph, CUuserObject object, unsigned count, unsigned flags),
         give(graph, object, count, flags))
SIM_CALL(cuGraphReleaseUserObject, SIM_READY, (CUgraph graph, CUuserObject object, unsigned count),
         take(graph, object, count))
