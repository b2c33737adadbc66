// Memory of another process: a handle opened there, written there, read here. Events of two
// processes. A device that several processes share has as much less.
#include "sim/tests/check.h"

#include <cuda.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void begin(void) {
    CUcontext context = NULL;
    DO(cuInit(0));
    DO(cuDevicePrimaryCtxRetain(&context, 0));
    DO(cuCtxSetCurrent(context));
}

static void exporter(int to_child, int from_child) {
    CUdeviceptr small = 0, large = 0, own = 0;
    CUipcMemHandle handles[2], inner;
    char bytes[4] = "";
    begin();
    DO(cuMemAlloc(&small, 1000)); // two allocations of one page
    DO(cuMemAlloc(&small, 1000));
    DO(cuMemAlloc(&large, 5 << 20));
    DO(cuMemsetD8(small, 's', 1000));
    DO(cuMemsetD8(large, 'l', 5 << 20));
    DO(cuCtxSynchronize());
    DO(cuIpcGetMemHandle(&handles[0], small));
    DO(cuIpcGetMemHandle(&handles[1], large));
    DO(cuIpcGetMemHandle(&inner, large + 4096)); // silently the base
    CHECK(memcmp(&inner, &handles[1], sizeof inner) == 0);
    ANSWERS(CUDA_ERROR_INVALID_CONTEXT,
            cuIpcOpenMemHandle(&own, handles[0], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    CHECK(write(to_child, handles, sizeof handles) == sizeof handles);
    CHECK(read(from_child, bytes, 1) == 1);
    DO(cuMemcpyDtoH(bytes, small + 999, 1));
    DO(cuMemcpyDtoH(bytes + 1, large + 12345, 1));
    CHECK(strcmp(bytes, "xy") == 0);
}

static void importer(int to_parent, int from_parent) {
    CUdeviceptr small = 0, large = 0, again = 0, start = 0;
    size_t size = 0;
    CUipcMemHandle handles[2], broken;
    char byte = 0;
    CHECK(read(from_parent, handles, sizeof handles) == sizeof handles);
    begin();
    DO(cuIpcOpenMemHandle(&small, handles[0], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    DO(cuIpcOpenMemHandle(&large, handles[1], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    DO(cuIpcOpenMemHandle(&again, handles[1], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    CHECK(again == large);
    DO(cuIpcCloseMemHandle(again));
    broken = handles[0];
    broken.reserved[0] ^= 1;
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuIpcOpenMemHandle(&again, broken, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    DO(cuMemGetAddressRange(&start, &size, small + 10));
    CHECK(start == small && size == 1000);
    DO(cuMemcpyDtoH(&byte, small, 1));
    CHECK(byte == 's');
    DO(cuMemcpyDtoH(&byte, large + (5 << 20) - 1, 1));
    CHECK(byte == 'l');
    DO(cuMemsetD8(small + 999, 'x', 1));
    DO(cuMemsetD8(large + 12345, 'y', 1));
    DO(cuCtxSynchronize());
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemFree(small));
    DO(cuIpcCloseMemHandle(small));
    DO(cuIpcCloseMemHandle(large));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(large));
    CHECK(write(to_parent, "", 1) == 1);
}

// ---- events ----

// The record completes when the exporter says so; the importer's stream and host wait for it. Then
// the other way round.
static void event_exporter(int to_child, int from_child) {
    CUevent shared = NULL, plain = NULL, own = NULL;
    CUstream stream = NULL;
    CUipcEventHandle handle;
    unsigned *flag = NULL;
    char byte = 0;
    begin();
    DO(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    DO(cuMemHostAlloc((void **)&flag, sizeof *flag, 0));
    *flag = 0;
    DO(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
    DO(cuEventCreate(&shared, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuIpcGetEventHandle(&handle, plain));
    DO(cuIpcGetEventHandle(&handle, shared));
    ANSWERS(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenEventHandle(&own, handle));
    DO(cuEventQuery(shared)); // never recorded
    DO(cuStreamWaitValue32(stream, (CUdeviceptr)flag, 1, CU_STREAM_WAIT_VALUE_EQ));
    DO(cuEventRecord(shared, stream));
    CHECK(write(to_child, &handle, sizeof handle) == sizeof handle);
    CHECK(read(from_child, &byte, 1) == 1); // it has seen that the event is not ready
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    CHECK(read(from_child, &byte, 1) == 1); // it has recorded
    DO(cuStreamWaitEvent(stream, shared, 0));
    DO(cuStreamSynchronize(stream));
    DO(cuEventSynchronize(shared));
    DO(cuEventQuery(shared));
    DO(cuEventDestroy(shared));
    CHECK(write(to_child, "", 1) == 1);
}

static void event_importer(int to_parent, int from_parent) {
    CUevent shared = NULL;
    CUstream stream = NULL;
    CUipcEventHandle handle, broken;
    char byte = 0;
    CHECK(read(from_parent, &handle, sizeof handle) == sizeof handle);
    begin();
    broken = handle;
    broken.reserved[0] ^= 1;
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuIpcOpenEventHandle(&shared, broken));
    DO(cuIpcOpenEventHandle(&shared, handle));
    DO(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    DO(cuStreamWaitEvent(stream, shared, 0));
    ANSWERS(CUDA_ERROR_NOT_READY, cuEventQuery(shared));
    ANSWERS(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    CHECK(write(to_parent, "", 1) == 1);
    DO(cuEventSynchronize(shared));
    DO(cuStreamSynchronize(stream));
    DO(cuEventRecord(shared, stream));
    CHECK(write(to_parent, "", 1) == 1);
    CHECK(read(from_parent, &byte, 1) == 1);
    DO(cuEventDestroy(shared));
}

// ---- sharing a device's memory ----

static size_t free_bytes(void) {
    size_t now = 0, total = 0;
    DO(cuMemGetInfo(&now, &total));
    return now;
}

static void use_most(int to_parent, int from_parent) {
    CUdeviceptr memory = 0;
    char byte = 0;
    begin();
    DO(cuMemAlloc(&memory, (size_t)1000 << 20));
    CHECK(write(to_parent, "", 1) == 1);
    CHECK(read(from_parent, &byte, 1) == 1);
    kill(getpid(), SIGKILL); // and says nothing
}

static void see_the_rest(int to_child, int from_child, pid_t child) {
    CUdeviceptr memory = 0;
    char byte = 0;
    CHECK(read(from_child, &byte, 1) == 1);
    begin();
    CHECK(free_bytes() == (size_t)24 << 20);
    ANSWERS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&memory, (size_t)26 << 20));
    DO(cuMemAlloc(&memory, (size_t)24 << 20));
    DO(cuMemFree(memory));
    CHECK(write(to_child, "", 1) == 1);
    CHECK(waitpid(child, NULL, 0) == child);
    DO(cuMemAlloc(&memory, (size_t)1000 << 20));
    CHECK(free_bytes() == (size_t)24 << 20);
}

static void share(void) {
    char path[] = "/tmp/sim-share-XXXXXX";
    int down[2], up[2], status = -1;
    CHECK(mkstemp(path) >= 0);
    setenv("SIM_SHARE", path, 1);
    CHECK(pipe(down) == 0 && pipe(up) == 0);
    pid_t judge = fork();
    if (judge == 0) {
        pid_t child = fork();
        if (child == 0) {
            use_most(up[1], down[0]);
        }
        see_the_rest(down[1], up[0], child);
        exit(0);
    }
    CHECK(waitpid(judge, &status, 0) == judge && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    unlink(path);
    unsetenv("SIM_SHARE");
}

// Two processes, each with an end of two pipes; no one called CUDA before.
static void apart(void (*parent)(int, int), void (*child)(int, int)) {
    int down[2], up[2], status = -1;
    CHECK(pipe(down) == 0 && pipe(up) == 0);
    pid_t other = fork();
    CHECK(other >= 0);
    if (other == 0) {
        child(up[1], down[0]);
        exit(0);
    }
    parent(down[1], up[0]);
    CHECK(waitpid(other, &status, 0) == other && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
    int status = -1;
    share();
    pid_t events = fork();
    if (events == 0) {
        apart(event_exporter, event_importer);
        exit(0);
    }
    CHECK(waitpid(events, &status, 0) == events && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    apart(exporter, importer);
    return 0;
}
