// SIM_*: refusals on demand, calls that stop, latencies, statistics, an older driver, no peers,
// host memory that no device reaches and whose free does not wait.
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
        DO(cuInit(0));
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    close(ends[1]);
    CHECK(read(ends[0], told, sizeof told - 1) > 0);
    CHECK(strstr(told, latency) != NULL && strstr(told, "microseconds") != NULL);
    close(ends[0]);
}

static void without_virtual_memory(void) {
    int status = -1, has = -1;
    pid_t child = fork();
    if (child == 0) {
        CUdeviceptr start = 0;
        setenv("SIM_VIRTUAL", "0", 1);
        DO(cuInit(0));
        DO(cuDeviceGetAttribute(&has, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
        CHECK(has == 0);
        ANSWERS(CUDA_ERROR_NOT_SUPPORTED, cuMemAddressReserve(&start, 2 << 20, 0, 0, 0));
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

// Each call of virtual memory can be refused, and then changes nothing.
#define FIRST "@1:800,"
#define REFUSALS                                                                                   \
    "reserve" FIRST "cuMemGetAllocationGranularity" FIRST "create" FIRST "map" FIRST               \
    "access" FIRST "cuMemExportToShareableHandle" FIRST "cuMemImportFromShareableHandle" FIRST     \
    "cuMemRetainAllocationHandle" FIRST "cuMemGetAllocationPropertiesFromHandle" FIRST             \
    "unmap" FIRST "release" FIRST "unreserve" FIRST
#define FIRST_IS_REFUSED(call)                                                                     \
    do {                                                                                           \
        ANSWERS(CUDA_ERROR_NOT_PERMITTED, call);                                                   \
        DO(call);                                                                                  \
    } while (0)

static const size_t page = 2 << 20;
static const CUmemAllocationProp wanted = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};

// Without peers no other device can be given access.
static void set_access(CUdeviceptr start) {
    CUmemAccessDesc access[2] = {
        {.location = wanted.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
        {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1},
         .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
    unsigned long long flags = 1;
    FIRST_IS_REFUSED(cuMemSetAccess(start, page, access, 1));
    access[0].flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    ANSWERS(CUDA_ERROR_INVALID_DEVICE, cuMemSetAccess(start, page, access, 2));
    DO(cuMemGetAccess(&flags, &wanted.location, start));
    CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE); // all or nothing
}

static void virtual_memory_refused(void) {
    CUdeviceptr start = 0;
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp found;
    size_t grain = 0, before = 0, after = 0, total = 0;
    int file = -1;
    const CUmemAllocationHandleType type = wanted.requestedHandleTypes;
    DO(cuMemGetInfo(&before, &total));
    FIRST_IS_REFUSED(cuMemAddressReserve(&start, page, 0, 0, 0));
    FIRST_IS_REFUSED(cuMemGetAllocationGranularity(&grain, &wanted, 0));
    double now = ms();
    FIRST_IS_REFUSED(cuMemCreate(&handle, page, &wanted, 0));
    CHECK(ms() - now >= 10); // twice 2 MiB
    FIRST_IS_REFUSED(cuMemMap(start, page, 0, handle, 0));
    set_access(start);
    FIRST_IS_REFUSED(cuMemExportToShareableHandle(&file, handle, type, 0));
    FIRST_IS_REFUSED(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)file, type));
    close(file);
    FIRST_IS_REFUSED(cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)start));
    FIRST_IS_REFUSED(cuMemGetAllocationPropertiesFromHandle(&found, handle));
    FIRST_IS_REFUSED(cuMemUnmap(start, page));
    FIRST_IS_REFUSED(cuMemRelease(handle));
    DO(cuMemRelease(handle));
    DO(cuMemRelease(handle));
    FIRST_IS_REFUSED(cuMemAddressFree(start, page));
    DO(cuMemGetInfo(&after, &total));
    CHECK(after == before);
}

static volatile int held = 1;

static void hold(void *unused) {
    (void)unused;
    while (held) {
        usleep(100);
    }
}

// Its stream is busy until the end.
static void host_memory(unsigned long long (*count)(const char *)) {
    void *memory = NULL;
    CUdeviceptr there = 0;
    int maps = 1;
    DO(cuMemHostAlloc(&memory, 5000, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
    CHECK(count("pinned") == 5000);
    DO(cuDeviceGetAttribute(&maps, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 0));
    CHECK(maps == 0);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(&there, memory, 0));
    DO(cuLaunchHostFunc(NULL, hold, NULL));
    DO(cuMemFreeHost(memory));
    CHECK(count("pinned") == 0);
    held = 0;
    DO(cuCtxSynchronize());
}

// The second allocation stays where it is until the file is gone.
static void halts_at_a_call(void) {
    int status = -1;
    char path[] = "/tmp/sim-halt-XXXXXX", halt[64];
    CHECK(mkdtemp(path) != NULL);
    snprintf(halt, sizeof halt, "alloc@2:%s/here", path);
    pid_t child = fork();
    if (child == 0) {
        CUcontext context = NULL;
        CUdeviceptr memory = 0;
        setenv("SIM_HALT", halt, 1);
        DO(cuInit(0));
        DO(cuDevicePrimaryCtxRetain(&context, 0));
        DO(cuCtxSetCurrent(context));
        DO(cuMemAlloc(&memory, 1));
        CHECK(access(strchr(halt, '/'), F_OK) != 0);
        DO(cuMemAlloc(&memory, 1));
        exit(0);
    }
    while (access(strchr(halt, '/'), F_OK) != 0) {
        CHECK(waitpid(child, &status, WNOHANG) == 0);
        usleep(1000);
    }
    usleep(20000);
    CHECK(waitpid(child, &status, WNOHANG) == 0);
    CHECK(unlink(strchr(halt, '/')) == 0);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(rmdir(path) == 0);
}

int main(void) {
    CUcontext context = NULL;
    CUdeviceptr memory = 0;
    CUevent event = NULL;
    int version = 0, can = 1;
    void *found = NULL;
    without_virtual_memory();
    halts_at_a_call();
    complains_of("alloc");
    complains_of("typical,alloc:");
    complains_of("alloc:7x,free:1");
    complains_of("create:7+2");
    complains_of("launch:5+1/M"); // a launch is about no bytes
    setenv("SIM_FAIL", REFUSALS "cuMemAlloc_v2@2,record@1:999", 1);
    setenv("SIM_LATENCY", "alloc:3000,create:1+2500/M,map:0.5", 1);
    setenv("SIM_DRIVER_VERSION", "12040", 1);
    setenv("SIM_PEERS", "0", 1);
    setenv("SIM_MAPS_HOST", "0", 1);
    setenv("SIM_HOST_FREE_WAITS", "0", 1);
    setenv("SIM_MEMORY", "64M", 1);
    setenv("SIM_STATS", "/dev/null", 1);
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
    virtual_memory_refused();
    host_memory(count);
    return 0;
}
