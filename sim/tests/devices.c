// Several devices and parts of one: peer access, copies between devices, green contexts.
#include "sim/tests/check.h"

#include "kernels_ptx.h"
#include <cuda.h>
#include <string.h>

static CUcontext contexts[2];

static CUresult poke(CUdeviceptr address) {
    CUmodule module = NULL;
    CUfunction function = NULL;
    unsigned value = 'p';
    DO(cuModuleLoadData(&module, kernels_ptx));
    DO(cuModuleGetFunction(&function, module, "poke"));
    DO(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&address, &value}, NULL));
    return cuCtxSynchronize();
}

static void peer_access(void) {
    CUdeviceptr memory = 0, here = 0;
    int can = -1;
    char byte = 0;
    DO(cuDeviceCanAccessPeer(&can, 0, 1));
    CHECK(can == 1);
    DO(cuDeviceCanAccessPeer(&can, 0, 0));
    CHECK(can == 0);
    DO(cuCtxSetCurrent(contexts[1]));
    DO(cuMemAlloc(&memory, 1));
    DO(cuMemsetD8(memory, 'a', 1));
    DO(cuCtxSynchronize());
    DO(cuCtxSetCurrent(contexts[0]));
    DO(cuMemAlloc(&here, 1));
    DO(cuMemcpyPeer(here, contexts[0], memory, contexts[1], 1)); // copies need no access
    DO(cuMemcpyDtoH(&byte, here, 1));
    CHECK(byte == 'a');
    ANSWERS(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(contexts[1]));
    ANSWERS(CUDA_ERROR_INVALID_CONTEXT, cuCtxEnablePeerAccess(contexts[0], 0));
    DO(cuCtxEnablePeerAccess(contexts[1], 0));
    ANSWERS(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(contexts[1], 0));
    DO(poke(memory));
    DO(cuMemcpyDtoH(&byte, memory, 1));
    CHECK(byte == 'p');
    DO(cuCtxDisablePeerAccess(contexts[1]));
    ANSWERS(CUDA_ERROR_ILLEGAL_ADDRESS, poke(memory));
    ANSWERS(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemFree(here));
    DO(cuMemFree(memory)); // the other context is well
    DO(cuDevicePrimaryCtxReset(0));
    DO(cuDevicePrimaryCtxRetain(&contexts[0], 0));
}

static void green_contexts(void) {
    CUdevResource all, part[2], rest;
    CUdevResourceDesc description = NULL;
    CUgreenCtx green = NULL, found = NULL;
    CUcontext view = NULL, now = NULL;
    CUstream stream = NULL, plain = NULL;
    CUevent event = NULL;
    CUdeviceptr memory = 0;
    unsigned groups = 2;
    DO(cuCtxSetCurrent(contexts[0]));
    DO(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    DO(cuDevSmResourceSplitByCount(part, &groups, &all, &rest, 0, 16));
    CHECK(groups == 2 && part[0].sm.smCount >= 16);
    DO(cuDevResourceGenerateDesc(&description, part, 1));
    DO(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    DO(cuCtxFromGreenCtx(&view, green));
    CHECK(view != contexts[0]);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGreenCtxStreamCreate(&stream, green, 0, 0));
    DO(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    DO(cuStreamGetGreenCtx(stream, &found));
    CHECK(found == green);
    DO(cuCtxSetCurrent(view));
    DO(cuCtxGetCurrent(&now));
    CHECK(now == view);
    DO(cuMemAlloc(&memory, 1 << 22));
    DO(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    DO(cuMemsetD8Async(memory, 1, 1 << 22, stream));
    DO(cuCtxRecordEvent(contexts[0], event)); // the primary context covers its green ones
    DO(cuEventSynchronize(event));
    DO(cuStreamQuery(stream));
    DO(cuGreenCtxRecordEvent(green, event));
    DO(cuGreenCtxWaitEvent(green, event));
    DO(cuCtxRecordEvent(view, event));
    DO(cuCtxWaitEvent(view, event));
    DO(cuCtxSetCurrent(contexts[0]));
    DO(cuStreamCreate(&plain, 0));
    DO(cuStreamGetGreenCtx(plain, &found));
    CHECK(found == NULL);
    DO(cuMemFree(memory));
    DO(cuStreamDestroy(stream));
    DO(cuStreamDestroy(plain));
    DO(cuEventDestroy(event));
    DO(cuGreenCtxDestroy(green));
    ANSWERS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSetCurrent(view));
}

int main(void) {
    DO(cuInit(0));
    DO(cuDevicePrimaryCtxRetain(&contexts[0], 0));
    DO(cuDevicePrimaryCtxRetain(&contexts[1], 1));
    peer_access();
    green_contexts();
    return 0;
}
