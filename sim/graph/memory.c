// Memory that a graph allocates: taken when its node is made, given back with the last graph that
// holds it. Guarded by the lock.
#include "sim/graph/memory.h"

#include "sim/device/context.h"
#include "sim/memory/allocate.h"

#include <stdlib.h>

struct sim_graph_memory {
    unsigned references;
    struct CUctx_st *context;
    unsigned long long life; // the context's id
    CUdeviceptr start;
};

CUresult sim_graph_memory_new(struct CUctx_st *context, size_t size, struct sim_graph_memory **out,
                              CUdeviceptr *address) {
    struct sim_allocation *allocation = NULL;
    CUresult result = sim_allocate(context, size, SIM_GRAPH_MEMORY, &allocation);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    *out = malloc(sizeof **out);
    if (*out == NULL) {
        sim_allocation_end(allocation);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    **out = (struct sim_graph_memory){
        .references = 1, .context = context, .life = context->id, .start = allocation->start};
    *address = allocation->start;
    return CUDA_SUCCESS;
}

struct sim_graph_memory *sim_graph_memory_hold(struct sim_graph_memory *memory) {
    if (memory != NULL) {
        memory->references++;
    }
    return memory;
}

void sim_graph_memory_release(struct sim_graph_memory *memory) {
    if (memory == NULL || --memory->references > 0) {
        return;
    }
    struct sim_allocation *allocation = NULL;
    if (memory->context->alive && memory->context->id == memory->life) {
        allocation = sim_allocation_at(memory->start);
    }
    if (allocation != NULL && allocation->kind == SIM_GRAPH_MEMORY) {
        sim_allocation_end(allocation);
    }
    free(memory);
}
