// SIM_*: refusals on demand, latencies, statistics, an older driver, no peers.
#include "sim/tests/check.h"

#include <cuda.h>
#include <dlfcn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

// A malformed value is named, and nothing costs anything.
static void complains_of(const char *latency) {
    int ends[2], status = -1;
    char told[512] = "";
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        CHECK(dup2(ends[1], STDERR_FILENO) >= 0);
        setenv("SIM_LATENCY", latency, 1);
        exit(cuInit(0));
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    close(ends[1]);
    CHECK(read(ends[0], told, sizeof told - 1) > 0);
    CHECK(strstr(told, latency) != NULL && strstr(told, "microseconds") != NULL);
    close(ends[0]);
}

// Without peers no other device can be given access.
static void set_access(void) {
    const size_t page = 2 << 20;
    CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemAccessDesc access[2] = {
        {.location = wanted.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
        {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1}, .flags = 3}};
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr start = 0;
    unsigned long long flags = 1;
    DO(cuMemAddressReserve(&start, page, 0, 0, 0));
    double before = ms();
    DO(cuMemCreate(&handle, page, &wanted, 0));
    CHECK(ms() - before >= 5); // 2 MiB
    DO(cuMemMap(start, page, 0, handle, 0));
    ANSWERS(CUDA_ERROR_INVALID_DEVICE, cuMemSetAccess(start, page, access, 2));
    DO(cuMemGetAccess(&flags, &wanted.location, start));
    CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE); // all or nothing
    DO(cuMemSetAccess(start, page, access, 1));
    DO(cuMemUnmap(start, page));
    DO(cuMemRelease(handle));
    DO(cuMemAddressFree(start, page));
}

int main(void) {
    CUcontext context = NULL;
    CUdeviceptr memory = 0;
    CUevent event = NULL;
    int version = 0, can = 1;
    void *found = NULL;
    char path[] = "/tmp/sim-stats-XXXXXX";
    complains_of("alloc");
    complains_of("typical,alloc:");
    complains_of("alloc:7x,free:1");
    complains_of("create:7+2");
    complains_of("launch:5+1/M"); // a launch is about no bytes
    CHECK(mkstemp(path) >= 0);
    setenv("SIM_FAIL", "cuMemAlloc_v2@2,record@1:999", 1);
    setenv("SIM_LATENCY", "alloc:3000,create:1+2500/M,map:0.5", 1);
    setenv("SIM_DRIVER_VERSION", "12040", 1);
    setenv("SIM_PEERS", "0", 1);
    setenv("SIM_MEMORY", "64M", 1);
    setenv("SIM_STATS", path, 1);
    DO(cuInit(0));
    DO(cuDevicePrimaryCtxRetain(&context, 0));
    DO(cuCtxSetCurrent(context));
    double before = ms();
    DO(cuMemAlloc(&memory, 1));
    CHECK(ms() - before >= 3);
    ANSWERS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&memory, 1));
    DO(cuMemAlloc(&memory, 1));
    DO(cuEventCreate(&event, 0));
    ANSWERS(CUDA_ERROR_UNKNOWN, cuEventRecord(event, NULL));
    DO(cuEventRecord(event, NULL));
    DO(cuDriverGetVersion(&version));
    CHECK(version == 12040);
    DO(cuDeviceCanAccessPeer(&can, 0, 1));
    CHECK(can == 0);
    ANSWERS(CUDA_ERROR_NOT_FOUND, cuGetProcAddress("cuCtxRecordEvent", &found, 13000, 0, NULL));
    ANSWERS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&memory, 63 << 20));
    unsigned long long (*count)(const char *) = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, "sim_call_count");
    memcpy(&count, &symbol, sizeof count);
    CHECK(count("cuMemAlloc_v2") == 4 && count("event_records") == 1 && count("nothing") == 0);
    set_access();
    unlink(path);
    return 0;
}
