/*
 * Holds device memory that it allocated under NVTX ranges and under tags of the public interface;
 * waits for the end of its standard input. Sizes tell the places apart.
 */
#include <cuda.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

#define BFCPRELOAD_WEAK
#include "interpose/api/bfcpreload.h"

static CUcontext shared;

static void must(int holds, const char *what) {
    if (holds)
        return;
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static void allocate(size_t mebibytes) {
    CUdeviceptr pointer;
    must(cuMemAlloc(&pointer, mebibytes << 20) == CUDA_SUCCESS, "cuMemAlloc");
}

static nvtxEventAttributes_t event_of(int32_t kind, nvtxMessageValue_t message) {
    return (nvtxEventAttributes_t){.version = NVTX_VERSION,
                                   .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                   .messageType = kind,
                                   .message = message};
}

static void nested(void) {
    nvtxRangePushA("train");
    allocate(1);
    nvtxRangePushW(L"forw\u00e4rd");
    allocate(2);
    nvtxRangePop();
    allocate(4);
    nvtxRangePop();
    must(nvtxRangePop() < 0, "a pop without a push");
    allocate(8);
}

/* A domain's ranges end apart from others'. */
static void domains(void) {
    nvtxDomainHandle_t one = nvtxDomainCreateA("one"), other = nvtxDomainCreateW(L"other");
    nvtxStringHandle_t string = nvtxDomainRegisterStringA(other, "registered");
    nvtxEventAttributes_t first = event_of(NVTX_MESSAGE_TYPE_ASCII,
                                           (nvtxMessageValue_t){.ascii = "first"}),
                          second = event_of(NVTX_MESSAGE_TYPE_REGISTERED,
                                            (nvtxMessageValue_t){.registered = string}),
                          nameless = event_of(0, (nvtxMessageValue_t){.ascii = NULL});
    must(!one || (one != other && string), "handles"); /* none where nobody listens */
    nvtxDomainRangePushEx(one, &first);
    nvtxDomainRangePushEx(other, &second);
    allocate(16);
    nvtxDomainRangePop(one);
    allocate(32);
    nvtxDomainRangePop(other);
    nvtxRangePushEx(&nameless);
    allocate(64);
    nvtxRangePop();
}

static nvtxRangeId_t started;

static void *end_it(void *unused) {
    (void)unused;
    cuCtxSetCurrent(shared);
    allocate(128); /* not of the range: another thread started it */
    nvtxRangeEnd(started);
    return NULL;
}

static void started_and_ended(void) {
    pthread_t thread;
    started = nvtxRangeStartA("started");
    allocate(256);
    pthread_create(&thread, NULL, end_it, NULL);
    pthread_join(thread, NULL);
    allocate(512);
}

static void by_call(void) {
    if (!bfc_tag_push)
        return;
    must(bfc_interface() >= 2, "the interface");
    must(bfc_tag_pop() == BFCPRELOAD_NO_TAG, "a pop of nothing");
    must(bfc_tag_push(NULL) == BFCPRELOAD_BAD_ARGUMENT, "a push of nothing");
    must(bfc_tag_push("loader") == 0 && bfc_tag_push("batch") == 1, "pushes");
    allocate(1024);
    must(bfc_tag_pop() == 0 && bfc_tag_pop() == 0, "pops");
    for (int i = 0; i < 100; i++)
        bfc_tag_push("deep");
    for (int i = 0; i < 100; i++)
        must(bfc_tag_pop() == 0, "a deep pop");
    must(bfc_tag_pop() == BFCPRELOAD_NO_TAG, "one pop too many");
}

int main(void) {
    CUdevice device;
    nvtxRangePushA("before CUDA");
    must(!cuInit(0) && !cuDeviceGet(&device, 0) && !cuDevicePrimaryCtxRetain(&shared, device) &&
             !cuCtxSetCurrent(shared),
         "CUDA");
    allocate(2048);
    nvtxRangePop();
    nested();
    domains();
    started_and_ended();
    by_call();
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    return 0;
}
