// Graphs made by hand: nodes of each kind, edges, orders, children, updates, events.
#include "sim/tests/check.h"

#include "kernels_ptx.h"
#include <cuda.h>
#include <string.h>

static CUcontext context;
static CUfunction add_function, spin;
static CUdeviceptr memory;
static int calls;

static void CUDA_CB count_call(void *wanted) {
    CHECK(++calls == *(int *)wanted);
}

static CUDA_KERNEL_NODE_PARAMS adder(void **parameters) {
    return (CUDA_KERNEL_NODE_PARAMS){.func = add_function,
                                     .gridDimX = 1,
                                     .gridDimY = 1,
                                     .gridDimZ = 1,
                                     .blockDimX = 32,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .kernelParams = parameters};
}

static unsigned word(void) {
    unsigned value = 0;
    DO(cuMemcpyDtoH(&value, memory, 4));
    return value;
}

static void set_then_add(void) {
    CUgraph graph = NULL, copy = NULL;
    CUgraphExec exec = NULL;
    CUgraphNode set = NULL, add = NULL, host = NULL, found[8], roots[8];
    unsigned addend = 5;
    unsigned long long one = 1;
    int wanted = 1;
    size_t count = 8;
    CUDA_MEMSET_NODE_PARAMS zero = {
        .dst = memory, .value = 7, .elementSize = 4, .width = 1, .height = 1};
    CUDA_KERNEL_NODE_PARAMS kernel = adder((void *[]){&memory, &one, &addend});
    CUDA_HOST_NODE_PARAMS call = {count_call, &wanted};
    DO(cuGraphCreate(&graph, 0));
    DO(cuGraphAddKernelNode(&add, graph, NULL, 0, &kernel));
    DO(cuGraphAddMemsetNode(&set, graph, NULL, 0, &zero, context));
    DO(cuGraphAddDependencies(graph, &set, &add, NULL, 1)); // the later-made one goes first
    DO(cuGraphAddHostNode(&host, graph, &add, 1, &call));
    DO(cuGraphGetNodes(graph, found, &count));
    CHECK(count == 3);
    count = 8;
    DO(cuGraphGetRootNodes(graph, roots, &count));
    CHECK(count == 1 && roots[0] == set);
    DO(cuGraphClone(&copy, graph));
    DO(cuGraphInstantiate(&exec, copy, 0));
    DO(cuGraphDestroy(copy));
    for (wanted = 1; wanted <= 5; wanted++) {
        DO(cuGraphLaunch(exec, NULL));
        CHECK(word() == 12);
    }
    DO(cuGraphExecDestroy(exec));

    DO(cuGraphInstantiate(&exec, graph, 0));
    addend = 6;
    kernel = adder((void *[]){&memory, &one, &addend});
    DO(cuGraphExecKernelNodeSetParams(exec, add, &kernel));
    DO(cuGraphLaunch(exec, NULL));
    CHECK(word() == 13);
    wanted++;
    zero.value = 100;
    DO(cuGraphMemsetNodeSetParams(set, &zero));
    CUgraphExecUpdateResultInfo info;
    DO(cuGraphExecUpdate(exec, graph, &info));
    DO(cuGraphLaunch(exec, NULL));
    CHECK(word() == 105);
    DO(cuGraphDestroyNode(host));
    ANSWERS(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, graph, &info));
    DO(cuGraphAddDependencies(graph, &add, &set, NULL, 1));
    CUgraphExec none = NULL;
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&none, graph, 0)); // a cycle
    DO(cuGraphExecDestroy(exec));
    DO(cuGraphDestroy(graph));
}

static void children_and_events(void) {
    CUgraph inner = NULL, outer = NULL;
    CUgraphExec exec = NULL;
    CUgraphNode set = NULL, child = NULL, record = NULL;
    CUevent event = NULL;
    CUstream stream = NULL;
    CUDA_MEMSET_NODE_PARAMS value = {
        .dst = memory, .value = 42, .elementSize = 4, .width = 1, .height = 1};
    DO(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    DO(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    DO(cuGraphCreate(&inner, 0));
    DO(cuGraphCreate(&outer, 0));
    DO(cuGraphAddMemsetNode(&set, inner, NULL, 0, &value, context));
    DO(cuGraphAddChildGraphNode(&child, outer, NULL, 0, inner));
    DO(cuGraphAddEventRecordNode(&record, outer, &child, 1, event));
    DO(cuGraphDestroy(inner)); // the child is a copy
    DO(cuGraphInstantiate(&exec, outer, 0));
    DO(cuGraphLaunch(exec, stream));
    DO(cuEventSynchronize(event));
    CHECK(word() == 42);
    DO(cuGraphExecDestroy(exec));
    DO(cuGraphDestroy(outer));
    DO(cuEventDestroy(event));
    DO(cuStreamDestroy(stream));
}

static void a_launch_may_outlive_its_graph(void) {
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUgraphNode node = NULL;
    CUDA_MEMSET_NODE_PARAMS value = {
        .dst = memory, .value = 9, .elementSize = 4, .width = 1, .height = 1};
    DO(cuGraphCreate(&graph, 0));
    DO(cuGraphAddMemsetNode(&node, graph, NULL, 0, &value, context));
    DO(cuGraphInstantiate(&exec, graph, 0));
    DO(cuGraphLaunch(exec, NULL));
    DO(cuGraphExecDestroy(exec));
    DO(cuGraphDestroy(graph));
    CHECK(word() == 9);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, NULL));
}

static size_t free_memory(void) {
    size_t free_bytes = 0, total = 0;
    DO(cuMemGetInfo(&free_bytes, &total));
    return free_bytes;
}

static void memory_lasts_as_long_as_its_launches(void) {
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUgraphNode node = NULL;
    unsigned long long microseconds = 20000;
    CUDA_MEM_ALLOC_NODE_PARAMS wanted = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
        .bytesize = 4 << 20};
    size_t before = free_memory();
    DO(cuGraphCreate(&graph, 0));
    DO(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &wanted));
    DO(cuGraphInstantiate(&exec, graph, 0));
    DO(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&microseconds}, NULL));
    DO(cuGraphLaunch(exec, NULL));
    DO(cuGraphExecDestroy(exec));
    DO(cuGraphDestroy(graph));
    CHECK(free_memory() < before);
    DO(cuCtxSynchronize());
    CHECK(free_memory() == before);
}

int main(void) {
    CUmodule module = NULL;
    DO(cuInit(0));
    DO(cuDevicePrimaryCtxRetain(&context, 0));
    DO(cuCtxSetCurrent(context));
    DO(cuModuleLoadData(&module, kernels_ptx));
    DO(cuModuleGetFunction(&add_function, module, "add"));
    DO(cuModuleGetFunction(&spin, module, "spin"));
    DO(cuMemAlloc(&memory, 4));
    set_then_add();
    children_and_events();
    a_launch_may_outlive_its_graph();
    memory_lasts_as_long_as_its_launches();
    return 0;
}
