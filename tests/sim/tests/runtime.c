// The runtime, shared and static: what cudaMalloc and its kin answer, errors, devices, threads.
#include "tests/sim/tests/check.h"

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

int main(void) {
    allocations();
    copies();
    devices();
    entry_points();
    return 0;
}
