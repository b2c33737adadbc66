/*
 * A driver whose calls cost nothing: what is left when a program over it is preloaded is our own
 * cost. Every event is complete as soon as it is recorded.
 * With OLD it lacks what came with CUDA 12.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static int the_context;
static uint64_t next_address = UINT64_C(1) << 40;

EXPORT int cuMemAlloc_v2(uint64_t *pointer, size_t bytes) {
    *pointer = next_address;
    next_address += (bytes + 0x1fffff) & ~(uint64_t)0x1fffff;
    return 0;
}
EXPORT int cuMemFree_v2(uint64_t pointer) {
    (void)pointer;
    return 0;
}
EXPORT int cuLaunchKernel(void) {
    return 0;
}
EXPORT int cuCtxGetCurrent(void **context) {
    *context = &the_context;
    return 0;
}
#ifndef OLD
EXPORT int cuCtxGetId(void *context, unsigned long long *id) {
    (void)context;
    *id = 1;
    return 0;
}
#endif
EXPORT int cuCtxGetDevice(int *device) {
    *device = 0;
    return 0;
}
EXPORT int cuDeviceGetCount(int *count) {
    *count = 1;
    return 0;
}
EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    (void)device;
    *flags = 0;
    *active = 1;
    return 0;
}
EXPORT int cuDevicePrimaryCtxRetain(void **context, int device) {
    (void)device;
    return cuCtxGetCurrent(context);
}
EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    (void)device;
    *bytes = (size_t)64 << 30;
    return 0;
}
EXPORT int cuDeviceGetName(char *name, int size, int device) {
    (void)device;
    strncpy(name, "none", (size_t)size);
    return 0;
}
EXPORT int cuEventCreate(void **event, unsigned flags) {
    (void)flags;
    *event = &the_context;
    return 0;
}

#define NOTHING(name)                                                                              \
    EXPORT int name(void) {                                                                        \
        return 0;                                                                                  \
    }
NOTHING(cuDevicePrimaryCtxRelease_v2)
NOTHING(cuCtxPushCurrent_v2)
NOTHING(cuCtxPopCurrent_v2)
NOTHING(cuCtxSynchronize)
#ifndef OLD
NOTHING(cuCtxRecordEvent)
NOTHING(cuCtxWaitEvent)
#endif
NOTHING(cuEventQuery)
NOTHING(cuEventSynchronize)
NOTHING(cuThreadExchangeStreamCaptureMode)
