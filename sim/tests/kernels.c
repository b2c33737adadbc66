// Kernels: loaded as PTX, launched by name, in order with copies; registered host code; an illegal
// access stays the context's error until the context ends.
#include "sim/kernel.h"
#include "sim/tests/check.h"

#include "kernels_ptx.h"
#include <cuda.h>
#include <dlfcn.h>
#include <string.h>

static CUmodule module;

static CUfunction function(const char *name) {
    CUfunction found = NULL;
    DO(cuModuleGetFunction(&found, module, name));
    return found;
}

static int launch(const char *name, CUstream stream, void **parameters) {
    return (int)cuLaunchKernel(function(name), 4, 1, 1, 64, 1, 1, 0, stream, parameters, NULL);
}

static void in_order_with_copies(void) {
    unsigned char back[1000];
    unsigned value = 'k', addend = 0x01010101;
    unsigned long long count = sizeof back, words = sizeof back / 4, us = 2000;
    CUdeviceptr memory = 0, copied = 0;
    CUstream stream = NULL;
    DO(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    DO(cuMemAlloc(&memory, count));
    DO(cuMemAlloc(&copied, count));
    DO(launch("slow_fill", stream, (void *[]){&memory, &count, &value, &us}));
    DO(launch("copy", stream, (void *[]){&copied, &memory, &count}));
    DO(launch("add", stream, (void *[]){&copied, &words, &addend}));
    value = 0; // parameters were copied
    DO(cuMemcpyDtoHAsync(back, copied, count, stream));
    DO(cuStreamSynchronize(stream));
    CHECK(back[0] == 'l' && back[999] == 'l');
    DO(cuMemcpyDtoH(back, memory, count));
    CHECK(back[0] == 'k' && back[999] == 'k');

    CUdeviceptr wrong = 0;
    unsigned found = 7;
    DO(cuMemAlloc(&wrong, 4));
    DO(cuMemsetD32(wrong, 0, 1));
    value = 'k';
    DO(launch("check", NULL, (void *[]){&memory, &count, &value, &wrong}));
    DO(cuMemcpyDtoH(&found, wrong, 4));
    CHECK(found == 0);
    value = 'x';
    DO(launch("check", NULL, (void *[]){&memory, &count, &value, &wrong}));
    DO(cuMemcpyDtoH(&found, wrong, 4));
    CHECK(found == count);
    DO(cuMemFree(wrong));
    DO(cuMemFree(memory));
    DO(cuMemFree(copied));
    DO(cuStreamDestroy(stream));
}

// What the stand-in is for: memory that is used again before earlier work with it is done.
static void early_reuse_shows(void) {
    unsigned char back[64];
    unsigned first = 'a', second = 'b';
    unsigned long long count = sizeof back, us = 20000;
    CUdeviceptr memory = 0;
    CUstream slow = NULL, quick = NULL;
    DO(cuStreamCreate(&slow, CU_STREAM_NON_BLOCKING));
    DO(cuStreamCreate(&quick, CU_STREAM_NON_BLOCKING));
    DO(cuMemAlloc(&memory, count));
    DO(launch("slow_fill", slow, (void *[]){&memory, &count, &first, &us}));
    DO(launch("fill", quick, (void *[]){&memory, &count, &second})); // without waiting
    DO(cuCtxSynchronize());
    DO(cuMemcpyDtoH(back, memory, count));
    CHECK(back[0] == 'a');
    DO(cuMemFree(memory));
    DO(cuStreamDestroy(slow));
    DO(cuStreamDestroy(quick));
}

static void flags_across_streams(void) {
    unsigned *flag = NULL, one = 1;
    CUstream waiter = NULL, setter = NULL;
    DO(cuMemAllocHost((void **)&flag, 4));
    *flag = 0;
    DO(cuStreamCreate(&waiter, CU_STREAM_NON_BLOCKING));
    DO(cuStreamCreate(&setter, CU_STREAM_NON_BLOCKING));
    DO(launch("wait_flag", waiter, (void *[]){&flag, &one}));
    ANSWERS(CUDA_ERROR_NOT_READY, cuStreamQuery(waiter));
    DO(launch("set_flag", setter, (void *[]){&flag, &one}));
    DO(cuStreamSynchronize(waiter));
    DO(cuStreamDestroy(waiter));
    DO(cuStreamDestroy(setter));
    DO(cuMemFreeHost(flag));
}

static int twice(const struct sim_launch *launch) {
    uint64_t address = 0;
    memcpy(&address, launch->parameters[0], sizeof address);
    uint32_t *word = (uint32_t *)(void *)launch->reach(address, 4);
    *word *= 2 * launch->grid[0] * launch->block[0];
    return 0;
}

static void registered_code(void) {
    static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                              ".global .align 4 .u32 counter[3];\n"
                              ".visible .entry twice( .param .u64 word ) { ret; }\n";
    CUmodule own = NULL;
    CUfunction code = NULL;
    CUdeviceptr word = 0;
    size_t size = 0;
    unsigned value = 5;
    __typeof__(&sim_register_kernel) enregister = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, "sim_register_kernel");
    memcpy(&enregister, &symbol, sizeof enregister);
    CHECK(enregister != NULL);
    DO(cuModuleLoadData(&own, ptx));
    DO(cuModuleGetFunction(&code, own, "twice"));
    DO(cuModuleGetGlobal(&word, &size, own, "counter"));
    CHECK(size == 12);
    ANSWERS(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&code, own, "thrice"));
    DO(cuModuleGetFunction(&code, own, "twice"));
    ANSWERS(CUDA_ERROR_NOT_SUPPORTED,
            cuLaunchKernel(code, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&word}, NULL));
    CHECK(enregister("twice", twice) == 0);
    DO(cuMemcpyHtoD(word, &value, 4));
    size_t bytes = sizeof word;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &word, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    DO(cuLaunchKernel(code, 3, 1, 1, 2, 1, 1, 0, NULL, NULL, extra));
    DO(cuMemcpyDtoH(&value, word, 4));
    CHECK(value == 60);
    DO(cuModuleUnload(own));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE,
            cuLaunchKernel(code, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&word}, NULL));
}

static void bad_images_and_shapes(void) {
    CUmodule none = NULL;
    CUdeviceptr nothing = 0;
    ANSWERS(CUDA_ERROR_INVALID_PTX, cuModuleLoadData(&none, "nonsense"));
    ANSWERS(CUDA_ERROR_INVALID_PTX, cuModuleLoadData(&none, ".entry half("));
    ANSWERS(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&none, "\x7f"
                                                                  "ELF"));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function("spin"), 0, 1, 1, 1, 1, 1, 0, NULL,
                                                     (void *[]){&nothing}, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function("spin"), 1, 1, 1, 1025, 1, 1, 0, NULL,
                                                     (void *[]){&nothing}, NULL));
}

static void library_kernels(void) {
    CUlibrary library = NULL;
    CUkernel kernel = NULL;
    unsigned long long us = 1;
    DO(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
    DO(cuLibraryGetKernel(&kernel, library, "spin"));
    CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, NULL, NULL, 0};
    DO(cuLaunchKernelEx(&config, (CUfunction)(void *)kernel, (void *[]){&us}, NULL));
    DO(cuLibraryUnload(library));
}

static void illegal_access_sticks(void) {
    CUdeviceptr bad = 64, memory = 0;
    unsigned value = 1;
    CUstream stream = NULL;
    CUcontext context = NULL;
    DO(cuMemAlloc(&memory, 1));
    DO(cuStreamCreate(&stream, 0));
    DO(launch("poke", stream, (void *[]){&bad, &value}));
    ANSWERS(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
    ANSWERS(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc(&memory, 1));
    ANSWERS(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemFree(memory));
    ANSWERS(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemFree(0));
    ANSWERS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    DO(cuDevicePrimaryCtxReset(0));
    DO(cuDevicePrimaryCtxRetain(&context, 0));
    DO(cuMemAlloc(&memory, 1));
    DO(cuMemFree(memory));
}

int main(void) {
    CUcontext context = NULL;
    DO(cuInit(0));
    DO(cuDevicePrimaryCtxRetain(&context, 0));
    DO(cuCtxSetCurrent(context));
    DO(cuModuleLoadData(&module, kernels_ptx));
    in_order_with_copies();
    early_reuse_shows();
    flags_across_streams();
    registered_code();
    bad_images_and_shapes();
    library_kernels();
    illegal_access_sticks();
    return 0;
}
