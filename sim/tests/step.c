// SIM_STEP: work goes by driver calls, in its streams' order; waits go ahead; a kernel that waits
// for the host is asked again; one thread sees the same each time. SIM_FAIL=random: calls are
// refused without being made, with codes that are documented for them.
#include "sim/tests/check.h"

#include <cuda.h>
#include <kernels_ptx.h>
#include <string.h>
#include <unistd.h>

static CUfunction kernel(const char *name) {
    static CUmodule module;
    CUfunction function = NULL;
    if (module == NULL) {
        DO(cuModuleLoadData(&module, kernels_ptx));
    }
    DO(cuModuleGetFunction(&function, module, name));
    return function;
}

static void launch(CUfunction function, CUstream stream, void **parameters) {
    DO(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

// Work of one stream is in order, and is done by calls alone.
static void work_goes_by_calls(void) {
    CUstream stream = NULL;
    CUdeviceptr memory = 0;
    char bytes[512];
    int calls = 0;
    DO(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    DO(cuMemAlloc(&memory, sizeof bytes));
    for (unsigned char value = 1; value <= 8; value++) {
        DO(cuMemsetD8Async(memory, value, sizeof bytes, stream));
    }
    while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) {
        calls++;
    }
    CHECK(calls > 0);
    DO(cuMemsetD8Async(memory, 9, sizeof bytes, stream));
    DO(cuMemcpyDtoHAsync(bytes, memory, sizeof bytes, stream));
    CHECK(bytes[0] == 9 && bytes[sizeof bytes - 1] == 9);
    DO(cuMemFree(memory));
    DO(cuStreamDestroy(stream));
}

static void kernels_wait_for_the_host(void) {
    CUfunction wait_flag = kernel("wait_flag");
    CUstream held = NULL, other = NULL;
    uint32_t *flag = NULL, value = 1;
    DO(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
    DO(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    DO(cuMemHostAlloc((void **)&flag, sizeof *flag, CU_MEMHOSTALLOC_DEVICEMAP));
    *flag = 0;
    CUdeviceptr at = (uintptr_t)flag;
    launch(wait_flag, held, (void *[]){&at, &value});
    launch(wait_flag, other, (void *[]){&at, &(uint32_t){0}});
    DO(cuStreamSynchronize(other));
    ANSWERS(CUDA_ERROR_NOT_READY, cuStreamQuery(held));
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    DO(cuStreamSynchronize(held));
    // The host waits without calling: somebody looks on.
    value = 2;
    CUfunction set_flag = kernel("set_flag");
    launch(set_flag, held, (void *[]){&at, &value});
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != 2) {
        usleep(1000);
    }
    DO(cuStreamSynchronize(held));
    DO(cuMemFreeHost(flag));
    DO(cuStreamDestroy(held));
    DO(cuStreamDestroy(other));
}

static void calls_are_refused(void) {
    CUdeviceptr memory = 0;
    unsigned refused = 0, invalid = 0;
    for (int i = 0; i < 400; i++) {
        CUresult result =
            cuEventQuery(NULL); // of no event: CUDA_ERROR_INVALID_HANDLE if it is made
        invalid += result == CUDA_ERROR_INVALID_HANDLE;
        refused += result != CUDA_ERROR_INVALID_HANDLE;
        CHECK(result == CUDA_ERROR_INVALID_HANDLE || result == CUDA_ERROR_INVALID_VALUE ||
              result == CUDA_ERROR_NOT_READY || result == CUDA_ERROR_DEINITIALIZED ||
              result == CUDA_ERROR_NOT_INITIALIZED);
    }
    CHECK(refused > 20 && invalid > 200);
    DO(cuMemAlloc(&memory, 512)); // not among the names
    DO(cuMemFree(memory));
}

int main(void) {
    CUcontext context = NULL;
    setenv("SIM_STEP", "50", 1);
    setenv("SIM_SEED", "3", 1);
    setenv("SIM_FAIL", "random:7:5:cuEventQuery+cuEventSynchronize", 1);
    DO(cuInit(0));
    DO(cuDevicePrimaryCtxRetain(&context, 0));
    DO(cuCtxSetCurrent(context));
    work_goes_by_calls();
    kernels_wait_for_the_host();
    calls_are_refused();
    return 0;
}
