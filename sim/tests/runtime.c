// The runtime, shared and static: what cudaMalloc and its kin answer, errors, devices, threads.
#include "sim/runtime/nvcc.h"
#include "sim/tests/check.h"

#include "kernels_ptx.h"
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

static void allocations(void) {
    void *memory = &memory;
    size_t free_bytes = 0, total = 0;
    DO(cudaFree(NULL)); // the usual way to initialise
    DO(cudaMalloc(&memory, 0));
    CHECK(memory == NULL);
    ANSWERS(cudaErrorInvalidValue, cudaMalloc(NULL, 1));
    ANSWERS(cudaErrorInvalidValue, cudaGetLastError());
    ANSWERS(cudaSuccess, cudaGetLastError());
    DO(cudaMemGetInfo(&free_bytes, &total));
    ANSWERS(cudaErrorMemoryAllocation, cudaMalloc(&memory, total + 1));
    ANSWERS(cudaErrorMemoryAllocation, cudaPeekAtLastError());
    ANSWERS(cudaErrorMemoryAllocation, cudaGetLastError());
    DO(cudaMalloc(&memory, 1000));
    ANSWERS(cudaErrorInvalidValue, cudaFree((char *)memory + 512));
    DO(cudaFree(memory));
    ANSWERS(cudaErrorInvalidValue, cudaFree(memory));
    cudaGetLastError();
    CHECK(strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation") == 0);
    CHECK(strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory") == 0);
}

static void copies(void) {
    char *pinned = NULL, back[4096];
    void *memory = NULL;
    cudaStream_t stream = NULL;
    cudaEvent_t event = NULL;
    struct cudaPointerAttributes tells;
    DO(cudaMallocHost((void **)&pinned, 4096));
    DO(cudaMalloc(&memory, 4096));
    DO(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    DO(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    memset(pinned, 'x', 4096);
    DO(cudaMemcpyAsync(memory, pinned, 4096, cudaMemcpyHostToDevice, stream));
    DO(cudaMemset2DAsync((char *)memory + 8, 64, 'y', 4, 2, stream));
    DO(cudaEventRecord(event, stream));
    DO(cudaStreamWaitEvent(NULL, event, 0));
    DO(cudaMemcpy(back, memory, 4096, cudaMemcpyDefault));
    CHECK(memcmp(back, "xxxxxxxxyyyyx", 13) == 0 && back[72] == 'y' && back[76] == 'x');
    DO(cudaPointerGetAttributes(&tells, pinned));
    CHECK(tells.type == cudaMemoryTypeHost && tells.devicePointer == pinned);
    DO(cudaPointerGetAttributes(&tells, (char *)memory + 1));
    CHECK(tells.type == cudaMemoryTypeDevice && tells.hostPointer == NULL && tells.device == 0);
    DO(cudaPointerGetAttributes(&tells, back));
    CHECK(tells.type == cudaMemoryTypeUnregistered);
    DO(cudaEventDestroy(event));
    DO(cudaStreamDestroy(stream));
    DO(cudaFree(memory));
    DO(cudaFreeHost(pinned));
}

static void *second_thread(void *memory) {
    int device = -1;
    DO(cudaGetDevice(&device));
    CHECK(device == 0); // each thread begins with device 0
    DO(cudaFree(memory));
    return NULL;
}

static void devices(void) {
    int count = 0, device = -1;
    void *memory = NULL;
    pthread_t thread;
    struct cudaPointerAttributes tells;
    DO(cudaGetDeviceCount(&count));
    CHECK(count == 2);
    ANSWERS(cudaErrorInvalidDevice, cudaSetDevice(2));
    cudaGetLastError();
    DO(cudaSetDevice(1));
    DO(cudaGetDevice(&device));
    CHECK(device == 1);
    DO(cudaMalloc(&memory, 1));
    DO(cudaPointerGetAttributes(&tells, memory));
    CHECK(tells.device == 1);
    CHECK(pthread_create(&thread, NULL, second_thread, memory) == 0);
    pthread_join(thread, NULL);
    DO(cudaMalloc(&memory, 1));
    DO(cudaDeviceReset());
    ANSWERS(cudaErrorInvalidValue, cudaFree(memory));
    DO(cudaMalloc(&memory, 1));
    DO(cudaFree(memory));
    DO(cudaSetDevice(0));
}

static void entry_points(void) {
    void *found = NULL;
    enum cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
    DO(cudaGetDriverEntryPointByVersion("cuMemAlloc", &found, 12000, cudaEnableDefault, &status));
    CHECK(found != NULL && status == cudaDriverEntryPointSuccess);
    DO(cudaGetDriverEntryPointByVersion("cuNoSuch", &found, 12000, cudaEnableDefault, &status));
    CHECK(found == NULL && status == cudaDriverEntryPointSymbolNotFound);
}

static void kernels_and_graphs(void) {
    cudaLibrary_t library = NULL;
    cudaKernel_t fill = NULL;
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    void *memory = NULL;
    unsigned long long count = 100;
    unsigned value = 'g';
    char back[100];
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    DO(cudaLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
    DO(cudaLibraryGetKernel(&fill, library, "fill"));
    DO(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    DO(cudaMalloc(&memory, count));
    DO(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    DO(cudaLaunchKernel(fill, (dim3){1, 1, 1}, (dim3){32, 1, 1},
                        (void *[]){&memory, &count, &value}, 0, stream));
    DO(cudaStreamIsCapturing(stream, &status));
    CHECK(status == cudaStreamCaptureStatusActive);
    DO(cudaStreamEndCapture(stream, &graph));
    DO(cudaGraphInstantiate(&exec, graph, 0));
    DO(cudaGraphLaunch(exec, stream));
    DO(cudaMemcpyAsync(back, memory, count, cudaMemcpyDeviceToHost, stream));
    DO(cudaStreamSynchronize(stream));
    CHECK(back[0] == 'g' && back[99] == 'g');
    DO(cudaGraphExecDestroy(exec));
    DO(cudaGraphDestroy(graph));
    DO(cudaFreeAsync(memory, stream));
    DO(cudaMallocAsync(&memory, count, stream));
    DO(cudaFreeAsync(memory, stream));
    DO(cudaStreamDestroy(stream));
    DO(cudaLibraryUnload(library));
    ANSWERS(cudaErrorInvalidDeviceFunction,
            cudaLaunchKernel(fill, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL));
    cudaGetLastError();
}

// Of four rows in each slice only the first two, and all.
static void sets_of_slices(struct cudaPitchedPtr memory) {
    char *start = memory.ptr, back[3] = "";
    DO(cudaMemset3D(memory, 'a', (struct cudaExtent){100, 4, 3}));
    DO(cudaMemset3DAsync(memory, 'b', (struct cudaExtent){99, 2, 3}, NULL));
    DO(cudaMemcpy(back, start + 9 * memory.pitch + 98, 2, cudaMemcpyDefault)); // the last slice's
    CHECK(strcmp(back, "ba") == 0);
    DO(cudaMemcpy(back, start + 10 * memory.pitch + 98, 2, cudaMemcpyDefault));
    CHECK(strcmp(back, "aa") == 0);
}

static void textures(cudaArray_t array, struct cudaChannelFormatDesc floats) {
    struct cudaTextureDesc how = {.readMode = cudaReadModeElementType};
    struct cudaResourceDesc what = {.resType = cudaResourceTypeArray, .res.array.array = array};
    cudaTextureObject_t first = 0, second = 0;
    void *memory = NULL;
    DO(cudaCreateTextureObject(&first, &what, &how, NULL));
    DO(cudaMalloc(&memory, 4096));
    what = (struct cudaResourceDesc){.resType = cudaResourceTypeLinear,
                                     .res.linear = {memory, floats, 4096}};
    DO(cudaCreateTextureObject(&second, &what, &how, NULL));
    CHECK(first != second);
    DO(cudaDestroyTextureObject(first));
    DO(cudaDestroyTextureObject(second));
    ANSWERS(cudaErrorInvalidValue, cudaDestroyTextureObject(second));
    what.res.linear.devPtr = (char *)memory + 16; // not aligned as the device says
    ANSWERS(cudaErrorInvalidValue, cudaCreateTextureObject(&second, &what, &how, NULL));
    cudaGetLastError();
    DO(cudaFree(memory));
}

// As nvcc's code does it: an address of the host stands for the variable.
static void symbols(void) {
    static const char ptx[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                              ".visible .global .align 4 .b8 table[64];\n";
    static char shadow[64], unknown;
    char back[8] = "";
    void *start = NULL;
    size_t size = 0;
    cudaStream_t stream = NULL;
    void **handle = __cudaRegisterFatBinary((void *)(uintptr_t)ptx);
    __cudaRegisterVar(handle, shadow, shadow, "table", 0, sizeof shadow, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
    DO(cudaMemcpyToSymbol(shadow, "abcdefg", 8, 56, cudaMemcpyHostToDevice));
    DO(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    DO(cudaMemcpyToSymbolAsync(shadow, "xy", 2, 57, cudaMemcpyHostToDevice, stream));
    DO(cudaMemcpyFromSymbolAsync(back, shadow, 8, 56, cudaMemcpyDeviceToHost, stream));
    DO(cudaStreamSynchronize(stream));
    CHECK(strcmp(back, "axydefg") == 0);
    DO(cudaGetSymbolSize(&size, shadow));
    DO(cudaGetSymbolAddress(&start, shadow));
    DO(cudaMemcpy(back, (char *)start + 56, 8, cudaMemcpyDefault));
    CHECK(size == sizeof shadow && strcmp(back, "axydefg") == 0);
    ANSWERS(cudaErrorInvalidValue, cudaMemcpyToSymbol(shadow, back, 8, 57, cudaMemcpyHostToDevice));
    ANSWERS(cudaErrorInvalidSymbol,
            cudaMemcpyToSymbol(&unknown, back, 1, 0, cudaMemcpyHostToDevice));
    cudaGetLastError();
    DO(cudaDeviceReset()); // the next life has a table of its own
    DO(cudaMemcpyFromSymbol(back, shadow, 8, 56, cudaMemcpyDeviceToHost));
    CHECK(back[0] == 0);
    __cudaUnregisterFatBinary(handle);
}

static void other_memories(void) {
    struct cudaPitchedPtr pitched;
    cudaArray_t array = NULL;
    struct cudaChannelFormatDesc floats = {32, 0, 0, 0, cudaChannelFormatKindFloat};
    float in[6] = {1, 2, 3, 4, 5, 6}, out[6] = {0};
    char *managed = NULL;
    int can = 0;
    DO(cudaMalloc3D(&pitched, (struct cudaExtent){100, 4, 3}));
    CHECK(pitched.pitch >= 100 && pitched.ysize == 4);
    sets_of_slices(pitched);
    DO(cudaFree(pitched.ptr));
    DO(cudaMallocArray(&array, &floats, 3, 2, 0));
    struct cudaMemcpy3DParms to = {.srcPtr = {in, 12, 3, 2},
                                   .dstArray = array,
                                   .extent = {3, 2, 1},
                                   .kind = cudaMemcpyHostToDevice};
    struct cudaMemcpy3DParms from = {.srcArray = array,
                                     .dstPtr = {out, 12, 3, 2},
                                     .extent = {3, 2, 1},
                                     .kind = cudaMemcpyDeviceToHost};
    DO(cudaMemcpy3D(&to));
    DO(cudaMemcpy3D(&from));
    CHECK(memcmp(in, out, sizeof in) == 0);
    float row[3] = {7, 8, 9};
    cudaStream_t stream = NULL;
    DO(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    DO(cudaMemcpy2DToArrayAsync(array, 4, 1, row, 12, 8, 1, cudaMemcpyHostToDevice, stream));
    DO(cudaStreamSynchronize(stream));
    DO(cudaMemcpy2DFromArray(out, 12, array, 0, 0, 12, 2, cudaMemcpyDeviceToHost));
    CHECK(out[2] == 3 && out[3] == 4 && out[4] == 7 && out[5] == 8);
    DO(cudaStreamDestroy(stream));
    textures(array, floats);
    DO(cudaFreeArray(array));
    DO(cudaMallocManaged((void **)&managed, 10, cudaMemAttachGlobal));
    DO(cudaMemset(managed, 3, 10));
    DO(cudaDeviceSynchronize());
    CHECK(managed[9] == 3);
    DO(cudaFree(managed));
    DO(cudaDeviceCanAccessPeer(&can, 0, 1));
    CHECK(can == 1);
    DO(cudaDeviceEnablePeerAccess(1, 0));
    DO(cudaDeviceDisablePeerAccess(1));
}

int main(void) {
    allocations();
    copies();
    devices();
    entry_points();
    kernels_and_graphs();
    other_memories();
    symbols();
    return 0;
}
