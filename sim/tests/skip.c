// Code that the stand-in does not know, under SIM_KERNELS=skip: images of all kinds load, their
// kernels launch in order, take time and touch nothing. Without it they are refused (kernels.c).
// And what is not modelled is counted by its name.
#include "sim/border/stats.h"
#include "sim/runtime/nvcc.h"
#include "sim/tests/check.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <string.h>

static const unsigned fat[16] = {0xba55ed50}, wrapper[6] = {0x466243b1, 1};
static const char elf[64] = "\177ELF", ptx[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                                               ".visible .entry mine(.param .u64 a) { ret; }\n";

static void launches(CUfunction function, CUdeviceptr memory) {
    char back[64];
    CUstream stream = NULL;
    DO(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    DO(cuMemsetD8Async(memory, 'k', sizeof back, stream));
    DO(cuLaunchKernel(function, 4, 1, 1, 64, 1, 1, 1 << 16, stream, (void *[]){&memory}, NULL));
    DO(cuMemcpyDtoHAsync(back, memory, sizeof back, stream));
    DO(cuStreamSynchronize(stream));
    CHECK(back[0] == 'k' && back[63] == 'k');
    DO(cuStreamDestroy(stream));
}

static void module_of(const void *image, CUdeviceptr memory) {
    CUmodule module = NULL;
    CUfunction function = NULL, again = NULL;
    int value = 0;
    DO(cuModuleLoadData(&module, image));
    DO(cuModuleGetFunction(&function, module, "mine"));
    DO(cuModuleGetFunction(&again, module, "mine"));
    CHECK(again == function);
    DO(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
    CHECK(value == 1024);
    DO(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 16));
    DO(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 256, 0));
    CHECK(value > 0);
    launches(function, memory);
    DO(cuModuleUnload(module));
}

static void library_of(const void *image, CUdeviceptr memory) {
    CUlibrary library = NULL;
    CUkernel kernel = NULL;
    DO(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
    DO(cuLibraryGetKernel(&kernel, library, "mine"));
    launches((CUfunction)(void *)kernel, memory);
    DO(cuLibraryUnload(library));
}

// As nvcc's code does it: an address of the host stands for the kernel.
static void registered(void) {
    static char stub;
    static unsigned image[6];
    struct cudaFuncAttributes tells;
    int blocks = 0;
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL;
    memcpy(image, wrapper, sizeof image);
    void **handle = __cudaRegisterFatBinary(image);
    __cudaRegisterFunction(handle, &stub, NULL, "_Z4minev", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFatBinaryEnd(handle);
    // Its image is loaded at the first launch, in a capture too.
    DO(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    DO(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    DO(cudaLaunchKernel(&stub, (dim3){1, 1, 1}, (dim3){32, 1, 1}, NULL, 0, stream));
    DO(cudaStreamEndCapture(stream, &graph));
    DO(cudaGraphDestroy(graph));
    DO(cudaLaunchKernel(&stub, (dim3){1, 1, 1}, (dim3){32, 1, 1}, NULL, 0, stream));
    DO(cudaStreamSynchronize(stream));
    DO(cudaFuncGetAttributes(&tells, &stub));
    CHECK(tells.maxThreadsPerBlock == 1024);
    DO(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &stub, 1024, 0));
    CHECK(blocks == 2);
    __cudaUnregisterFatBinary(handle);
    ANSWERS(cudaErrorInvalidDeviceFunction,
            cudaLaunchKernel(&stub, (dim3){1, 1, 1}, (dim3){32, 1, 1}, NULL, 0, stream));
    DO(cudaStreamDestroy(stream));
}

static void refused(void) {
    CUmodule module = NULL;
    CUfunction function = NULL;
    DO(cuModuleLoadData(&module, ptx));
    ANSWERS(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&function, module, "other"));
    ANSWERS(CUDA_ERROR_INVALID_PTX, cuModuleLoadData(&module, "no PTX"));
}

static void counted(void) {
    ANSWERS(CUDA_ERROR_NOT_SUPPORTED, cuDestroyExternalMemory(NULL));
    ANSWERS(cudaErrorNotSupported, cudaGraphDebugDotPrint(NULL, NULL, 0));
    ANSWERS(cudaErrorNotSupported, cudaGetLastError());
    cudaGraphDebugDotPrint(NULL, NULL, 0);
    CHECK(sim_call_count("cuDestroyExternalMemory") == 1);
    CHECK(sim_call_count("cudaGraphDebugDotPrint") == 2);
}

int main(void) {
    CUcontext context = NULL;
    CUdeviceptr memory = 0;
    DO(cuInit(0));
    DO(cuDevicePrimaryCtxRetain(&context, 0));
    DO(cuCtxSetCurrent(context));
    DO(cuMemAlloc(&memory, 64));
    const void *images[] = {fat, wrapper, elf, ptx};
    for (int i = 0; i < 4; i++) {
        module_of(images[i], memory);
        library_of(images[i], memory);
    }
    registered();
    refused();
    counted();
    DO(cuMemFree(memory));
    return 0;
}
